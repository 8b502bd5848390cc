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

// Verifier verifies citations. The zero value has the defaults and trusts nobody. It is safe for concurrent use once
// its fields are set; it must not be copied after its first use.
type Verifier struct {
	Fetcher *snapshot.Fetcher // nil means one with the default options
	Texts   *snapshot.Texts   // nil means a new one
	Checker support.Checker   // compares claims with excerpts; nil means [support.Lexical]
	Judge   support.Checker   // is asked instead of Checker if it is not nil: see [support.WithJudge]
	Memory  Memory            // nil means a [MemoryMap]
	Copies  snapshot.Copies   // where sources are read from when Offline; nil if nowhere

	// Archives are the host names of archives whose copies may stand in for sources that cannot be read. Nil means the
	// well-known ones.
	Archives []string

	// Trust lists the signers that make a report trusted: host names (with a port unless it is the default one), or key
	// ids. A key listed by id is trusted wherever a manifest signed by it comes from, and an origin that publishes a
	// copy of the key can omit its revocation. So list hosts, unless you know the key from elsewhere.
	Trust        []string
	RequireLevel int  // a lower level fails (level-not-met, unsigned); 0 means no requirement
	Offline      bool // fetch nothing: only what is in a bundle, Memory or Copies can be verified
	// include the octets of unchanged sources in bundles, so that they can be verified without a network
	KeepSources bool
	TestKeys    bool // accept the keys published in RFC 9421: for tests only, as everybody has them

	SourceTTL  time.Duration // how long a passing result for a source is reused; 0 means 24 h, negative never
	FailureTTL time.Duration // how long any other result is; 0 means 15 min, negative never
	// Wait is how long a manifest that is not built yet is waited for, as its Retry-After asks: until then each fetch
	// of a live answer announces one that is not built. 0 means not at all.
	Wait time.Duration

	KeyTTL time.Duration // how long fetched keys are not fetched again; 0 means 5 min, negative always fetches

	Limits   Limits
	Name     string           // of the verifier, in reports and incidents; empty means ibid
	Version  string           // of the verifier
	Now      func() time.Time // nil means time.Now
	Progress func(Progress)   // called after each step, never concurrently; nil disables it

	once        sync.Once
	ownFetcher  *snapshot.Fetcher // created by defaults; nil if Fetcher was set
	checkpoints sync.Mutex        // held while the largest checkpoint is replaced
}

// Progress reports how far a job has come.
type Progress struct {
	Stage       string // manifest, source, support (of all claims of a manifest)
	URL         string // of the manifest, source, or manifest (for support) that was just done
	Done, Total int    // for the stage, in the whole job; Total may still grow
	Status      Status // what was found about the source that was just done; empty in the other stages
}

// Limits bound what one job may cost. Zero fields mean the defaults.
type Limits struct {
	// documents fetched for one job, counting redirects but not retries, 256; later ones cannot be verified
	Fetches int
	Hosts   int // hosts that they are fetched from, counted likewise, 64
	// octets of all these documents, which are held until the job ends, 256 MiB; anything beyond cannot be verified
	Octets    int
	Manifests int // manifests of one response, 16
	Upstream  int // how deep upstream manifests are followed, 3; negative means not at all
	Input     int // bytes of a response, a file or a bundle, 64 MiB

	// for all fetching, from the start of the job, 5 min; what is not fetched by then cannot be verified
	Time time.Duration
}

// Response is a received HTTP response to verify.
type Response struct {
	URL     string // where it came from; empty if unknown
	Status  int    // 0 if unknown
	Header  http.Header
	Trailer http.Header
	Body    []byte // without transfer coding, and without the content codings that Header names
	Cut     bool   // Body is incomplete and cannot be compared

	fetched bool // by the verifier, from URL
	hinted  bool // URL comes from the Location of a printed redirect
}

// BytesOptions describe where the bytes to verify come from.
type BytesOptions struct {
	Name string // file name, for the report
	URL  string // where a response came from, if the bytes do not contain it
}

// defaults fills the fields that the caller left unset.
func (v *Verifier) defaults() {
	if v.Fetcher == nil {
		v.ownFetcher = snapshot.NewFetcher(&snapshot.FetchOptions{Copies: v.Copies})
		v.Fetcher = v.ownFetcher
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

// Close closes the fetcher that the verifier created, if it was not given one. The verifier must not be used
// afterwards.
func (v *Verifier) Close() error {
	v.once.Do(v.defaults)
	if v.ownFetcher == nil {
		return nil
	}
	return v.ownFetcher.Close()
}

// Memory stores what a verifier remembers between jobs: the bytes of each manifest, the response it was seen with,
// keys, log checkpoints and results. Changes in these cannot be noticed without it. Implementations must be safe for
// concurrent use and must not interpret values; package verifytest tests one.
//
// A kind is a short word chosen by this package; a key is any text.
type Memory interface {
	// Recall returns the value, or nil if there is none.
	Recall(ctx context.Context, kind, key string) ([]byte, error)
	// Remember stores value unless there is one already, and returns the stored value. One of several concurrent calls
	// wins, and all return its value.
	Remember(ctx context.Context, kind, key string, value []byte) ([]byte, error)
	// Replace stores value, replacing any earlier one.
	Replace(ctx context.Context, kind, key string, value []byte) error
}

// The kinds of memory. Their format is private to this package and may change between versions; a value that cannot be
// read is ignored.
const (
	memoryManifest   = "manifest"   // URL → SHA-256 of the body first seen there
	memoryOutput     = "output"     // SHA-256 of a manifest → hash of the response it was seen with
	memoryKeys       = "keys"       // origin → its keys and discovery document, with the time
	memoryRevoked    = "revoked"    // origin and key → the earliest time from which the origin ever called it revoked
	memoryCheckpoint = "checkpoint" // origins of publisher and log → the largest checkpoint seen
	memoryResult     = "verdict"    // claim and source → result, with the time
	memoryLog        = "log"        // origin of a publisher → the first log it named
)

// defaultMemory bounds each kind of a [MemoryMap], in bytes.
const defaultMemory = 64 << 20

// MemoryMap is a [Memory] that lasts as long as the program. The zero value is ready to use. When a kind exceeds its
// limit, its oldest values are dropped: values that are cheap to produce in bulk, such as results, cannot push out keys
// or manifests.
type MemoryMap struct {
	Limit int // of the keys and values of one kind, in bytes; 0 means 64 MiB

	mu    sync.Mutex
	kinds map[string]*kindMemory
}

// kindMemory holds the values of a kind.
type kindMemory struct {
	values map[string][]byte
	order  []string // keys, oldest first
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
	const overhead = 128 // of an entry, about
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
		k.size += len(key) + overhead
		k.order = append(k.order, key)
	}
	k.values[key] = append([]byte{}, value...) // never nil, even if value is empty
	for k.size += len(value); k.size > cmp.Or(m.Limit, defaultMemory); {
		oldest := k.order[0]
		k.size -= len(oldest) + overhead + len(k.values[oldest])
		delete(k.values, oldest)
		k.order = k.order[1:]
	}
}

// Defaults of [Limits], and limits on trust documents.
const (
	defaultFetches = 256
	DefaultInput   = 64 << 20

	maxManifest  = 1 << 20  // octets of a manifest
	maxDirectory = 64 << 10 // octets of a discovery document or a key directory

	maxProof         = tlog.MaxCheckpoint + 16<<10 // octets of a proof
	defaultHosts     = 64
	defaultOctets    = 256 << 20
	defaultManifests = 16
	defaultUpstream  = 3
	defaultTime      = 5 * time.Minute

	maxRefused = 2 // failed fetches from one host in a job, after which its fetches are not retried

	skew          = 300 * time.Second // allowed difference between clocks
	keyCache      = 24 * time.Hour    // maximum age of keys that are used when they cannot be fetched
	defaultKeyTTL = 5 * time.Minute   // age up to which keys are not fetched again
	replayWindow  = 24 * time.Hour    // by how much a manifest that is not bound to its response may be older
	parallel      = 16                // documents of one job that are fetched concurrently

	// maxExplained bounds how much one job compares to find text similar to missing excerpts, in code points of the
	// text times 64 of the excerpt: about four seconds. The comparison only explains a result; beyond the bound such an
	// excerpt is just missing.
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

// job is one verification and the report it makes.
type job struct {
	*Verifier

	all    *shared
	report *Report
	limits Limits
	now    time.Time
	depth  int // of upstream manifests
}

// shared is the state that a job shares with the jobs for its upstream manifests.
type shared struct {
	mu      sync.Mutex
	docs    map[string]func() (*snapshot.Snapshot, error) // each is fetched once
	hosts   map[string]bool
	fetched int
	octets  int
	visited map[string]bool               // manifests, by clean URL
	read    map[string]*checked           // those that could be read
	refused map[string]int                // failed fetches, by host
	given   map[string]*snapshot.Snapshot // sources of a bundle, by URL
	from    map[string]*directory         // keys, by origin

	explained atomic.Int64 // see maxExplained
	until     time.Time    // when fetching ends

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

// finished returns the report with its state and counts.
func (j *job) finished() *Report {
	r := j.report
	r.State = r.state()
	r.Findings.Sources = r.State
	for i := range r.Claims {
		r.Findings.Claims.add(&r.Claims[i])
	}
	return r
}

// result returns the report, or the error that ended the job.
func (j *job) result(err error) (*Report, error) {
	if err != nil {
		return nil, fmt.Errorf("verifying: %w", err)
	}
	return j.finished(), nil
}

// fetchDocument fetches a document, once per job and within its limits. The error is a [*snapshot.FetchError].
func (j *job) fetchDocument(ctx context.Context, r *snapshot.FetchRequest) (*snapshot.Snapshot, error) {
	key := documentKey(r)
	j.all.mu.Lock()
	fetched := j.all.docs[key]
	if fetched == nil {
		fetched = sync.OnceValues(func() (*snapshot.Snapshot, error) { return j.fetch(ctx, r) })
		j.all.docs[key] = fetched
	}
	j.all.mu.Unlock()
	return fetched()
}

// documentKey is what a fetched document is known by in its job.
func documentKey(r *snapshot.FetchRequest) string {
	if r.NoRedirect {
		return fmt.Sprintf("trust %d %s", r.MaxBytes, clean(r.URL))
	}
	return clean(r.URL)
}

// fetch fetches a document if the limits allow it, before the job's deadline, and without retries from a host that
// failed twice. It counts the cost of failed fetches too.
func (j *job) fetch(ctx context.Context, r *snapshot.FetchRequest) (*snapshot.Snapshot, error) {
	if j.Offline {
		return nil, blocked(r.URL, reasonOffline, "it is not fetched offline, and there is no copy of it")
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
	var hops []string // each redirect counts as a fetch
	switch f, ok := errors.AsType[*snapshot.FetchError](err); {
	case err != nil && timed.Err() != nil && ctx.Err() == nil:
		err = blocked(r.URL, reasonLimit, "this verification has reached its time limit")
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

// Reasons why this package blocks a fetch: the job is offline, or over its limits.
const (
	reasonOffline = "offline"
	reasonLimit   = "limit"
	overLimit     = "this verification has reached its fetch limits"
)

func blocked(address, reason, why string) error {
	return &snapshot.FetchError{URL: address, Kind: snapshot.Blocked, Reason: reason, Err: errors.New(why)}
}

// fetchTrusted fetches a document that decisions of trust rest on: no redirects, no content codings, neither read from
// nor kept as a copy.
func (j *job) fetchTrusted(ctx context.Context, address string, most int64) (*snapshot.Snapshot, error) {
	return j.fetchDocument(ctx, trusted(address, most))
}

func trusted(address string, most int64) *snapshot.FetchRequest {
	return &snapshot.FetchRequest{
		URL: address, NoRedirect: true, Identity: true, NoCopy: true, MaxBytes: most,
		Accept: "application/json, */*;q=0.1",
	}
}

// fetchAgain is fetchTrusted for a document that may have changed within the job.
func (j *job) fetchAgain(ctx context.Context, address string, most int64) (*snapshot.Snapshot, error) {
	r := trusted(address, most)
	j.all.mu.Lock()
	delete(j.all.docs, documentKey(r))
	j.all.mu.Unlock()
	return j.fetchDocument(ctx, r)
}

// addToDo adds n to the total of a stage.
func (j *job) addToDo(stage string, n int) {
	j.all.progress.Lock()
	defer j.all.progress.Unlock()
	p := j.all.stages[stage]
	p.Stage, p.Total = stage, p.Total+n
	j.all.stages[stage] = p
}

// setDone counts one thing of a stage as done, and reports progress.
func (j *job) setDone(stage, what string, found Status) {
	j.all.progress.Lock()
	defer j.all.progress.Unlock()
	p := j.all.stages[stage]
	p.URL, p.Done, p.Status = what, p.Done+1, found
	j.all.stages[stage] = p
	if j.Progress != nil {
		j.Progress(p)
	}
}

// origin returns the scheme and authority of a URL, normalized for comparison, or "" if it has none.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Scheme) + "://" + hostOf(address)
}

// hostOf returns the host of a URL in lower case, with its port unless that is the default of the scheme.
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

// isAt reports whether a URL is at a host, which may be given without its port.
func isAt(address, host string) bool {
	at := hostOf(address)
	return at == host || strings.HasPrefix(at, host+":")
}

// clean returns an address normalized for comparison; anything but a web address is returned unchanged.
func clean(address string) string {
	if c, err := snapshot.CleanURL(address); err == nil {
		return c
	}
	return address
}

// unforgeable reports whether nobody on the network path can have forged what was fetched: because of TLS, or because
// the address is in a special network, which the fetcher reaches only if the operator allowed it.
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
