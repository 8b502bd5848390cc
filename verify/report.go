package verify

import (
	"time"

	"github.com/ibidhq/ibid/manifest"
)

// ReportVersion is the version of a [Report] as JSON. Members may be added within one; none is renamed or removed.
const ReportVersion = 1

// State is what a whole report comes to.
type State string

// The states, from best to worst. What has no state is not trusted.
const (
	// nothing failed, all could be looked at, and the signer is one whom the verifier's user trusts
	Trusted      State = "trusted"
	Valid        State = "valid"        // nothing failed, but the signer is not known as trusted, or nobody signed
	Unverifiable State = "unverifiable" // nothing failed, but something that is claimed could not be looked at
	Invalid      State = "invalid"      // something failed
)

// Words of findings that the specification has no status for: what was in order, and what could not be compared.
const (
	HeaderRead         Status = "header-read"
	HeaderMissing      Status = "header-missing" // nothing is announced, so there is nothing to verify
	ResponseUnreadable Status = "response-unreadable"
	ManifestRead       Status = "manifest-read"
	OutputBound        Status = "output-bound"
	// there is no response to compare with, or nothing to compare it by
	OutputUnchecked    Status = "output-unchecked"
	SignatureValid     Status = "signature-valid"
	KeyFromBundle      Status = "key-from-bundle" // nobody but the bundle says whose key it is
	AuthorityVerified  Status = "authority-verified"
	AuthorityUnchecked Status = "authority-unchecked"
	Logged             Status = "logged"
	// the log could not be asked for what its checkpoints have to do with each other
	LogUnavailable       Status = "log-unavailable"
	ChainValid           Status = "chain-valid"
	NothingClaimed       Status = "nothing-claimed" // no claim, or one without a source that is to support it
	LevelMet             Status = "level-met"
	Redirected           Status = "redirected"  // the source is at another site now
	SourceRead           Status = "source-read" // announced without a manifest; it is there, and that is all
	UpstreamVerified     Status = "upstream-verified"
	UpstreamUnverifiable Status = "upstream-unverifiable"
	UpstreamInvalid      Status = "upstream-invalid" // a source is an agent's answer, and its manifest failed
)

// Kind is what was verified.
type Kind string

// The kinds.
const (
	KindResponse Kind = "response" // an HTTP response that may announce manifests
	KindManifest Kind = "manifest" // a manifest by itself: which response it is about was not looked at
	KindBundle   Kind = "bundle"   // a stored bundle
	KindDocument Kind = "document" // an answer document: its quotes, which nobody signed
)

// Report is what a verification found. It is plain data; its JSON is documented in docs/verify.md.
type Report struct {
	Version         int       `json:"version"` // ReportVersion
	State           State     `json:"state"`
	Kind            Kind      `json:"kind"`
	Input           string    `json:"input"`        // the URL or the name of what was verified; empty: it has none
	ResponseURL     string    `json:"response_url"` // where the response came from; empty: not known, or there was none
	CheckedAt       time.Time `json:"checked_at"`
	Verifier        string    `json:"verifier"`
	VerifierVersion string    `json:"verifier_version"`
	Offline         bool      `json:"offline"` // nothing was fetched

	// Success, Info and Failure are all that was found about the response and its manifests, in the order in which it
	// was looked at. What was found about single sources stands in Claims, and what failed there stands in Failure,
	// too.
	Success []Finding `json:"success"`
	Info    []Finding `json:"info"` // also warnings, and what could not be looked at: see Counts
	Failure []Finding `json:"failure"`

	Level     Levels           `json:"level"`     // the lowest of the manifests'
	Manifests []ManifestReport `json:"manifests"` // in the order in which they were announced
	Claims    []ClaimReport    `json:"claims"`    // of all manifests
	// announced without a manifest (Level 1): only whether they can be read
	Sources  []SourceReport `json:"sources"`
	Upstream []*Report      `json:"upstream"` // of sources that are agents' answers themselves

	// why there is nothing to report on: set by who collects reports, as for a file that cannot be read
	Error string `json:"error,omitempty"`
}

// Finding is one thing that was found, good or bad.
type Finding struct {
	Code     Status `json:"code"`
	Counts   Counts `json:"counts"`
	Detail   string `json:"detail"`             // a sentence
	Manifest string `json:"manifest,omitempty"` // the URL of the manifest it is about
	Claim    string `json:"claim,omitempty"`    // the claim's id
	Source   string `json:"source,omitempty"`   // the source's URL
	Path     string `json:"path,omitempty"`     // JSON pointer into the manifest
}

// Levels compares what a publisher promises with what was seen.
type Levels struct {
	Promised int      `json:"promised"` // 0: nothing
	Observed int      `json:"observed"` // 0: nothing was announced
	Why      []string `json:"why"`      // what is missing for the next level
}

// ManifestReport is what was found about one manifest. Empty members are not known.
type ManifestReport struct {
	URL       string `json:"url"`
	SHA256    string `json:"sha256"` // of its body, hexadecimal
	RunID     string `json:"run_id"`
	AgentID   string `json:"agent_id"`
	EmittedAt string `json:"emitted_at"`
	KeyID     string `json:"key_id"`     // of the signature; empty: unsigned
	SignedAt  string `json:"signed_at"`  // its created
	Verified  bool   `json:"verified"`   // the signature holds, and its key is good
	Trusted   bool   `json:"trusted"`    // Verified, and its host or key is one that the verifier trusts
	TrustedBy string `json:"trusted_by"` // the entry of Verifier.Trust
	Logged    bool   `json:"logged"`     // its digest is in the publisher's log
	LogSize   int64  `json:"log_size"`   // of the checkpoint that proves it
	Level     Levels `json:"level"`      // its own
	Incidents string `json:"incidents"`  // where its publisher takes incidents; empty: nowhere

	Bundle   *manifest.Signed   `json:"-"` // all that is needed to do this again; nil: it could not be read
	Manifest *manifest.Manifest `json:"-"` // nil: it could not be read
}

// ClaimReport is what was found about one claim.
type ClaimReport struct {
	Manifest string         `json:"manifest"` // URL of the manifest that has it
	ID       string         `json:"claim_id"`
	Text     string         `json:"text"`
	Status   Status         `json:"status"` // of the claim's support: supported-verbatim, …
	Counts   Counts         `json:"counts"`
	By       string         `json:"by"` // the checker that said it
	Detail   string         `json:"detail"`
	Sources  []SourceReport `json:"sources"`
}

// SourceReport is what was found about one source of one claim.
type SourceReport struct {
	URL       string       `json:"url"`
	Title     string       `json:"title"`
	Expected  Expected     `json:"expected"`
	Excerpt   string       `json:"excerpt"` // what the manifest quotes; empty: nothing
	Result    SourceResult `json:"result"`
	Cached    bool         `json:"cached"`     // Result is an earlier one
	CheckedAt time.Time    `json:"checked_at"` // when Result was found
}

// Expected is what a manifest says of a source; empty members are not said.
type Expected struct {
	Hash        string `json:"hash"`
	TextHash    string `json:"text_hash"`
	ExcerptHash string `json:"excerpt_hash"`
}
