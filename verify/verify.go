package verify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/tlog"
)

// Verifier verifies. The zero value does so with the defaults, trusting nobody. It is safe for concurrent use once its
// fields are set; it must not be copied after its first use.
type Verifier struct {
	Fetcher *snapshot.Fetcher // nil: one of the defaults
	Texts   *snapshot.Texts   // nil: one of its own
	Checker support.Checker   // of claims against excerpts; nil: [support.Lexical]
	Judge   support.Checker   // a model that may say unsupported-claim; nil: nobody says so of an excerpt that is there
	Memory  Memory            // nil: a [MemoryMap]
	Copies  snapshot.Copies   // where sources are looked for when Offline; nil: nowhere

	// Archives are the host names whose copies of sources that cannot be read count as those; nil: those of [Archives].
	Archives []string

	// Trust says whose signatures make a report trusted: host names (with a port unless it is the usual one), or key
	// ids. A key that is named is trusted wherever a manifest with its signature comes from: an origin that publishes a
	// copy of it without its revocation hides that. So name hosts, unless the key is known from elsewhere.
	Trust        []string
	RequireLevel int  // a lower level fails (level-not-met, unsigned); 0: nothing is demanded
	Offline      bool // nothing is fetched: what is not in a bundle, Memory or Copies cannot be verified
	// bundles get the octets of the sources that are unchanged, so that they can be verified without a network
	KeepSources bool
	TestKeys    bool // the published keys of RFC 9421 are accepted: for tests, because everybody has them

	SourceTTL  time.Duration // how long a good verdict on a source is good for; 0: 24 h; negative: never
	FailureTTL time.Duration // how long any other is; 0: 15 min; negative: never

	Limits   Limits
	Name     string           // of the verifier, in reports and incidents; empty: ibid
	Version  string           // its version
	Now      func() time.Time // nil: time.Now
	Progress func(Progress)   // called, one at a time, when something was done; nil: nobody wants to know

	once        sync.Once
	own         *snapshot.Fetcher // made here; nil: there is none
	checkpoints sync.Mutex        // held while the largest one is replaced
}

// Progress is how far a job is.
type Progress struct {
	Stage       string // manifest, source, support (of all claims of a manifest)
	URL         string // what was just done: of the manifest, the source, and the manifest
	Done, Total int    // of the stage, in the whole job; Total may still grow
}

// Limits bound what one job may cost. Zero fields mean the defaults.
type Limits struct {
	// documents fetched for one job, redirects included, tries not, 256; what begins after cannot be verified
	Fetches int
	Hosts   int // hosts that they are fetched from, likewise, 64
	// octets of all these documents, which are held until the job ends, 256 MiB; what goes beyond cannot be verified
	Octets    int
	Manifests int // manifests of one response, 16
	Upstream  int // how deep manifests of manifests are followed, 3; negative: not at all
	Input     int // bytes of a response, a file or a bundle, 64 MiB

	// for all fetching, from when the job begins, 5 min; what is not fetched by then cannot be verified
	Time time.Duration
}

// Response is an HTTP response that was received, as it is to be verified.
type Response struct {
	URL     string // where it came from; empty: not known
	Status  int    // 0: not known
	Header  http.Header
	Trailer http.Header
	Body    []byte // without transfer coding; content codings that Header names are removed
	Cut     bool   // Body is not all of it: then it cannot be compared

	fetched bool // by us, from URL
	hinted  bool // URL is what the printed text of a redirect says
}

// BytesOptions say where the bytes to verify come from.
type BytesOptions struct {
	Name string // of the file, for the report
	URL  string // where a response came from, if it does not say so itself
}

// defaults fills what the caller left open.
func (v *Verifier) defaults() {
	if v.Fetcher == nil {
		v.own = snapshot.NewFetcher(&snapshot.FetchOptions{Copies: v.Copies})
		v.Fetcher = v.own
	}
	if v.Texts == nil {
		v.Texts = &snapshot.Texts{}
	}
	if v.Memory == nil {
		v.Memory = &MemoryMap{}
	}
	if v.Checker == nil {
		v.Checker = &support.Lexical{}
	}
}

// Close ends what the verifier itself began: the fetcher, if it was not given one. It is not used afterwards.
func (v *Verifier) Close() error {
	v.once.Do(v.defaults)
	if v.own == nil {
		return nil
	}
	return v.own.Close()
}

// Memory is what a verifier remembers from one job to the next: which bytes a manifest had, which response it was seen
// with, keys, checkpoints of logs and verdicts. Without it nothing of that can be noticed. Implementations are safe for
// concurrent use and never interpret a value; package verifytest tests one.
//
// A kind is a short word of this package, a key any text.
type Memory interface {
	// Recall returns the value; nil: there is none.
	Recall(ctx context.Context, kind, key string) ([]byte, error)
	// Remember keeps value unless there is one, and returns what is there now. Of several at once, one wins and all see
	// it.
	Remember(ctx context.Context, kind, key string, value []byte) ([]byte, error)
	// Replace keeps value in place of what is there.
	Replace(ctx context.Context, kind, key string, value []byte) error
}

// The kinds of memory. What they hold is this package's, and may change between versions; what cannot be read is as if
// it were not there.
const (
	memoryManifest   = "manifest"   // URL → sha256 of the body first seen there
	memoryOutput     = "output"     // sha256 of a manifest → hash of the response it was seen with
	memoryKeys       = "keys"       // origin → its keys and discovery, with the time
	memoryCheckpoint = "checkpoint" // origins of publisher and log → the largest checkpoint seen
	memoryVerdict    = "verdict"    // claim and source → what came of it, with the time
	memoryLog        = "log"        // origin of a publisher → the log that it had first
)

// defaultMemory bounds each kind of a [MemoryMap], in bytes.
const defaultMemory = 64 << 20

// MemoryMap is a [Memory] that ends with the program. The zero value is ready. Of each kind the oldest values are
// forgotten when there are too many: so what costs little to make many of, as verdicts do, pushes out no keys and no
// manifests.
type MemoryMap struct {
	Limit int // of the values of one kind with their keys, in bytes; 0: 64 MiB

	mu    sync.Mutex
	kinds map[string]*kindMemory
}

// kindMemory holds the values of a kind.
type kindMemory struct {
	values map[string][]byte
	order  []string // keys by first arrival
	size   int
}

// Recall implements [Memory].
func (m *MemoryMap) Recall(_ context.Context, kind, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kinds[kind]; k != nil {
		return bytes.Clone(k.values[key]), nil
	}
	return nil, nil
}

// Remember implements [Memory].
func (m *MemoryMap) Remember(_ context.Context, kind, key string, value []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kinds[kind]; k != nil && k.values[key] != nil {
		return bytes.Clone(k.values[key]), nil
	}
	m.set(kind, key, value)
	return bytes.Clone(value), nil
}

// Replace implements [Memory].
func (m *MemoryMap) Replace(_ context.Context, kind, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(kind, key, value)
	return nil
}

func (m *MemoryMap) set(kind, key string, value []byte) {
	const around = 128 // of an entry, about
	if m.kinds == nil {
		m.kinds = map[string]*kindMemory{}
	}
	k := m.kinds[kind]
	if k == nil {
		k = &kindMemory{values: map[string][]byte{}}
		m.kinds[kind] = k
	}
	if before, there := k.values[key]; there {
		k.size -= len(before)
	} else {
		k.size += len(key) + around
		k.order = append(k.order, key)
	}
	k.values[key] = append([]byte{}, value...) // never nil: an empty value is one
	for k.size += len(value); k.size > cmp.Or(m.Limit, defaultMemory); {
		oldest := k.order[0]
		k.size -= len(oldest) + around + len(k.values[oldest])
		delete(k.values, oldest)
		k.order = k.order[1:]
	}
}

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
