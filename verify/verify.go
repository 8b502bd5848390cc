package verify

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
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
