package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/tlog"
)

// The defaults of [Limits] that others need, and what bounds trust documents.
const (
	defaultFetches = 256
	DefaultInput   = 64 << 20

	maxManifest  = 1 << 20  // octets of a manifest
	maxDirectory = 64 << 10 // octets of a discovery document and of a key directory

	maxProof         = tlog.MaxCheckpoint + 16<<10 // octets of a proof
	defaultHosts     = 64
	defaultOctets    = 256 << 20
	defaultManifests = 16
	defaultUpstream  = 3
	defaultTime      = 5 * time.Minute

	maxRefused = 2 // fetches of one host that go wrong in a job; after that nothing is tried again there

	skew         = 300 * time.Second // by how much clocks may differ
	keyCache     = 24 * time.Hour    // how old keys may be that are used because they cannot be fetched
	keyFresh     = 5 * time.Minute   // how old keys may be that are not fetched again
	replayWindow = 24 * time.Hour    // how much older than its response a manifest may be that is not bound to it
	parallel     = 16                // documents of one job that are waited for at a time

	// maxExplained is how much one job compares to say what is similar to excerpts that are not found, in code points
	// of the text times 64 of the excerpt: about four seconds. It only explains. Of what is not found after that it
	// says that it is missing.
	maxExplained = 8 << 27
)

func (l Limits) withDefaults() Limits {
	l.Fetches = cmp.Or(l.Fetches, defaultFetches)
	l.Hosts = cmp.Or(l.Hosts, defaultHosts)
	l.Octets = cmp.Or(l.Octets, defaultOctets)
	l.Manifests = cmp.Or(l.Manifests, defaultManifests)
	l.Upstream = cmp.Or(l.Upstream, defaultUpstream)
	l.Input = cmp.Or(l.Input, DefaultInput)
	l.Time = cmp.Or(l.Time, defaultTime)
	return l
}

// job is one verification: a report that is being made.
type job struct {
	*Verifier

	all    *shared
	report *Report
	limits Limits
	now    time.Time
	depth  int // of upstream manifests
}

// shared is what a job and those for its upstream manifests have together.
type shared struct {
	mu      sync.Mutex
	docs    map[string]func() (*snapshot.Snapshot, error) // each fetched once
	hosts   map[string]bool
	fetched int
	octets  int
	visited map[string]bool               // manifests, by clean URL
	read    map[string]*checked           // those of them that could be read
	refused map[string]int                // fetches that went wrong, by host
	given   map[string]*snapshot.Snapshot // sources of a bundle, by URL
	from    map[string]*directory         // keys, by origin

	explained atomic.Int64 // of maxExplained
	until     time.Time    // when nothing more is fetched

	progress sync.Mutex
	stages   map[string]Progress
}

func (v *Verifier) job(kind Kind, input string) *job {
	v.once.Do(v.defaults)
	all := &shared{
		docs: map[string]func() (*snapshot.Snapshot, error){}, hosts: map[string]bool{}, visited: map[string]bool{},
		given: map[string]*snapshot.Snapshot{}, from: map[string]*directory{},
		stages: map[string]Progress{}, read: map[string]*checked{}, refused: map[string]int{},
	}
	j := &job{Verifier: v, all: all, limits: v.Limits.withDefaults()}
	all.until = time.Now().Add(j.limits.Time)
	j.newReport(kind, input)
	return j
}

func (j *job) newReport(kind Kind, input string) {
	j.now = time.Now().UTC()
	if j.Now != nil {
		j.now = j.Now().UTC()
	}
	j.report = &Report{
		Version: ReportVersion, Kind: kind, Input: input, CheckedAt: j.now, Offline: j.Offline,
		Verifier: cmp.Or(j.Name, "ibid"), VerifierVersion: j.Version, Level: Levels{Why: []string{}},
		Success: []Finding{}, Info: []Finding{}, Failure: []Finding{}, Manifests: []ManifestReport{},
		Claims: []ClaimReport{}, Sources: []SourceReport{}, Upstream: []*Report{},
	}
}

// finished returns the report with its state.
func (j *job) finished() *Report {
	r := j.report
	r.State = r.state()
	r.Findings.Sources = r.State
	for i := range r.Claims {
		n := &r.Findings.Claims
		switch c := &r.Claims[i]; c.Finding {
		case Supported:
			n.Supported++
		case Doubtful:
			n.Doubtful++
		default:
			n.NotChecked++
			switch c.Reason {
			case reasonUnsure:
				n.Unsure++
			case reasonFailed:
				n.Failed++
			}
		}
	}
	return r
}

// result returns the report, unless an error ended the job.
func (j *job) result(err error) (*Report, error) {
	if err != nil {
		return nil, fmt.Errorf("verifying: %w", err)
	}
	return j.finished(), nil
}

// fetchDocument fetches a document, once in a job and within its limits. The error is a [*snapshot.FetchError].
func (j *job) fetchDocument(ctx context.Context, r *snapshot.FetchRequest) (*snapshot.Snapshot, error) {
	key := clean(r.URL)
	if r.NoRedirect {
		key = fmt.Sprintf("trust %d %s", r.MaxBytes, key)
	}
	j.all.mu.Lock()
	fetched := j.all.docs[key]
	if fetched == nil {
		fetched = sync.OnceValues(func() (*snapshot.Snapshot, error) { return j.fetch(ctx, r) })
		j.all.docs[key] = fetched
	}
	j.all.mu.Unlock()
	return fetched()
}

// fetch fetches a document if the limits allow it, within the time of the job, and without retries from a host that has
// refused twice. It counts what that cost, also where it went wrong.
func (j *job) fetch(ctx context.Context, r *snapshot.FetchRequest) (*snapshot.Snapshot, error) {
	if j.Offline {
		return nil, blocked(r.URL, reasonOffline, "nothing is fetched, and there is no copy of it")
	}
	all, host := j.all, hostOf(r.URL)
	all.mu.Lock()
	if all.fetched >= j.limits.Fetches || !all.hosts[host] && len(all.hosts) >= j.limits.Hosts {
		all.mu.Unlock()
		return nil, blocked(r.URL, reasonLimit, overLimit)
	}
	all.fetched++
	all.hosts[host] = true
	if all.refused[host] >= maxRefused {
		once := *r
		once.Retries, r = -1, &once
	}
	all.mu.Unlock()
	timed, cancel := context.WithDeadline(ctx, all.until)
	defer cancel()
	snap, err := j.Fetcher.Fetch(timed, r)
	all.mu.Lock()
	defer all.mu.Unlock()
	var hops []string // redirects cost as much
	switch f, ok := errors.AsType[*snapshot.FetchError](err); {
	case err != nil && timed.Err() != nil && ctx.Err() == nil:
		err = blocked(r.URL, reasonLimit, "this verification has taken as long as it may")
	case ok:
		hops = f.Hops
		if f.Kind == snapshot.Unreachable {
			all.refused[host]++
		}
	case snap != nil && snap.FinalURL != snap.URL:
		hops = append(slices.Clone(snap.Hops), snap.FinalURL)
	}
	all.fetched += len(hops)
	for _, address := range hops {
		all.hosts[hostOf(address)] = true
	}
	if snap == nil {
		return nil, err
	}
	if all.octets+len(snap.Octets) > j.limits.Octets {
		return nil, blocked(snap.URL, reasonLimit, overLimit)
	}
	all.octets += len(snap.Octets)
	return snap, err
}

// Reasons of a blocked source that are this package's: the job is offline, or over its limits.
const (
	reasonOffline = "offline"
	reasonLimit   = "limit"
	overLimit     = "this verification has fetched as much as it may"
)

func blocked(address, reason, why string) error {
	return &snapshot.FetchError{URL: address, Kind: snapshot.Blocked, Reason: reason, Err: errors.New(why)}
}

// fetchTrusted fetches a document that says whom to trust: no redirects, no codings, neither from a copy nor kept as
// one.
func (j *job) fetchTrusted(ctx context.Context, address string, most int64) (*snapshot.Snapshot, error) {
	return j.fetchDocument(ctx, &snapshot.FetchRequest{
		URL: address, NoRedirect: true, Identity: true, NoCopy: true, MaxBytes: most,
		Accept: "application/json, */*;q=0.1",
	})
}

// addToDo says that a stage has n more things to do.
func (j *job) addToDo(stage string, n int) {
	j.all.progress.Lock()
	defer j.all.progress.Unlock()
	p := j.all.stages[stage]
	p.Stage, p.Total = stage, p.Total+n
	j.all.stages[stage] = p
}

// setDone says that one thing of a stage was done, and tells whoever watches.
func (j *job) setDone(stage, what string) {
	j.all.progress.Lock()
	defer j.all.progress.Unlock()
	p := j.all.stages[stage]
	p.URL, p.Done = what, p.Done+1
	j.all.stages[stage] = p
	if j.Progress != nil {
		j.Progress(p)
	}
}

// origin returns the scheme and authority of a URL, in the form in which two are compared; empty: it has none.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Scheme) + "://" + hostOf(address)
}

// hostOf returns the host of a URL in lower case, with its port unless that is the usual one of the scheme.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || port == "443" && strings.EqualFold(u.Scheme, "https") ||
		port == "80" && strings.EqualFold(u.Scheme, "http") {
		return host
	}
	return host + ":" + port
}

// isAt reports whether a URL is of a host, which may be written without its port.
func isAt(address, host string) bool {
	at := hostOf(address)
	return at == host || strings.HasPrefix(at, host+":")
}

// clean returns an address in the form in which two are compared; what is no web address stays as it is.
func clean(address string) string {
	if c, err := snapshot.CleanURL(address); err == nil {
		return c
	}
	return address
}

// unforgeable reports whether nobody on the way can have written what was fetched: by TLS, or because the address is
// one of a special network, which the fetcher reaches only if somebody chose so.
func unforgeable(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	a, _ := netip.ParseAddr(u.Hostname())
	a = a.Unmap()
	return u.Scheme == "https" || u.Hostname() == "localhost" ||
		a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
