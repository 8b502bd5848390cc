package api_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// The stories of testdata/story. A story starts the server that it needs with one of these commands:
//
//	node [bootstrap TOKEN | origin URL]  starts a node without keys
//	press LEVEL [NETWORK]                starts one that publishes, whose verifier may connect to the network
//	answer ID [NAME=VALUE…] URL…         stores an answer that cites pages
//	token NAME TENANT SCOPE…             makes an access token, and sets a variable to it
//	page PATH TEXT                       puts a page on a site, and sets PAGE to its address
//	publish ID                           stores an answer that quotes $PAGE, and waits until it is published
//	build RUN N                          waits until N manifests of a run are built
//	kept TENANT URL HOURS TEXT           keeps a copy of a source, and sets HASH
//	golden FILE                          compares the last body with a file of testdata; JSON is indented there
//	changed ID OF QUOTE                  stores an answer to $PAGE that is a later state of another
//	moment VARIABLE                      sets a variable to the time
//	prune TIME                           removes manifests that were built before
//	due N                                checks that N runs or answers became due for publication since the last time
//	chain                                checks that the incidents of the last body form a chain, as a client would
//	checked STATUS COUNTS                stores this check result for the citations of $PAGE
//	alert KIND SUMMARY [ANSWER]          raises an alert
//	away                                 makes the store unavailable from now on
func TestStories(t *testing.T) {
	type story = servertest.Story[press]
	servertest.Stories(t, map[string]string{
		"EGGS": eggs, "CHANGED": strings.Replace(eggs, "four", "five", 1), "SCHEMA": manifest.SchemaPath,
		"DISCOVERY": manifest.DiscoveryPath, "DOCUMENT": asJSON(t, cites("https://a.invalid/", quote)), "DIRECTORY": manifest.DirectoryPath, "KEYS": manifest.KeysPath,
	}, map[string]func(*story, []string){
		"node": func(s *story, args []string) {
			guard := &gateway.GuardOptions{}
			for i := 0; i+1 < len(args); i += 2 {
				switch args[i] {
				case "bootstrap":
					guard.Bootstrap = args[i+1]
				case "origin":
					guard.Origins = append(guard.Origins, args[i+1])
				}
			}
			*s.World = press{node: newNode(s.TB, guard)}
			s.Serve(s.World.URL)
		},
		"press": func(s *story, args []string) {
			*s.World = *newPress(s.TB, testenv.Must(strconv.Atoi(args[0]))(s.TB), args[1:]...)
			s.Serve(s.World.URL)
		},
		"answer": func(s *story, args []string) {
			urls, c, finish := []string{}, call(args[0], nil), ibid.FinishStop
			for _, arg := range args[1:] {
				name, value, ok := strings.Cut(arg, "=")
				if strings.Contains(name, "://") || !ok {
					urls = append(urls, arg)
					continue
				}
				switch name {
				case "tenant":
					c.Tenant = value
				case "run":
					c.Run = value
				case "conversation":
					c.Conversation = value
				case "prompt":
					c.Prompt = nil
					s.Check(json.Unmarshal([]byte(s.ReadFile(value)), &c.Prompt))
				case "finish":
					finish = map[string]ibid.Finish{"tool": ibid.FinishTool}[value]
				case "step":
					c.Step.Number = testenv.Must(strconv.Atoi(value))(s.TB)
				case "publish":
					c.Publish = value == "yes"
				case "minute":
					c.Started = started.Add(time.Duration(testenv.Must(strconv.Atoi(value))(s.TB)) * time.Minute)
				default:
					s.Fatalf("an answer has no %s", name)
				}
			}
			c.Answer = herons(urls...)
			c.Answer.Finish = finish
			s.World.put(s.TB, c)
		},
		"token": func(s *story, args []string) { s.Setenv(args[0], s.World.token(s.TB, args[1], args[2:]...)) },
		"page":  func(s *story, args []string) { s.Setenv("PAGE", s.World.pages.set(args[0], args[1])) },
		"publish": func(s *story, args []string) {
			c := call(args[0], cites(s.Getenv("PAGE"), quote))
			c.Conversation = "c_" + args[0]
			s.World.publish(s.TB, c)
		},
		"changed": func(s *story, args []string) {
			c := call(args[0], cites(s.Getenv("PAGE"), args[2]))
			c.Of = args[1]
			s.World.put(s.TB, c)
		},
		"build": func(s *story, args []string) {
			s.World.build(s.TB, args[0], testenv.Must(strconv.Atoi(args[1]))(s.TB))
		},
		"kept": func(s *story, args []string) {
			s.Setenv("HASH", s.World.kept(s.TB, args[0], args[1], args[3], testenv.Must(strconv.Atoi(args[2]))(s.TB)))
		},
		"moment": func(s *story, args []string) { s.Setenv(args[0], time.Now().Format(time.RFC3339Nano)) },
		"prune": func(s *story, args []string) {
			end := testenv.Must(time.Parse(time.RFC3339Nano, args[0]))(s.TB)
			testenv.Must(s.World.store.Prune(s.TB.Context(), &store.Retention{Manifests: time.Hour, Now: end.Add(time.Hour)}))(s.TB)
		},
		"golden": func(s *story, args []string) {
			if body := s.ReadFile("stdout"); strings.HasSuffix(args[0], ".json") {
				goldenJSON(s.TB, args[0], body)
			} else {
				golden(s.TB, args[0], body)
			}
		},
		"due": func(s *story, args []string) {
			if due := testenv.Must(s.World.store.DuePublications(s.TB.Context(), 0, 1<<40))(s.TB); strconv.Itoa(len(due)) != args[0] {
				s.Fatalf("%+v", due)
			}
		},
		"chain": func(s *story, _ []string) {
			var list struct{ Incidents []verify.Incident }
			s.Check(json.Unmarshal([]byte(s.ReadFile("stdout")), &list))
			slices.Reverse(list.Incidents)
			s.Check(verify.CheckChain(list.Incidents))
			testenv.Must(s.World.store.CheckIncidents(s.TB.Context(), store.DefaultTenant))(s.TB)
		},
		"checked": func(s *story, args []string) {
			for _, pin := range testenv.Must(s.World.store.Pins(s.TB.Context(), store.DefaultTenant, s.Getenv("PAGE")))(s.TB) {
				s.Check(s.World.store.SetStatuses(s.TB.Context(), store.DefaultTenant, []store.PinStatus{
					{ID: pin.ID, CheckedAt: started, Status: verify.Status(args[0]), Counts: verify.Counts(args[1])},
				}))
			}
		},
		"alert": func(s *story, args []string) {
			a := store.Alert{Kind: store.AlertKind(args[0]), Tenant: store.DefaultTenant, Summary: args[1]}
			a.Subject.AnswerID, a.Subject.Key = strings.Join(args[2:], ""), args[0]
			testenv.Must(s.World.store.AddAlerts(s.TB.Context(), []store.Alert{a}))(s.TB)
		},
		"away": func(s *story, _ []string) { s.Check(s.World.store.Close()) },
	})
}
