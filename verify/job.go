package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/tlog"
)

// The defaults of [Limits] that others need, and what bounds trust documents.
const (
	DefaultFetches = 256
	DefaultInput   = 64 << 20

	MaxManifest  = 1 << 20  // octets of a manifest
	MaxDirectory = 64 << 10 // octets of a discovery document and of a key directory

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
	l.Fetches = cmp.Or(l.Fetches, DefaultFetches)
	l.Hosts = cmp.Or(l.Hosts, defaultHosts)
	l.Octets = cmp.Or(l.Octets, defaultOctets)
	l.Manifests = cmp.Or(l.Manifests, defaultManifests)
	l.Upstream = cmp.Or(l.Upstream, defaultUpstream)
	l.Input = cmp.Or(l.Input, DefaultInput)
	l.Time = cmp.Or(l.Time, defaultTime)
	return l
}

var (
	errOffline = errors.New("nothing is fetched, and there is no copy of it")
	errLimit   = errors.New("this verification has fetched as much as it may")
	errTime    = errors.New("this verification has taken as long as it may")
)

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
	docs    map[string]*doc
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
	stages   map[string]*Progress
}

// doc is a document that is fetched once.
type doc struct {
	once sync.Once
	snap *snapshot.Snapshot
	err  error
}

func (v *Verifier) job(kind Kind, input string) *job {
	v.once.Do(v.defaults)
	all := &shared{
		docs: map[string]*doc{}, hosts: map[string]bool{}, visited: map[string]bool{},
		given: map[string]*snapshot.Snapshot{}, from: map[string]*directory{},
		stages: map[string]*Progress{}, read: map[string]*checked{}, refused: map[string]int{},
	}
	j := &job{Verifier: v, all: all, limits: v.Limits.withDefaults()}
	all.until = time.Now().Add(j.limits.Time)
	return j.begin(kind, input)
}

// begin gives the job a new report.
func (j *job) begin(kind Kind, input string) *job {
	j.now = time.Now().UTC()
	if j.Now != nil {
		j.now = j.Now().UTC()
	}
	j.report = &Report{
		Version:         ReportVersion,
		Kind:            kind,
		Input:           input,
		CheckedAt:       j.now,
		Offline:         j.Offline,
		Verifier:        cmp.Or(j.Name, "ibid"),
		VerifierVersion: j.Version,
		Success:         []Finding{},
		Info:            []Finding{},
		Failure:         []Finding{},
		Manifests:       []ManifestReport{},
		Claims:          []ClaimReport{},
		Sources:         []SourceReport{},
		Upstream:        []*Report{},
		Level:           Levels{Why: []string{}},
	}
	return j
}

// add enters a finding into the list that it counts for.
func (r *Report) add(f Finding) {
	switch f.Counts {
	case CountPass:
		r.Success = append(r.Success, f)
	case CountInfo, CountWarning, CountUnverifiable:
		r.Info = append(r.Info, f)
	default:
		f.Counts = CountFailure
		r.Failure = append(r.Failure, f)
	}
}

// has reports whether findings of a manifest have one of some codes.
func has(list []Finding, address string, codes ...Status) bool {
	return slices.ContainsFunc(
		list,
		func(f Finding) bool { return f.Manifest == address && slices.Contains(codes, f.Code) },
	)
}

// fetch fetches a document, once in a job and within its limits. The error is a [*snapshot.FetchError].
func (j *job) fetch(ctx context.Context, r *snapshot.FetchRequest) (*snapshot.Snapshot, error) {
	key := clean(r.URL)
	if r.NoRedirect {
		key = fmt.Sprintf("trust %d %s", r.MaxBytes, key)
	}
	j.all.mu.Lock()
	d := j.all.docs[key]
	if d == nil {
		d = &doc{}
		j.all.docs[key] = d
	}
	j.all.mu.Unlock()
	d.once.Do(func() {
		if d.err = j.afford(r.URL); d.err == nil {
			d.snap, d.err = j.inTime(ctx, r)
			j.charge(d)
		}
	})
	return d.snap, d.err
}

// inTime fetches within the time of the job, and from a host that has refused twice only once.
func (j *job) inTime(ctx context.Context, r *snapshot.FetchRequest) (*snapshot.Snapshot, error) {
	host := hostOf(r.URL)
	j.all.mu.Lock()
	if j.all.refused[host] >= maxRefused {
		once := *r
		once.Retries, r = -1, &once
	}
	j.all.mu.Unlock()
	timed, cancel := context.WithDeadline(ctx, j.all.until)
	defer cancel()
	snap, err := j.Fetcher.Fetch(timed, r)
	switch {
	case err == nil:
		return snap, nil
	case timed.Err() != nil && ctx.Err() == nil:
		return nil, &snapshot.FetchError{URL: r.URL, Kind: snapshot.Blocked, Reason: reasonLimit, Err: errTime}
	}
	if f, ok := errors.AsType[*snapshot.FetchError](err); ok && f.Kind == snapshot.Unreachable {
		j.all.mu.Lock()
		defer j.all.mu.Unlock()
		j.all.refused[host]++
	}
	return nil, err
}

// afford counts a fetch, or says that it may not be made.
func (j *job) afford(address string) error {
	if j.Offline {
		return &snapshot.FetchError{URL: address, Kind: snapshot.Blocked, Reason: reasonOffline, Err: errOffline}
	}
	host := hostOf(address)
	j.all.mu.Lock()
	defer j.all.mu.Unlock()
	if j.all.fetched >= j.limits.Fetches || !j.all.hosts[host] && len(j.all.hosts) >= j.limits.Hosts {
		return overLimit(address)
	}
	j.all.fetched++
	j.all.hosts[host] = true
	return nil
}

func overLimit(address string) error {
	return &snapshot.FetchError{URL: address, Kind: snapshot.Blocked, Reason: reasonLimit, Err: errLimit}
}

// charge counts what a fetch cost beyond itself, also one that went wrong: its redirects, and the octets that are held
// now.
func (j *job) charge(d *doc) {
	var hops []string
	if f, ok := errors.AsType[*snapshot.FetchError](d.err); ok {
		hops = f.Hops
	} else if d.snap != nil && d.snap.FinalURL != d.snap.URL {
		hops = append(slices.Clone(d.snap.Hops), d.snap.FinalURL)
	}
	j.all.mu.Lock()
	defer j.all.mu.Unlock()
	j.all.fetched += len(hops)
	for _, address := range hops {
		j.all.hosts[hostOf(address)] = true
	}
	switch {
	case d.snap == nil:
	case j.all.octets+len(d.snap.Octets) > j.limits.Octets:
		d.snap, d.err = nil, overLimit(d.snap.URL)
	default:
		j.all.octets += len(d.snap.Octets)
	}
}

// Reasons of a blocked source that are this package's: the job is offline, or over its limits.
const (
	reasonOffline = "offline"
	reasonLimit   = "limit"
)

// Reasons of the fetcher that are of no document.
const (
	reasonCancelled = "cancelled"
	reasonClosed    = "closed"
)

// trusted fetches a document that says whom to trust: no redirects, no codings, neither from a copy nor kept as one.
func (j *job) trusted(ctx context.Context, address string, most int64) (*snapshot.Snapshot, error) {
	return j.fetch(ctx, &snapshot.FetchRequest{
		URL:        address,
		NoRedirect: true,
		Identity:   true,
		NoCopy:     true,
		MaxBytes:   most,
		Accept:     "application/json, */*;q=0.1",
	})
}

// grow says that there is more to do.
func (j *job) grow(stage string, n int) {
	j.all.progress.Lock()
	defer j.all.progress.Unlock()
	j.all.stage(stage).Total += n
}

// did says that something was done.
func (j *job) did(stage, what string) {
	j.all.progress.Lock()
	defer j.all.progress.Unlock()
	p := j.all.stage(stage)
	p.URL, p.Done = what, p.Done+1
	if j.Progress != nil {
		j.Progress(*p)
	}
}

// stage returns how far a stage is. The caller holds the lock.
func (s *shared) stage(name string) *Progress {
	p := s.stages[name]
	if p == nil {
		p = &Progress{Stage: name}
		s.stages[name] = p
	}
	return p
}

// end computes the state of the report.
func (j *job) end() *Report {
	r := j.report
	r.State = r.state()
	return r
}

func (r *Report) state() State {
	if len(r.Failure) > 0 {
		return Invalid
	}
	for _, f := range r.Info {
		if f.Counts == CountUnverifiable {
			return Unverifiable
		}
	}
	trusted := len(r.Manifests) > 0 && len(r.Sources) == 0 && !slices.ContainsFunc(r.Info, open)
	for i := range r.Manifests {
		trusted = trusted && r.Manifests[i].Trusted
	}
	if trusted {
		return Trusted
	}
	return Valid
}

// open reports whether a finding leaves open what there is to trust.
func open(f Finding) bool {
	return f.Code == NothingClaimed || f.Code == OutputUnchecked && f.Counts == CountWarning
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
