package manifest

import "encoding/json"

// Version is the version that manifests are written with. Parse reads every 1.x.
const Version = "1.0"

// TextProfile names the text that offsets and text hashes count in: that of snapshot.Extract.
const TextProfile = "ibid-text/1"

// Who read a source: Source.RetrievedBy.
const (
	ByPublisher = "publisher" // the agent itself, when it made its answer
	ByObserver  = "observer"  // somebody else, afterwards, and RetrievedAt is the time of that
)

// Where an excerpt comes from: ClaimSource.ExcerptOrigin.
const (
	OriginProvider  = "provider"  // the provider quoted it
	OriginPublisher = "publisher" // the agent quoted it
	OriginInferred  = "inferred"  // a checker found it afterwards: it proves no misquotation
)

// What a source has to do with a claim: ClaimSource.Relation. Empty means RelationSupports.
const (
	RelationSupports    = "supports"
	RelationContradicts = "contradicts"
	RelationContext     = "context"
)

// How sure the publisher is of a claim, in its own opinion: Claim.Confidence. It never raises a verdict.
const (
	ConfidenceHigh    = "high"
	ConfidenceMedium  = "medium"
	ConfidenceLow     = "low"
	ConfidenceUnknown = "unknown"
)

// Manifest is the record of one answer: its claims, the sources of each, and the steps that led to it. It is plain
// data; Parse reads one, Builder builds one, Problems says what contradicts itself in one. An empty string, a nil
// pointer and a nil slice are members that are not there.
type Manifest struct {
	Version     string   `json:"version,omitempty"` // empty (as the first examples were written) counts as 1.0
	Self        string   `json:"self,omitempty"`    // the URL it is served at
	RunID       string   `json:"run_id"`
	AgentID     string   `json:"agent_id"` // host[:port][/path]; the host is that of the manifest's URL
	EmittedAt   Time     `json:"emitted_at"`
	ExpiresAt   Time     `json:"expires_at,omitempty"`
	Supersedes  string   `json:"supersedes,omitempty"`   // the URL of the manifest that this one corrects
	TextProfile string   `json:"text_profile,omitempty"` // what offsets count in; empty is unknown
	Output      *Output  `json:"output,omitempty"`
	Sources     []Source `json:"sources,omitempty"` // all that were consulted, cited or not
	Claims      []Claim  `json:"claims"`
	Chain       []Step   `json:"chain,omitempty"`

	Extra Extra `json:"-"` // members that this version does not know
}

// Extra holds the members of an object that this version of the format does not know, by name, as they were read. They
// are written again and never interpreted.
type Extra map[string]json.RawMessage

// Output binds a manifest to the response that it is about.
type Output struct {
	MediaType  string `json:"media_type"`
	Hash       string `json:"hash"`                  // of the body's octets; of a stream: of its text in UTF-8
	TextHash   string `json:"text_hash,omitempty"`   // of the answer's normalised text in UTF-8
	TextLength *int   `json:"text_length,omitempty"` // of the normalised text, in code points

	Extra Extra `json:"-"`
}

// Source is a document that the run consulted, as it was read once.
type Source struct {
	ID          string `json:"id"`  // unique in the manifest: s1, s2, …
	URL         string `json:"url"` // absolute http or https, or urn:ibid:src:… for what has no address
	OriginalURL string `json:"original_url,omitempty"`
	FinalURL    string `json:"final_url,omitempty"` // after redirects
	RetrievedAt Time   `json:"retrieved_at"`
	RetrievedBy string `json:"retrieved_by,omitempty"` // ByPublisher or ByObserver
	Status      int    `json:"status,omitempty"`       // the HTTP status
	MediaType   string `json:"media_type,omitempty"`
	Hash        string `json:"hash,omitempty"`      // of the octets with transfer and content codings removed
	TextHash    string `json:"text_hash,omitempty"` // of the text in UTF-8
	TextLength  *int   `json:"text_length,omitempty"`
	Cited       *bool  `json:"cited,omitempty"` // nil: not said
	ArchiveURL  string `json:"archive_url,omitempty"`
	Unavailable string `json:"unavailable,omitempty"` // why there is no hash
	// the source is itself an agent's answer: its manifest's URL
	UpstreamManifest string `json:"upstream_manifest,omitempty"`
	Title            string `json:"title,omitempty"`

	Extra Extra `json:"-"`
}

// Claim is something that the answer says and gives sources for.
type Claim struct {
	ID              string        `json:"claim_id"` // unique in the manifest; ClaimID makes one of the text
	Text            string        `json:"text"`
	Span            *Range        `json:"span,omitempty"` // where it stands in the normalised answer
	Rewritten       bool          `json:"rewritten,omitempty"`
	Confidence      string        `json:"confidence,omitempty"`
	ConfidenceScore *float64      `json:"confidence_score,omitempty"` // 0 to 1; nil: unknown
	Steps           []int         `json:"steps,omitempty"`            // the steps that made it
	Sources         []ClaimSource `json:"sources"`

	Extra Extra `json:"-"`
}

// ClaimSource is one source of one claim, and the excerpt the claim rests on. Where it repeats a member of the Source
// that it names, the two must be equal.
type ClaimSource struct {
	Source        string `json:"source,omitempty"` // Source.ID; empty in manifests that have no Sources
	URL           string `json:"url"`
	OriginalURL   string `json:"original_url,omitempty"`
	RetrievedAt   Time   `json:"retrieved_at"`
	Hash          string `json:"hash,omitempty"`
	ExcerptOffset *Range `json:"excerpt_offset,omitempty"` // in the source's text
	// of Excerpt.Exact in UTF-8; alone if the excerpt is private
	ExcerptHash   string   `json:"excerpt_hash,omitempty"`
	Excerpt       *Excerpt `json:"excerpt,omitempty"`
	ExcerptOrigin string   `json:"excerpt_origin,omitempty"`
	Relation      string   `json:"relation,omitempty"`
	Unavailable   string   `json:"unavailable,omitempty"` // why there is no hash or no offset

	Extra Extra `json:"-"`
}

// Excerpt is a stretch of a source's text with some of what stands around it, which tells equal stretches apart.
type Excerpt struct {
	Exact  string `json:"exact"`
	Prefix string `json:"prefix,omitempty"`
	Suffix string `json:"suffix,omitempty"`

	Extra Extra `json:"-"`
}

// Range is a half-open stretch [start, end) of a text, in Unicode code points.
type Range [2]int

// Step is one step of the run: a call of a tool or of a model. A step follows from the steps whose OutputsRef its
// InputsRef names; those have smaller numbers, so the chain has no cycles.
type Step struct {
	Step       int             `json:"step"` // positive, unique
	Tool       string          `json:"tool"`
	Inputs     json.RawMessage `json:"inputs,omitempty"`      // any JSON; left out if private
	InputsRef  []string        `json:"inputs_ref,omitempty"`  // read from one string, too; always written as an array
	InputsHash string          `json:"inputs_hash,omitempty"` // hmac-sha256:… of the canonical inputs, or sha256:…
	// an opaque name, compared octet by octet, never resolved
	OutputsRef  string   `json:"outputs_ref"`
	OutputsURL  string   `json:"outputs_url,omitempty"` // where the output can be fetched
	OutputsHash string   `json:"outputs_hash,omitempty"`
	Sources     []string `json:"sources,omitempty"` // URLs or source ids
	StartedAt   Time     `json:"started_at,omitempty"`
	EndedAt     Time     `json:"ended_at,omitempty"`

	Extra Extra `json:"-"`
}
