package manifest

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the schema
	"encoding/hex"
	"encoding/json"
	"math"
	"time"

	"github.com/ibidhq/ibid/snapshot"
)

// Version is the format version of manifests that are written. Parse reads every 1.x.
const Version = "1.0"

// TextProfile names the kind of text that offsets and text hashes refer to: that of snapshot.Extract.
const TextProfile = snapshot.TextProfile

// Profiled reports whether offsets and hashes refer to a text that this version reads: TextProfile, or that of earlier
// versions.
func Profiled(name string) bool { return name == TextProfile || name == snapshot.TextProfile1 }

// Who read a source: Source.RetrievedBy.
const (
	ByPublisher = "publisher" // the agent itself, when it made its answer
	ByObserver  = "observer"  // someone else, later, at the time RetrievedAt
)

// Where an excerpt comes from: ClaimSource.ExcerptOrigin.
const (
	OriginProvider  = "provider"  // the provider quoted it
	OriginPublisher = "publisher" // the agent quoted it
	OriginInferred  = "inferred"  // a checker found it later: a mismatch is not a misquotation
)

// The relation of a source to a claim: ClaimSource.Relation. Empty means RelationSupports.
const (
	RelationSupports    = "supports"
	RelationContradicts = "contradicts"
	RelationContext     = "context"
)

// The publisher's own confidence in a claim: Claim.Confidence. It never raises a verdict.
const (
	ConfidenceHigh    = "high"
	ConfidenceMedium  = "medium"
	ConfidenceLow     = "low"
	ConfidenceUnknown = "unknown"
)

// Manifest is the record of one answer: its claims, their sources, and the steps that led to it. It is plain data;
// Parse reads one, Builder builds one, Problems returns its contradictions. An empty string, a nil pointer and a nil
// slice are absent members.
type Manifest struct {
	// empty, as in the first published examples, means 1.0
	Version     string   `json:"version,omitempty" form:"version"`
	Self        string   `json:"self,omitempty" form:"web"` // the URL it is served at
	RunID       string   `json:"run_id" form:"name"`
	AgentID     string   `json:"agent_id" form:"agent"` // host[:port][/path]; the host is that of the manifest's URL
	EmittedAt   Time     `json:"emitted_at" form:"time"`
	ExpiresAt   Time     `json:"expires_at,omitempty" form:"time"`
	Supersedes  string   `json:"supersedes,omitempty" form:"web"`    // the URL of the manifest that this one corrects
	TextProfile string   `json:"text_profile,omitempty" form:"name"` // the text that offsets refer to; empty if unknown
	Output      *Output  `json:"output,omitempty"`
	Sources     []Source `json:"sources,omitempty" form:"sources"` // all consulted, cited or not
	Claims      []Claim  `json:"claims" form:"claims"`
	Chain       []Step   `json:"chain,omitempty" form:"steps"`

	Extra Extra `json:"-"` // members that this version does not know
}

// Extra holds the members of an object that this version of the format does not know, by name, as they were read. They
// are written back and never interpreted.
type Extra map[string]json.RawMessage

// Output binds a manifest to the response that it is about.
type Output struct {
	MediaType string `json:"media_type" form:"name"`
	// of the body's octets; for a stream, of its text in UTF-8
	Hash       string `json:"hash" form:"hash"`
	TextHash   string `json:"text_hash,omitempty" form:"hash"`      // of the answer's normalised text in UTF-8
	TextLength *int   `json:"text_length,omitempty" form:"natural"` // of the normalised text, in code points
	// where the text is in a JSON body, or its parts in the data of a stream's events: a JSON Pointer; empty means that
	// the body is the text, or has it in one place
	TextAt string `json:"text_at,omitempty" form:"name"`
	// the name of these events; empty means any without a name
	TextEvent string `json:"text_event,omitempty" form:"name"`

	Extra Extra `json:"-"`
}

// Source is a document that the run consulted, as it was read once.
type Source struct {
	ID          string `json:"id" form:"id"`   // unique in the manifest: s1, s2, …
	URL         string `json:"url" form:"url"` // absolute http or https, or urn:ibid:src:… if it has no address
	OriginalURL string `json:"original_url,omitempty" form:"reference"`
	FinalURL    string `json:"final_url,omitempty" form:"url"` // after redirects
	RetrievedAt Time   `json:"retrieved_at" form:"time"`
	RetrievedBy string `json:"retrieved_by,omitempty" form:"reader"` // ByPublisher or ByObserver
	Status      int    `json:"status,omitempty" form:"status"`       // the HTTP status
	MediaType   string `json:"media_type,omitempty" form:"name"`
	// of the octets with transfer and content codings removed
	Hash        string `json:"hash,omitempty" form:"hash"`
	TextHash    string `json:"text_hash,omitempty" form:"hash"` // of the text in UTF-8
	TextLength  *int   `json:"text_length,omitempty" form:"natural"`
	Cited       *bool  `json:"cited,omitempty"` // nil if unknown
	ArchiveURL  string `json:"archive_url,omitempty" form:"url"`
	Unavailable string `json:"unavailable,omitempty" form:"name"` // why there is no hash
	// the source is itself an agent's answer: its manifest's URL
	UpstreamManifest string `json:"upstream_manifest,omitempty" form:"web"`
	Title            string `json:"title,omitempty" form:"title"`

	Extra Extra `json:"-"`
}

// Claim is a statement of the answer that has sources.
type Claim struct {
	ID   string `json:"claim_id" form:"id"` // unique in the manifest; ClaimID makes one from the text
	Text string `json:"text" form:"text"`
	// its place in the normalised answer
	Span            *Range   `json:"span,omitempty" form:"range,natural"`
	Rewritten       bool     `json:"rewritten,omitempty"`
	Confidence      string   `json:"confidence,omitempty" form:"confidence"`
	ConfidenceScore *float64 `json:"confidence_score,omitempty" form:"score"` // 0 to 1; nil if unknown
	// whose confidence it is: "provider", or the checker that judged the claim, as ID@Version; empty if unknown
	ConfidenceOrigin string        `json:"confidence_origin,omitempty" form:"tool"`
	Steps            []int         `json:"steps,omitempty" form:"steps,number"` // the steps that made it
	Sources          []ClaimSource `json:"sources" form:"claim_sources"`

	Extra Extra `json:"-"`
}

// ClaimSource is one source of one claim, and the excerpt that the claim rests on. Members that also occur in the named
// Source must have the same values.
type ClaimSource struct {
	Source        string `json:"source,omitempty" form:"id"` // Source.ID; empty in manifests that have no Sources
	URL           string `json:"url" form:"url"`
	OriginalURL   string `json:"original_url,omitempty" form:"reference"`
	RetrievedAt   Time   `json:"retrieved_at" form:"time"`
	Hash          string `json:"hash,omitempty" form:"hash"`
	ExcerptOffset *Range `json:"excerpt_offset,omitempty" form:"range,natural"` // in the source's text
	// of Excerpt.Exact in UTF-8; alone if the excerpt is private
	ExcerptHash   string   `json:"excerpt_hash,omitempty" form:"hash"`
	Excerpt       *Excerpt `json:"excerpt,omitempty"`
	ExcerptOrigin string   `json:"excerpt_origin,omitempty" form:"origin"`
	Relation      string   `json:"relation,omitempty" form:"relation"`
	Unavailable   string   `json:"unavailable,omitempty" form:"name"` // why there is no hash or no offset

	Extra Extra `json:"-"`
}

// Excerpt is a passage of a source's text, with some surrounding text to distinguish equal passages.
type Excerpt struct {
	Exact  string `json:"exact" form:"exact"`
	Prefix string `json:"prefix,omitempty" form:"around"`
	Suffix string `json:"suffix,omitempty" form:"around"`

	Extra Extra `json:"-"`
}

// Range is a half-open range [start, end) of a text, in Unicode code points.
type Range [2]int

// Step is one step of the run: a call of a tool or of a model. A step builds on the steps whose OutputsRef its
// InputsRef names; their numbers are smaller, so the chain has no cycles.
type Step struct {
	Step   int             `json:"step" form:"number"` // positive, unique
	Tool   string          `json:"tool" form:"tool"`
	Inputs json.RawMessage `json:"inputs,omitempty"` // any JSON; left out if private
	// a single string is read too; always written as an array
	InputsRef []string `json:"inputs_ref,omitempty" form:"refs,ref"`
	// hmac-sha256:… of the canonical inputs, or sha256:…
	InputsHash string `json:"inputs_hash,omitempty" form:"private_hash"`
	// an opaque name, compared octet by octet, never resolved
	OutputsRef  string   `json:"outputs_ref" form:"ref"`
	OutputsURL  string   `json:"outputs_url,omitempty" form:"web"` // where the output can be fetched
	OutputsHash string   `json:"outputs_hash,omitempty" form:"private_hash"`
	Sources     []string `json:"sources,omitempty" form:"sources,reference"` // URLs or source ids
	StartedAt   Time     `json:"started_at,omitempty" form:"time"`
	EndedAt     Time     `json:"ended_at,omitempty" form:"time"`

	Extra Extra `json:"-"`
}

// The limits of a manifest. Lengths of strings count code points.
const (
	MaxBytes        = 1 << 20   // of the whole document
	maxDepth        = 32        // of nesting of objects and arrays; the document itself is the first level
	maxNumber       = 1<<53 - 1 // the largest absolute value of a number
	maxClaims       = 1024
	maxSources      = 1024 // of the manifest or of a step
	maxSteps        = 1024 // of the chain, of a claim, or of a step's inputs_ref
	maxClaimSources = 64
	maxText         = 8192 // of a claim
	maxExact        = 4096 // of an excerpt
	maxAround       = 64   // of the text before or after an excerpt; writers use at most 32
	MaxURL          = 4096 // of sources
	maxOwnURL       = 2048 // of manifests
	maxRef          = 512
	maxID           = 128
	maxName         = 256 // of runs, agents, tools, media types, titles and reasons
	maxHash         = 256
)

// maxInt is maxNumber, or the largest int on 32-bit platforms.
const maxInt = maxNumber & math.MaxInt

// Time is an instant as written in a manifest: RFC 3339 in UTC, ending in Z, with at most nine fractional digits. It is
// kept as text, so that a manifest that was read is written back unchanged. The zero value means no time.
type Time string

// At returns t in the form of a manifest.
func At(t time.Time) Time { return Time(t.UTC().Format(time.RFC3339Nano)) }

// Time returns the instant, or the zero time if t does not have the right form.
func (t Time) Time() time.Time {
	at, err := time.Parse(time.RFC3339Nano, string(t))
	if err != nil || !timePattern.MatchString(string(t)) { // package time accepts 1:02:03 and a decimal comma
		return time.Time{}
	}
	return at
}

// ClaimID returns the id of a claim with the given text: "c-" and 16 hexadecimal digits of the SHA-256 of the
// normalised text. The same words have the same id in every run.
func ClaimID(text string) string {
	sum := sha256.Sum256([]byte(snapshot.Normalize(text)))
	return "c-" + hex.EncodeToString(sum[:8])
}

//go:generate go test -run ^TestSchemaFile$ . -update

//go:embed schema/manifest-v1.json
var schema []byte

// Schema returns a copy of the JSON Schema (2020-12) of manifests. It is generated from the same members and limits as
// Parse uses. Parse refuses more than a schema can express: duplicate members, depth, size, numbers beyond 2^53-1 where
// any JSON is allowed, fractions that are zero, days that a month does not have. It refuses less in one case: hashes by
// algorithms other than SHA-256, which Problems reports.
func Schema() []byte { return bytes.Clone(schema) }
