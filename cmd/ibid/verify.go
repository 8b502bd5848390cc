package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// verifyFlags are the flags of ibid verify.
type verifyFlags struct {
	json, offline, fresh bool
	report               bool // publishers are told
	junit, url, tenant   string
	save                 string // the directory for bundles
	list, resume         string
	trust                []string
	level, failOn        string
	allow                server.Networks // only the networks that may be reached
	checker              checkerFlags
}

func newVerify(w world) *cobra.Command {
	c := server.Defaults()
	f := &verifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify URL|FILE|-...",
		Short: "Check what an agent says about where its claims come from",
		Long: `Reads the Citation-Source field of a response, fetches the manifests that it
names, checks their signatures, and reads each source again: does it say what is
quoted from it? A URL is that of an answer or of a manifest. A FILE is a manifest,
a stored bundle, an answer document of ibid, or what curl -i printed.

The report has two findings. One is about the sources, and what was signed:

  trusted        nothing failed, and you trust who signed it (--trust)
  valid          nothing failed, but you have not said that you trust the signer,
                 or nobody signed
  pending        the manifest is not built yet
  unverifiable   nothing failed, but something could not be looked at
  invalid        something failed

The other is about what is claimed, and counts the claims:

  supported      the excerpts of its sources say it
  doubtful       a number, a name, a negation or a word like that is another one in
                 the excerpt, or the excerpt has next to nothing of it
  not checked    nobody can say: read it

Only public addresses are fetched, at ports 80 and 443, unless --allow-net names
another network. Support is judged by comparing words; with --checker, another
checker in the file of --config counts, too.

Nothing is kept, unless --data, --db or --config says where: then a manifest that
changed or was used twice is noticed, good results count for a day, and what
failed goes to ibid incidents. --save keeps bundles, which have all that is needed
to verify a manifest again --offline, for years.

--list FILE names a file with more of them, one a line. With --json and --resume
FILE the reports go to a file, and go on behind its last whole line if the same
call was broken off.

--report tells publishers who ask for it what failed of theirs: each record that
ibid incidents lists of it, signed with the key that ibid key new --data made.

Exit codes: 0 trusted or valid, and no claim doubtful; 1 invalid, or a claim is
doubtful, unless --fail-on invalid; 2 unverifiable or pending, or it cannot be
read. Of several, the first of these that occurs: 2 for one that cannot be read,
1, 2, 0.`,
		Example: `  ibid verify https://agent.example/answers/1 --trust agent.example
  curl -is https://agent.example/ask >answer.txt
  ibid verify answer.txt --url https://agent.example/ask
  ibid verify bundle.json --offline --trust "$KEYID"
  ibid verify answers/*.json --junit report.xml --json
  ibid verify --list urls.txt --json --resume reports.jsonl`,
		Args: func(cmd *cobra.Command, names []string) error {
			if f.list != "" {
				return onceStdin(append([]string{f.list}, names...))
			}
			return wants(many, "ibid verify takes a URL or a file", "to read standard input: ibid verify -")(cmd, names)
		},
		RunE: func(cmd *cobra.Command, names []string) error { return f.start(cmd, c, names, w) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.json, "json", false, "write the report as JSON, one line for each input")
	flags.StringVar(&f.list, "list", "",
		"also verify the URLs and files in this `FILE`, one a line, - for standard input")
	withoutVariable(flags, "list")
	addResumeFlag(flags, &f.resume)
	flags.StringVar(&f.junit, "junit", "", "also write a JUnit report to this `FILE`")
	flags.StringSliceVar(&f.trust, "trust", nil,
		"whose signatures you trust: a host or the id of a key, as `WHO`; repeatable")
	flags.Var(server.OneOf(&f.level, "LEVEL", "1", "2", "3"), "require-level",
		"fail what does not reach this conformance `LEVEL`: 1, 2 or 3")
	f.failOn = string(verify.FailOnDoubtful)
	failOn := server.OneOf(&f.failOn, "WHAT", string(verify.FailOnDoubtful), string(verify.FailOnInvalid))
	flags.Var(failOn, "fail-on", "`WHAT` fails: a doubtful claim and what is invalid, or invalid only")
	flags.StringVar(&f.save, "save", "",
		"keep a stored bundle of each manifest in this `DIRECTORY`, with its sources that are unchanged")
	flags.BoolVar(&f.offline, "offline", false,
		"fetch nothing: only what the file has, or the database of --data, can be looked at")
	flags.StringVar(&f.url, "url", "", "the `URL` that a response in a file came from, if the file does not say so")
	flags.BoolVar(&f.fresh, "fresh", false,
		"look at every source again, also at those with a result of less than a day ago")
	flags.BoolVar(&f.report, "report", false,
		"tell publishers who ask for it what failed of theirs, signed with the key in --data")
	server.AddNetFlag(flags, &f.allow)
	addTenantFlag(flags, &f.tenant)
	f.checker.add(flags, &c.File)
	c.AddStoreFlags(flags)
	flags.Lookup("data").Usage = "remember in the database in this `directory`; without it, --db and --config " +
		"nothing is kept"
	return cmd
}

// checkTrust says which of those who are trusted cannot sign.
func checkTrust(trust []string) error {
	for _, who := range trust {
		if who == "" || strings.ContainsAny(who, "/ ") {
			return usagef(
				"as --trust agent.example, with its port unless that is 80 or 443",
				"--trust %q is neither a host nor the id of a key", who,
			)
		}
	}
	return nil
}

// withNamedStore opens the database for one command, if a flag or a variable names it; else f gets nil.
func withNamedStore(
	cmd *cobra.Command, c *server.Config, w world, mayMake bool, f func(context.Context, *store.Store) error,
) error {
	if said := cmd.Flags().Changed; !said("data") && !said("db") && !said("config") {
		return f(cmd.Context(), nil)
	}
	return withStore(cmd, c, w, mayMake, f)
}

// validate says what is wrong with the call itself.
func (f *verifyFlags) validate(names []string) error {
	if err := checkTrust(f.trust); err != nil {
		return err
	}
	if f.report && f.offline {
		return usagef("", "--report needs a network, which --offline does without")
	}
	if f.junit == stdinName {
		return usagef("--junit report.xml", "--junit wants a file: standard output has the report")
	}
	if f.resume != "" && !f.json {
		return errResume
	}
	if f.resume != "" && f.junit != "" {
		return usagef("", "--junit has the reports of one whole call, and goes without --resume")
	}
	if f.url == "" {
		return nil
	}
	if len(names) != 1 || f.list != "" || isURL(names[0]) {
		return usagef("it says where the response in it came from", "--url goes with one file only")
	}
	if _, err := server.ParseWebURL(f.url); err != nil {
		return usagef("", "--url: %w", err)
	}
	return nil
}

// start verifies what is named, with a store if one is.
func (f *verifyFlags) start(cmd *cobra.Command, c *server.Config, names []string, w world) error {
	if err := f.validate(names); err != nil {
		return err
	}
	fetcher := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: f.allow})
	defer func() { _ = fetcher.Close() }() // nothing is lost
	v := &verifying{world: w, flags: f, turns: newTurns(&verify.MemoryMap{})}
	if f.report {
		ring, err := f.openRing(cmd, c, w)
		if err != nil {
			return err
		}
		v.poster = &verify.Poster{Client: fetcher.Client(), Ring: ring}
	}
	var judge support.Checker
	if f.checker.isJudge() {
		var err error
		if judge, err = f.checker.build(c.File, 0, w); err != nil {
			return err
		}
	}
	level, _ := strconv.Atoi(f.level) // empty is 0
	return withNamedStore(cmd, c, w, true, func(ctx context.Context, s *store.Store) error {
		var copies snapshot.Copies
		if s != nil {
			v.store, v.turns, copies = s, newTurns(s.Memory(f.tenant)), s.Copies(f.tenant)
		}
		texts := &snapshot.Texts{}
		v.verifier = func(m verify.Memory) *verify.Verifier {
			one := &verify.Verifier{
				Fetcher:      fetcher,
				Texts:        texts,
				Memory:       m,
				Copies:       copies,
				Trust:        f.trust,
				RequireLevel: level,
				Offline:      f.offline,
				Version:      readBuild().Version,
				KeepSources:  f.save != "",
				Judge:        judge,
				Progress:     v.progress,
			}
			if f.fresh {
				// A nanosecond: what is found now is kept, what was kept is not asked.
				one.SourceTTL, one.FailureTTL = 1, 1
			}
			return one
		}
		return v.run(ctx, &feed{names: names, list: f.list, stdin: v.in})
	})
}
