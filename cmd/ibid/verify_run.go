package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// verifyAtOnce is the number of inputs verified at a time.
const verifyAtOnce = 8

// verifying is one call of ibid verify.
type verifying struct {
	world

	flags     *verifyFlags
	turns     *turns
	store     *store.Store // nil if nothing is stored
	verifier  func(verify.Memory) *verify.Verifier
	progress  func(verify.Progress) // nil if no progress is shown
	poster    *verify.Poster        // nil unless incidents are sent
	reports   []*verify.Report      // all so far, for JUnit
	told      int                   // reports so far
	count     map[string]int        // of reports, by state; "" counts unreadable inputs
	denied    int                   // claims that differ, or that a judge denies
	failed    bool                  // a report fails by --fail-on
	incidents int                   // new ones
	// an address was refused that --allow-net could allow, and no report suggested it
	blocked bool
}

// verified is the result for one input.
type verified struct {
	report *verify.Report
	hint   string // for an input that could not be read
	draft  *draft
}

func (v *verifying) run(ctx context.Context, inputs *feed) error {
	v.count = map[string]int{}
	if name := v.flags.resume; name != "" {
		done, err := resume(name)
		if err != nil {
			return err
		}
		v.out, inputs.done, inputs.skip = done, done, done.count
		defer func() { _ = done.Close() }() // every line was written
	}
	var junit *os.File
	if v.flags.junit != "" {
		var err error
		if junit, err = v.createJUnit(); err != nil { // fail before the work, not after it
			return err
		}
	}
	step, end := v.showProgress(inputs)
	err := inOrder(ctx, verifyAtOnce, inputs.items, v.one, func(it *item, one verified) error {
		defer inputs.room.Release(it.held)
		if one.draft.isOutdated() {
			one = v.one(ctx, it)
		}
		if err := v.turns.keep(ctx, one.draft); err != nil {
			return err
		}
		step()
		if len(inputs.names) == 1 && !inputs.many() {
			end()
		}
		return v.tell(ctx, one)
	})
	end()
	err = errors.Join(err, inputs.err)
	if junit != nil {
		err = errors.Join(err, v.writeJUnit(junit))
	}
	if err != nil {
		return err
	}
	v.sum(inputs.many())
	switch {
	case v.count[""] > 0:
		return errReported
	case v.failed:
		return errNo
	case v.count[string(verify.Unverifiable)]+v.count[string(verify.Pending)] > 0:
		return errReported
	}
	return nil
}

// one verifies one input.
func (v *verifying) one(ctx context.Context, in *item) verified {
	d := v.turns.draft()
	verifier, err := v.verifier(d), in.err
	var report *verify.Report
	switch {
	case err != nil:
	case isURL(in.name):
		report, err = verifier.URL(ctx, in.name)
	default:
		if in.data == nil { // else it was already read, perhaps from a pipe
			in.data, err = readVerified(in.name, v.in)
		}
		if err == nil {
			report, err = verifier.Bytes(ctx, in.data, &verify.BytesOptions{Name: in.name, URL: v.flags.url})
		}
	}
	if err == nil {
		return verified{report: report, draft: d}
	}
	advice := explain(err).hint
	switch {
	case errors.Is(err, os.ErrNotExist) && strings.Contains(in.name, "."):
		advice = "name a file, or a URL that begins with https://"
	case errors.Is(err, verify.ErrUnrecognised):
		advice = "a response needs its header; use curl -i"
	}
	return verified{&verify.Report{
		Version:         verify.ReportVersion,
		Input:           in.name,
		CheckedAt:       time.Now().UTC(),
		Verifier:        "ibid",
		VerifierVersion: readBuild().Version,
		Offline:         v.flags.offline,
		Success:         []verify.Finding{},
		Info:            []verify.Finding{},
		Failure:         []verify.Finding{},
		Manifests:       []verify.ManifestReport{},
		Claims:          []verify.ClaimReport{},
		Sources:         []verify.SourceReport{},
		Upstream:        []*verify.Report{},
		Level:           verify.Levels{Why: []string{}},
		Error:           strings.TrimPrefix(err.Error(), "verifying: "),
	}, advice, d}
}

// readVerified reads a file. It does not use openInput because in the output of curl -i only the body may be
// compressed.
func readVerified(name string, stdin io.Reader) ([]byte, error) {
	from, closeFile, err := openFile(name, stdin)
	if err != nil {
		return nil, bare(err)
	}
	defer closeFile()
	b, err := io.ReadAll(io.LimitReader(from, verify.DefaultInput+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(b) > verify.DefaultInput {
		return nil, fmt.Errorf("it has more than %d MiB", verify.DefaultInput>>20)
	}
	return b, nil
}

// tell writes a report and stores its failures.
func (v *verifying) tell(ctx context.Context, one verified) error {
	r := one.report
	v.told++
	v.count[string(r.State)]++
	v.failed = v.failed || r.Fails(verify.FailOn(v.flags.failOn))
	v.denied += r.Findings.Claims.Denied()
	if v.flags.junit != "" {
		v.reports = append(v.reports, r)
	}
	var added []verify.Incident
	if v.store != nil && r.Error == "" {
		var err error
		if added, err = v.store.AddIncidents(ctx, v.flags.tenant, verify.Incidents(r)); err != nil {
			return err
		}
		v.incidents += len(added)
	}
	if v.flags.save != "" {
		if err := v.save(r); err != nil {
			return err
		}
	}
	v.blocked = v.blocked || refused(r) && (v.flags.json || !strings.Contains(r.Next(), "--allow-net"))
	if err := v.write(r, one.hint); err != nil {
		return err
	}
	if v.poster != nil && v.store != nil {
		return v.post(ctx, r, added)
	}
	return nil
}

// write writes a report, or the reason why there is none. A terminal gets it unfiltered: the report is already safe,
// and the filter would remove its colours.
func (v *verifying) write(r *verify.Report, advice string) error {
	var err error
	switch {
	case v.flags.json:
		err = json.NewEncoder(v.out).Encode(r)
	case r.Error != "":
		say(v.err, "read %s: %s", r.Input, r.Error)
		hint(v.err, advice)
	default:
		out, colour := v.out, false
		if terminal, ok := v.out.(*cleaner); ok {
			none, _ := v.env("NO_COLOR")
			term, _ := v.env("TERM")
			out, colour = terminal.w, none == "" && term != "dumb"
		}
		if v.told > v.count[""]+1 {
			_, err = io.WriteString(out, "\n")
		}
		if err == nil {
			err = r.WriteText(out, colour)
		}
	}
	if err != nil {
		return fmt.Errorf("write standard output: %w", bare(err))
	}
	return nil
}

// save stores the bundles of a report's manifests, each named by the digest of its body.
func (v *verifying) save(r *verify.Report) error {
	for i := range r.Manifests {
		m := &r.Manifests[i]
		if m.Bundle == nil || m.SHA256 == "" {
			continue
		}
		b, err := json.Marshal(m.Bundle)
		if err == nil {
			err = os.MkdirAll(v.flags.save, 0o777) //nolint:gosec // less the umask: the directory is the caller's
		}
		if err == nil {
			name := filepath.Join(v.flags.save, m.SHA256+".json")
			err = os.WriteFile(name, append(b, '\n'), 0o666) //nolint:gosec // as above
		}
		if err != nil {
			return fmt.Errorf("save the bundle of %s: %w", m.SHA256, err)
		}
	}
	for _, up := range r.Upstream {
		if err := v.save(up); err != nil {
			return err
		}
	}
	return nil
}

// refused reports whether an address was refused because of its network or port.
func refused(r *verify.Report) bool {
	const network, port = "network", "port"
	for i := range r.Info {
		f := &r.Info[i]
		if f.Code == verify.ResponseUnreadable || f.Code == verify.ManifestBlocked {
			if strings.Contains(f.Detail, "blocked ("+network+")") || strings.Contains(f.Detail, "blocked ("+port+")") {
				return true
			}
		}
	}
	for i := range r.Claims {
		for k := range r.Claims[i].Sources {
			if s := &r.Claims[i].Sources[k].Result; s.Status == verify.Blocked &&
				(s.Reason == network || s.Reason == port) {
				return true
			}
		}
	}
	return false
}

// createJUnit opens the file for the JUnit report without truncating it.
func (v *verifying) createJUnit() (*os.File, error) {
	f, err := os.OpenFile(v.flags.junit, os.O_WRONLY|os.O_CREATE, 0o666) //nolint:gosec // as os.Create makes files
	if err != nil {
		return nil, usagef("--junit names the file to write", "write %s: %w", v.flags.junit, bare(err))
	}
	return f, nil
}

// writeJUnit writes the JUnit report. A regular file keeps the older report until the new one is complete; pipes and
// devices are written directly.
func (v *verifying) writeJUnit(f *os.File) error {
	var report bytes.Buffer
	err := verify.WriteJUnit(&report, verify.FailOn(v.flags.failOn), v.reports...)
	info, statErr := f.Stat()
	name, linkErr := filepath.EvalSymlinks(v.flags.junit)
	regular := statErr == nil && linkErr == nil && info.Mode().IsRegular()
	if err == nil && !regular {
		_, err = f.Write(report.Bytes())
	}
	err = errors.Join(err, f.Close())
	if err == nil && regular {
		err = file.Replace(name, report.Bytes(), info.Mode().Perm())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", v.flags.junit, bare(err))
	}
	return nil
}

// sum summarises the results of several inputs, and what was stored.
func (v *verifying) sum(many bool) {
	if n := v.told; n > 1 || many {
		var parts []string
		for _, state := range []verify.State{
			verify.Trusted, verify.Valid, verify.Pending, verify.Unverifiable, verify.Invalid,
		} {
			if of := v.count[string(state)]; of > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", of, state))
			}
		}
		if of := v.count[""]; of > 0 {
			parts = append(parts, fmt.Sprintf("%d could not be read", of))
		}
		if v.denied > 0 {
			parts = append(parts, plural(v.denied, "differing claim"))
		}
		say(v.err, "%s: %s", plural(n, "input"), cmp.Or(strings.Join(parts, ", "), "nothing left to do"))
	}
	if v.blocked {
		hint(
			v.err,
			"if a blocked address is in your own network, allow that with --allow-net CIDR, such as --allow-net "+
				"127.0.0.0/8",
		)
	}
	if v.incidents > 0 {
		say(v.err, "%s stored; ibid incidents lists them", plural(v.incidents, "new incident"))
	}
}

// showProgress shows progress if standard error is a terminal: the number of inputs done, the part of a list read, or
// the number of sources of one input. If several reports go to the terminal, they show the progress.
func (v *verifying) showProgress(inputs *feed) (step, end func()) {
	n := len(inputs.names)
	if _, seen := v.err.(*cleaner); !seen || (n > 1 || inputs.many()) && isTerminal(v.out) && !v.flags.json {
		return func() {}, func() {}
	}
	var bar *progress
	switch {
	case inputs.many():
		bar = newProgress([]string{inputs.list}, true, v.world)
		inputs.through, n = bar.watch, 0
	case n == 1:
		bar = countProgress(n, "sources", v.world)
	default:
		bar = countProgress(n, "inputs", v.world)
	}
	step = bar.step
	if n < 2 {
		step = func() {}
	}
	if n == 1 {
		v.progress = func(p verify.Progress) {
			if p.Stage != "source" {
				return
			}
			bar.bar.SetTotal(int64(max(p.Total, p.Done)+1), false) // it is done when the report is
			bar.set(p.Done)
		}
	}
	return step, sync.OnceFunc(bar.over(&v.err))
}

// Inputs are verified concurrently, but each as if all previous ones had been verified: whether a response is called a
// replay may depend on one of them. So each input sees the memory through a draft. Drafts are committed in the order of
// the inputs; an input that has read a value that changed since is verified again.

// memoryKey is the key of a remembered value.
type memoryKey struct{ kind, key string }

// turns is the memory shared by the inputs.
type turns struct {
	verify.Memory

	kept    atomic.Int64        // drafts committed so far
	changed map[memoryKey]int64 // the last draft that changed a value
}

func newTurns(m verify.Memory) *turns { return &turns{Memory: m, changed: map[memoryKey]int64{}} }

// draft returns a draft for one input.
func (t *turns) draft() *draft {
	return &draft{turns: t, since: t.kept.Load(), own: map[memoryKey]*drafted{}, read: map[memoryKey]bool{}}
}

// isOutdated reports whether a value that the draft has read has changed since.
func (d *draft) isOutdated() bool {
	for at := range d.read {
		if d.turns.changed[at] > d.since {
			return true
		}
	}
	return false
}

// keep commits a draft.
func (t *turns) keep(ctx context.Context, d *draft) error {
	turn := t.kept.Load() + 1
	for _, at := range d.order {
		keep := t.Replace
		if one := d.own[at]; one.first {
			keep = func(ctx context.Context, kind, key string, value []byte) error {
				_, err := t.Remember(ctx, kind, key, value)
				return err
			}
		}
		if err := keep(ctx, at.kind, at.key, d.own[at].value); err != nil {
			return err
		}
		t.changed[at] = turn
	}
	t.kept.Store(turn)
	if turn%1024 == 0 { // older drafts have been committed
		maps.DeleteFunc(t.changed, func(_ memoryKey, changed int64) bool { return changed < turn-4*verifyAtOnce })
	}
	return nil
}

// draft is a [verify.Memory] whose values are private until it is committed.
type draft struct {
	turns *turns
	since int64 // drafts committed when it was created

	mu    sync.Mutex
	own   map[memoryKey]*drafted
	order []memoryKey // of own
	read  map[memoryKey]bool
}

// drafted is a value to be remembered.
type drafted struct {
	value []byte
	first bool // only unless there is another one
}

// Recall implements [verify.Memory].
func (d *draft) Recall(ctx context.Context, kind, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.recall(ctx, memoryKey{kind, key})
}

func (d *draft) recall(ctx context.Context, at memoryKey) ([]byte, error) {
	if one := d.own[at]; one != nil {
		return slices.Clone(one.value), nil
	}
	d.read[at] = true
	return d.turns.Recall(ctx, at.kind, at.key)
}

// Remember implements [verify.Memory].
func (d *draft) Remember(ctx context.Context, kind, key string, value []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := memoryKey{kind, key}
	if there, err := d.recall(ctx, at); err != nil || there != nil {
		return there, err
	}
	d.write(at, value, true)
	return slices.Clone(value), nil
}

// Replace implements [verify.Memory].
func (d *draft) Replace(_ context.Context, kind, key string, value []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write(memoryKey{kind, key}, value, false)
	return nil
}

func (d *draft) write(at memoryKey, value []byte, first bool) {
	if d.own[at] == nil {
		d.order = append(d.order, at)
	}
	d.own[at] = &drafted{append([]byte{}, value...), first} // never nil: an empty value is a value
}
