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
	// empty (as the first examples were written) counts as 1.0
	Version     string   `json:"version,omitempty" form:"version"`
	Self        string   `json:"self,omitempty" form:"web"` // the URL it is served at
	RunID       string   `json:"run_id" form:"name"`
	AgentID     string   `json:"agent_id" form:"agent"` // host[:port][/path]; the host is that of the manifest's URL
	EmittedAt   Time     `json:"emitted_at" form:"time"`
	ExpiresAt   Time     `json:"expires_at,omitempty" form:"time"`
	Supersedes  string   `json:"supersedes,omitempty" form:"web"`    // the URL of the manifest that this one corrects
	TextProfile string   `json:"text_profile,omitempty" form:"name"` // what offsets count in; empty is unknown
	Output      *Output  `json:"output,omitempty"`
	Sources     []Source `json:"sources,omitempty" form:"sources"` // all that were consulted, cited or not
	Claims      []Claim  `json:"claims" form:"claims"`
	Chain       []Step   `json:"chain,omitempty" form:"steps"`

	Extra Extra `json:"-"` // members that this version does not know
}

// Extra holds the members of an object that this version of the format does not know, by name, as they were read. They
// are written again and never interpreted.
type Extra map[string]json.RawMessage

// Output binds a manifest to the response that it is about.
type Output struct {
	MediaType string `json:"media_type" form:"name"`
	// of the body's octets; of a stream: of its text in UTF-8
	Hash       string `json:"hash" form:"hash"`
	TextHash   string `json:"text_hash,omitempty" form:"hash"`      // of the answer's normalised text in UTF-8
	TextLength *int   `json:"text_length,omitempty" form:"natural"` // of the normalised text, in code points

	Extra Extra `json:"-"`
}

// Source is a document that the run consulted, as it was read once.
type Source struct {
	ID          string `json:"id" form:"id"`   // unique in the manifest: s1, s2, …
	URL         string `json:"url" form:"url"` // absolute http or https, or urn:ibid:src:… for what has no address
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
	Cited       *bool  `json:"cited,omitempty"` // nil: not said
	ArchiveURL  string `json:"archive_url,omitempty" form:"url"`
	Unavailable string `json:"unavailable,omitempty" form:"name"` // why there is no hash
	// the source is itself an agent's answer: its manifest's URL
	UpstreamManifest string `json:"upstream_manifest,omitempty" form:"web"`
	Title            string `json:"title,omitempty" form:"title"`

	Extra Extra `json:"-"`
}

// Claim is something that the answer says and gives sources for.
type Claim struct {
	ID   string `json:"claim_id" form:"id"` // unique in the manifest; ClaimID makes one of the text
	Text string `json:"text" form:"text"`
	// where it stands in the normalised answer
	Span            *Range        `json:"span,omitempty" form:"range,natural"`
	Rewritten       bool          `json:"rewritten,omitempty"`
	Confidence      string        `json:"confidence,omitempty" form:"confidence"`
	ConfidenceScore *float64      `json:"confidence_score,omitempty" form:"score"` // 0 to 1; nil: unknown
	Steps           []int         `json:"steps,omitempty" form:"steps,number"`     // the steps that made it
	Sources         []ClaimSource `json:"sources" form:"claim_sources"`

	Extra Extra `json:"-"`
}

// ClaimSource is one source of one claim, and the excerpt the claim rests on. Where it repeats a member of the Source
// that it names, the two must be equal.
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

// Excerpt is a stretch of a source's text with some of what stands around it, which tells equal stretches apart.
type Excerpt struct {
	Exact  string `json:"exact" form:"exact"`
	Prefix string `json:"prefix,omitempty" form:"around"`
	Suffix string `json:"suffix,omitempty" form:"around"`

	Extra Extra `json:"-"`
}

// Range is a half-open stretch [start, end) of a text, in Unicode code points.
type Range [2]int

// Step is one step of the run: a call of a tool or of a model. A step follows from the steps whose OutputsRef its
// InputsRef names; those have smaller numbers, so the chain has no cycles.
type Step struct {
	Step   int             `json:"step" form:"number"` // positive, unique
	Tool   string          `json:"tool" form:"tool"`
	Inputs json.RawMessage `json:"inputs,omitempty"` // any JSON; left out if private
	// read from one string, too; always written as an array
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
	maxDepth        = 32        // of objects and arrays in each other; the document itself is the first
	maxNumber       = 1<<53 - 1 // the largest amount of any number
	maxClaims       = 1024
	maxSources      = 1024 // of the manifest, and of a step
	maxSteps        = 1024 // of the chain, of a claim, and of what a step follows from
	maxClaimSources = 64
	maxText         = 8192 // of a claim
	maxExact        = 4096 // of an excerpt
	maxAround       = 64   // of what stands before and after an excerpt; writers keep to 32
	MaxURL          = 4096 // of sources
	maxOwnURL       = 2048 // of manifests
	maxRef          = 512
	maxID           = 128
	maxName         = 256 // of runs, agents, tools, media types, titles and reasons
	maxHash         = 256
)

// maxInt is maxNumber as far as an int has room for it: on 32 bits numbers end sooner.
const maxInt = maxNumber & math.MaxInt

// Time is an instant as it is written in a manifest: RFC 3339 in UTC, ending in Z, with at most nine digits of
// fraction. It is kept as written, so that a manifest that was read is written again unchanged. The zero value is no
// time.
type Time string

// At returns t as it is written.
func At(t time.Time) Time { return Time(t.UTC().Format(time.RFC3339Nano)) }

// Time returns the instant; the zero time if t is not of the form.
func (t Time) Time() time.Time {
	at, err := time.Parse(time.RFC3339Nano, string(t))
	if err != nil || !timePattern.MatchString(string(t)) { // package time takes 1:02:03 and fractions after a comma
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

// Schema returns the JSON Schema (2020-12) of manifests, the caller's own copy. It is made of the same members and
// limits as Parse. Parse refuses more in what a schema cannot say: members that stand there twice, depth, bytes,
// numbers beyond 2^53-1 where anything may stand, fractions that are zero, days that a month does not have. It refuses
// less in one case: hashes by algorithms other than SHA-256 are for Problems to refuse.
func Schema() []byte { return bytes.Clone(schema) }
