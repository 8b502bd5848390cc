package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// maxWait is the longest time that ibid verify waits for a manifest: that of all its fetching.
const maxWait = 5 * time.Minute

// verifyFlags are the flags of ibid verify.
type verifyFlags struct {
	json, offline, fresh bool
	report               bool // tell publishers
	junit, url, tenant   string
	save                 string // the directory for bundles
	list, resume         string
	trust                []string
	level, failOn        string
	allow                server.Networks // networks that may be connected to besides the public ones
	judge                judgeFlags
	wait                 time.Duration
}

func newVerify(w world) *cobra.Command {
	c := server.Defaults()
	f := &verifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify URL|FILE|-...",
		Short: "Check the sources that an agent declares for its claims",
		Long: `Reads the Citation-Source field of a response, fetches the manifests it names,
checks their signatures, and fetches each source again to see if it still contains
what is quoted from it. A URL is that of an answer or of a manifest. A FILE is a
manifest, a stored bundle, an answer document of ibid, or the output of curl -i.

The report has two findings. One is about the sources and signatures:

  trusted        nothing failed, and you trust the signer (--trust)
  valid          nothing failed, but you have not declared the signer trusted, or
                 there is no signature
  pending        the manifest is not built yet
  unverifiable   nothing failed, but something could not be checked
  invalid        something failed

The other is about the claims, and counts them:

  supported      the excerpts of its sources say it, in the same or close words
  differs        they say it, but for one detail; both words are shown
  unjudged       the excerpts are there; nobody has judged what they mean
  unsupported    a judge says that they do not say it
  contradicted   a judge says that they deny it
  unchecked      there was nothing to compare it with, for the reason given

Only public addresses are fetched, at ports 80 and 443, unless --allow-net names
another network. Words are compared; --judge asks a model about what they leave open.

Nothing is stored unless --data, --db or --config names a database. Then a manifest
that changed or was reused is detected, good results are reused for a day, and
failures go to ibid incidents. --save stores bundles, which contain everything
needed to verify a manifest again --offline, for years.

--list FILE names a file with more inputs, one per line. With --json and --resume
FILE the reports go to a file, and continue after its last complete line if the
same call was interrupted.

--report sends publishers who ask for it the failures of their manifests: each
record that ibid incidents lists, signed with the key created by ibid key new --data.

Exit codes: 0 trusted or valid, and no claim differs; 1 invalid, or a claim differs
or is denied by a judge, unless --fail-on invalid; 2 unverifiable or pending, or an
input cannot be read. With --fail-on unjudged, 1 also if a claim is not supported.
For several inputs, the first of these that occurs: 2 for one that cannot be read,
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
	flags.BoolVar(&f.json, "json", false, "write the report as JSON, one line per input")
	flags.StringVar(&f.list, "list", "",
		"also verify the URLs and files in this `FILE`, one per line, - for standard input")
	withoutVariable(flags, "list")
	addResumeFlag(flags, &f.resume)
	flags.StringVar(&f.junit, "junit", "", "also write a JUnit report to this `FILE`")
	flags.StringSliceVar(&f.trust, "trust", nil,
		"whose signatures you trust: a host or a key id, as `WHO`; repeatable")
	flags.Var(server.OneOf(&f.level, "LEVEL", "1", "2", "3"), "require-level",
		"fail below this conformance `LEVEL`: 1, 2 or 3")
	f.failOn = string(verify.FailOnDiffers)
	failOn := server.OneOf(&f.failOn, "WHAT", string(verify.FailOnDiffers), string(verify.FailOnUnjudged),
		string(verify.FailOnInvalid))
	flags.Var(failOn, "fail-on",
		"`WHAT` fails: differs (and invalid), unjudged (all claims that are not supported), or invalid only")
	flags.StringVar(&f.save, "save", "",
		"store a bundle of each manifest in this `DIRECTORY`, with its unchanged sources")
	flags.BoolVar(&f.offline, "offline", false,
		"fetch nothing: use only the file and the database of --data")
	flags.StringVar(&f.url, "url", "", "the `URL` that a response in a file came from, if not in the file")
	flags.BoolVar(&f.fresh, "fresh", false,
		"fetch every source and key again, even those checked less than a day ago")
	flags.DurationVar(&f.wait, "wait", 30*time.Second,
		"how long a manifest that is not built yet is waited for, at most 5 min")
	flags.BoolVar(&f.report, "report", false,
		"send failures to publishers who ask for them, signed with the key in --data")
	server.AddNetFlag(flags, &f.allow)
	addTenantFlag(flags, &f.tenant)
	f.judge.add(flags, &c.File)
	c.AddStoreFlags(flags)
	flags.Lookup("data").Usage = "remember results in the database in this `directory`; nothing is stored without " +
		"it, --db or --config"
	return cmd
}

// checkTrust returns an error if a trusted party cannot be a signer.
func checkTrust(trust []string) error {
	for _, who := range trust {
		if who == "" || strings.ContainsAny(who, "/ ") {
			return usagef(
				"for example --trust agent.example, with the port unless it is 80 or 443",
				"--trust %q is neither a host nor a key id", who,
			)
		}
	}
	return nil
}

// withNamedStore opens the database for one command if a flag or a variable names it; else f gets nil.
func withNamedStore(
	cmd *cobra.Command, c *server.Config, w world, mayMake bool, f func(context.Context, *store.Store) error,
) error {
	if said := cmd.Flags().Changed; !said("data") && !said("db") && !said("config") {
		return f(cmd.Context(), nil)
	}
	return withStore(cmd, c, w, mayMake, f)
}

// validate reports invalid combinations of flags.
func (f *verifyFlags) validate(names []string) error {
	if err := checkTrust(f.trust); err != nil {
		return err
	}
	if f.report && f.offline {
		return usagef("", "--report needs the network, which --offline excludes")
	}
	if f.wait < 0 || f.wait > maxWait {
		return usagef("0 does not wait", "--wait %v: must be from 0 to %v", f.wait, maxWait)
	}
	if f.junit == stdinName {
		return usagef("--junit report.xml", "--junit needs a file: the report goes to standard output")
	}
	if f.resume != "" && !f.json {
		return errResume
	}
	if f.resume != "" && f.junit != "" {
		return usagef("", "--junit covers one whole call, and cannot be combined with --resume")
	}
	if f.url == "" {
		return nil
	}
	if len(names) != 1 || f.list != "" || isURL(names[0]) {
		return usagef("it is the origin of the response in the file", "--url needs exactly one file")
	}
	if _, err := server.ParseWebURL(f.url); err != nil {
		return usagef("", "--url: %w", err)
	}
	return nil
}

// start verifies the inputs, with a store if one is named.
func (f *verifyFlags) start(cmd *cobra.Command, c *server.Config, names []string, w world) error {
	if err := f.validate(names); err != nil {
		return err
	}
	fetcher := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: f.allow})
	defer func() { _ = fetcher.Close() }() // only reads
	v := &verifying{world: w, flags: f, turns: newTurns(&verify.MemoryMap{})}
	if f.report {
		ring, err := f.openRing(cmd, c, w)
		if err != nil {
			return err
		}
		v.poster = &verify.Poster{Client: fetcher.Client(), Ring: ring}
	}
	judge, done, err := f.judge.build(c.File, w)
	if err != nil {
		return err
	}
	defer done()
	level, _ := strconv.Atoi(f.level) // empty means 0
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
				Wait:         f.wait,
				Judge:        judge,
				Progress:     v.progress,
			}
			if f.fresh {
				// A nanosecond: new results are stored, old ones are not used.
				one.SourceTTL, one.FailureTTL, one.KeyTTL = 1, 1, -1
			}
			return one
		}
		return v.run(ctx, &feed{names: names, list: f.list, stdin: v.in})
	})
}
