package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// localAgent is the agent of a manifest if none is given.
const localAgent = "localhost"

// manifestBuildFlags are the flags of ibid manifest build.
type manifestBuildFlags struct {
	self, agent, run      string
	excerpts              string // a manifest.Excerpts
	noFetch, sign, bundle bool
	allow                 server.Networks // networks that may be connected to besides the public ones
	tenant                string
	textAt, textEvent     string
}

func newManifestBuild(w world) *cobra.Command {
	c := server.Defaults()
	f := &manifestBuildFlags{}
	cmd := &cobra.Command{
		Use:   "build ID|FILE|-",
		Short: "Build a manifest of a stored answer or run, or of an answer in a file",
		Long: `Fetches the sources that an answer cites and prints its manifest: each claim with
the excerpts it rests on, and the hashes of what was fetched. ID is that of a
stored answer (ans_…) or of a run; FILE is an answer document, or a provider's
response.

ibid serve --publish 3 does this by itself and serves the manifests. Use this
command to preview one, or for an agent that serves it itself at the URL of --self.
With --sign and --bundle the output is a stored bundle: manifest, signature and the
sources that were fetched, for ibid verify, also --offline.

Exit codes: 0 done; 2 if the answer, or one of its sources, could not be read.`,
		Example: `  ibid manifest build ans_0192f0c1-7d2e-7b3c-8a4d-5e6f70819203
  ibid manifest build answer.json --self https://agent.example/runs/1/cite --sign`,
		Args: wants(1, "ibid manifest build takes one answer",
			"the id of a stored answer or run, or a file; ibid manifest build - reads standard input"),
		RunE: func(cmd *cobra.Command, names []string) error {
			b := &manifestBuild{world: w, flags: f, cmd: cmd, config: c}
			return b.run(names[0])
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.self, "self", "", "the `URL` that the manifest will be served at")
	flags.StringVar(&f.agent, "agent-id", "",
		"the agent's `name` in manifests: agent.example/v1 (default the publishing host with /v1)")
	flags.StringVar(&f.run, "run", "",
		"the `name` of the run in the manifest (default one that does not reveal your own)")
	flags.StringVar(&f.textAt, "text-at", "",
		"where the answer's text is in your JSON responses, or in the data of their events: a JSON `POINTER`")
	flags.StringVar(&f.textEvent, "text-event", "", "the `NAME` of these events")
	flags.BoolVar(&f.noFetch, "no-fetch", false, "fetch no sources; the manifest then has no hashes")
	flags.BoolVar(&f.sign, "sign", false, "sign it with the newest key of --data, and print a bundle")
	flags.BoolVar(&f.bundle, "bundle", false, "print a stored bundle")
	flags.Bool("json", false, "write JSON, which is the default")
	f.excerpts = string(manifest.ExcerptsPublic)
	server.AddExcerptsFlag(flags, &f.excerpts)
	server.AddNetFlag(flags, &f.allow)
	addTenantFlag(flags, &f.tenant)
	c.AddStoreFlags(cmd.Flags())
	return cmd
}

// manifestBuild is one call of ibid manifest build.
type manifestBuild struct {
	world

	flags  *manifestBuildFlags
	cmd    *cobra.Command
	config *server.Config

	mu   sync.Mutex
	read []*snapshot.Snapshot // the sources, in order of arrival
}

func (b *manifestBuild) run(name string) error {
	if b.flags.sign && b.flags.self == "" {
		return usagef("a signature is valid for one URL only", "--sign needs --self")
	}
	if b.flags.self != "" {
		if _, err := server.ParseWebURL(b.flags.self); err != nil {
			return usagef("", "--self: %w", err)
		}
		if !manifest.Speaks(b.flags.self, b.agent()) {
			return usagef(
				"it must begin with that host, as in agent.example/v1",
				"--agent-id %s does not begin with the host of --self", b.agent(),
			)
		}
	}
	sub, err := b.find(name)
	if err != nil {
		return err
	}
	m, err := b.build(b.cmd.Context(), sub)
	if err != nil {
		return err
	}
	if err := b.write(m); err != nil {
		return err
	}
	return b.comment(m)
}

// agent returns the agent's name.
func (b *manifestBuild) agent() string {
	if b.flags.agent != "" || b.flags.self == "" {
		return cmp.Or(b.flags.agent, localAgent)
	}
	u, err := url.Parse(b.flags.self)
	if err != nil {
		return localAgent
	}
	return strings.ToLower(u.Host) + "/v1"
}

// build builds the manifest.
func (b *manifestBuild) build(ctx context.Context, sub *manifestSubject) (*manifest.Manifest, error) {
	builder := &sub.Builder
	builder.TextAt, builder.TextEvent = b.flags.textAt, b.flags.textEvent
	builder.Excerpts, builder.By = manifest.Excerpts(b.flags.excerpts), manifest.ByObserver
	builder.Self, builder.RunID, builder.AgentID = b.flags.self, cmp.Or(b.flags.run, builder.RunID), b.agent()
	if !b.flags.noFetch {
		fetcher := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: b.flags.allow})
		defer func() { _ = fetcher.Close() }() // only reads
		builder.Read = func(ctx context.Context, url string) (*snapshot.Snapshot, error) {
			snap, err := fetcher.Fetch(ctx, &snapshot.FetchRequest{URL: url})
			if err == nil {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.read = append(b.read, snap)
			}
			return snap, err
		}
	}
	m, err := builder.Build(ctx, sub.answer, sub.trail)
	if err != nil {
		return nil, fmt.Errorf("build the manifest: %w", err)
	}
	slices.SortFunc(b.read, func(x, y *snapshot.Snapshot) int { return strings.Compare(x.URL, y.URL) })
	return m, nil
}

// write prints the manifest, or the bundle.
func (b *manifestBuild) write(m *manifest.Manifest) error {
	if !b.flags.sign && !b.flags.bundle {
		return writeBytes(b.out)(m.Canonical())
	}
	signed, err := manifest.Unsigned(m)
	if b.flags.sign {
		signed, err = b.signed(m)
	}
	if err != nil {
		return err
	}
	for _, snap := range b.read {
		signed.Sources = append(
			signed.Sources,
			manifest.SignedSource{URL: snap.URL, MediaType: snap.MediaType, Hash: snap.Hash, Octets: snap.Octets},
		)
	}
	return json.NewEncoder(b.out).Encode(signed)
}

// signed signs the manifest with a key of the data directory.
func (b *manifestBuild) signed(m *manifest.Manifest) (*manifest.Signed, error) {
	ring, err := openRing(b.cmd, b.config, b.world)
	if err != nil {
		return nil, err
	}
	key, signer, err := ring.Signer(keyring.Manifest)
	if errors.Is(err, keyring.ErrNoKey) {
		return nil, usagef(
			"ibid key new creates one; see --data", "sign the manifest: %w in %s", err, b.config.KeyDir(),
		)
	}
	if err != nil {
		return nil, fmt.Errorf("sign the manifest: %w", err)
	}
	signed, err := manifest.Sign(m, key, signer, time.Now())
	if err != nil {
		return nil, err
	}
	signed.JWKS, err = ring.Directory(true)
	return signed, err
}

// comment reports what the manifest lacks.
func (b *manifestBuild) comment(m *manifest.Manifest) error {
	var unread error
	for i := range m.Sources {
		s := &m.Sources[i]
		if s.Unavailable == "" || s.Unavailable == manifest.NotRead {
			continue
		}
		say(b.err, "%s: %s", s.URL, s.Unavailable)
		switch s.Unavailable {
		case string(snapshot.Blocked):
			hint(b.err, "if it is in your own network, allow that with --allow-net")
			unread = errReported
		case string(snapshot.Unreachable), string(snapshot.Gone), string(snapshot.AccessDenied),
			string(snapshot.TooLarge), string(snapshot.RobotsDisallowed):
			unread = errReported
		}
	}
	level, why := m.Level(b.flags.sign)
	say(b.err, "%s, %s, level %d", plural(len(m.Claims), "claim"), plural(len(m.Sources), "source"), level)
	for _, reason := range why[:min(len(why), maxReasons)] {
		say(b.err, "for the next level: %s", reason)
	}
	if more := len(why) - maxReasons; more > 0 {
		say(b.err, "and %d more; ibid manifest show lists them", more)
	}
	return unread
}

// maxReasons limits the listed reasons for not reaching the next level.
const maxReasons = 5

// manifestSubject is the subject of a manifest.
type manifestSubject struct {
	manifest.Builder // with the details of the run and the response

	answer *ibid.Answer
	trail  *trail.Trail // nil if there is no run
}

// find reads the answer: from a file if there is one of that name, else from the store.
func (b *manifestBuild) find(name string) (*manifestSubject, error) {
	if isURL(name) {
		return nil, usagef(
			"ibid verify checks published answers", "%s is a URL, but the answer must be stored or in a file", name,
		)
	}
	if _, err := os.Stat(name); name == stdinName || err == nil || strings.ContainsRune(name, filepath.Separator) {
		answer, err := readAnswer(name, ibid.DecodeOptions{}, b.world)
		if err != nil {
			return nil, err
		}
		if err := checkRead(name, answer); err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(answer.Text)) // the name reveals nothing
		builder := manifest.Builder{RunID: hex.EncodeToString(sum[:16])}
		return &manifestSubject{Builder: builder, answer: answer}, nil
	}
	var sub *manifestSubject
	err := withStore(b.cmd, b.config, b.world, false, func(ctx context.Context, s *store.Store) error {
		var err error
		sub, err = b.stored(ctx, s, name)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, usagef(
			"--data or --db names the database of ibid serve",
			"there is no file, stored answer or run %s", name,
		)
	}
	return sub, err
}

// checkRead refuses an answer whose citations are there but were not read, such as those of an answer document without
// its version or unit: its manifest would say that it claims nothing.
func checkRead(name string, answer *ibid.Answer) error {
	if len(answer.Citations) > 0 {
		return nil
	}
	for _, issue := range answer.Issues {
		if issue.Code == wire.IssueUnread {
			return usagef(
				"an answer document has a version and a unit; ibid cite --json writes one",
				"%s: %s could not be read, so that the manifest would have no claims", name, issue.Detail,
			)
		}
	}
	return nil
}

// stored reads a stored answer, or a run.
func (b *manifestBuild) stored(ctx context.Context, s *store.Store, id string) (*manifestSubject, error) {
	call, err := s.Call(ctx, b.flags.tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return b.storedRun(ctx, s, id)
	}
	if err != nil {
		return nil, err
	}
	sub := &manifestSubject{answer: call.Answer}
	of := id // a call without a run is published under its answer's id
	if call.Run != "" {
		of = call.Run
		if sub.trail, err = s.Trail(ctx, b.flags.tenant, call.Run); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	if call.Body != nil {
		sub.BodyHash, sub.MediaType = call.Body.Hash, call.Body.MediaType
	}
	sub.RunID, err = s.Pub(ctx, b.flags.tenant, of)
	return sub, err
}

// storedRun reads a run with its final answer.
func (b *manifestBuild) storedRun(ctx context.Context, s *store.Store, run string) (*manifestSubject, error) {
	t, err := s.Trail(ctx, b.flags.tenant, run)
	if err != nil {
		return nil, err
	}
	sub := &manifestSubject{trail: t}
	if id := t.FinalID(); id != "" {
		call, err := s.Call(ctx, b.flags.tenant, id)
		if err != nil {
			return nil, err
		}
		sub.answer = call.Answer
	}
	if sub.answer == nil {
		if sub.answer, err = t.FinalAnswer(ctx, nil, nil); err != nil {
			return nil, err
		}
		if sub.answer != nil && sub.answer.Provider == "" {
			sub.QuotedBy = manifest.OriginPublisher
		}
	}
	if sub.answer == nil || strings.TrimSpace(sub.answer.Text) == "" {
		return nil, usagef("POST /v1/runs/"+t.ID+"/finish records it", "run %s has no final answer", t.ID)
	}
	sub.RunID, err = s.Pub(ctx, b.flags.tenant, run)
	return sub, err
}
