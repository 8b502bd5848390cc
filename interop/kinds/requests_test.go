package kinds

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/wire"
)

// asked is a line of requests.txt. Without a provider, Asks gives the reason why no request asks.
type asked struct{ Format, Kinds, Provider, Asks, Members string }

// /v1/chat requests every kind of citation and source that is decoded, if a request can ask for it at all: the requests
// that it builds have the member that does so.
func TestRequests(t *testing.T) {
	rows := testenv.Table[asked](t, "requests.txt")
	known, providers := map[string]bool{}, map[string]bool{}
	for i := range rows {
		r := &rows[i]
		for kind := range strings.FieldsSeq(r.Kinds) {
			known[r.Format+" "+kind] = true
		}
		if r.Provider == "" {
			continue
		}
		providers[r.Provider] = true
		t.Run(r.Format+"/"+r.Kinds, func(t *testing.T) { r.check(t) })
	}
	for _, p := range call.Providers() {
		if _, err := call.BuildRequest(p.Name, question()); err == nil && !providers[p.Name] {
			t.Errorf("requests.txt does not mention %s", p.Name)
		}
	}
	types, skipped := testenv.Table[sdkType](t, "types.txt"), unread(t)
	var names []string
	for i := range types {
		names = append(names, types[i].Go)
	}
	found := readGo(t, names)
	for i := range types {
		for kind := range found[types[i].Go] {
			m := mutation{types[i].Holder, kind, ""}
			if name := types[i].Format + " " + m.String(); skipped[name] == "" && !known[name] {
				t.Errorf("requests.txt does not say what asks for %q", name)
			}
		}
	}
}

func question() *call.Chat {
	return &call.Chat{
		Model: "m", Messages: []call.Message{{Role: call.RoleUser, Text: "Do herons build?"}},
		Stream: true, Include: true, Citations: call.CitationsAccurate,
	}
}

// check builds the request and checks whether it asks.
func (r *asked) check(t *testing.T) {
	t.Helper()
	c := question()
	if r.Asks == "documents" {
		c.Documents = []wire.Source{{ID: "d", Content: "Yes."}}
	} else if err := json.Unmarshal([]byte(r.Asks), &c.Tools); err != nil {
		t.Fatal(err)
	}
	built, err := call.BuildRequest(r.Provider, c)
	if err != nil {
		t.Fatal(err)
	}
	var body any
	testenv.OK(t, json.Unmarshal(built.Body, &body))
	for member := range strings.FieldsSeq(r.Members) {
		path, raw, _ := strings.Cut(member, "=")
		var want any
		testenv.OK(t, json.Unmarshal([]byte(raw), &want))
		got := at(body, path)
		if list, ok := got.([]any); ok && slices.ContainsFunc(list, func(v any) bool { return reflect.DeepEqual(v, want) }) {
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v in %s", member, got, built.Body)
		}
	}
}

// at returns the value at a path of members and indexes, or nil.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}
