package verify

import (
	"slices"
	"strings"
)

// Status is the result of a check, in a word. The words of the attribution specification, §13, are in its order, in
// which the first that applies is reported. A new status needs a constant here, an entry in [statusesByCount] unless it
// is a failure, and a row in docs/attribution-v1.md and docs/verify.md.
type Status string

// Statuses of a header and its manifests.
const (
	HeaderMalformed      Status = "header-malformed"      // not a valid form of Citation-Source, or too long
	ManifestBlocked      Status = "manifest-blocked"      // its URL may not be fetched
	ManifestUnreachable  Status = "manifest-unreachable"  // no 200 after two retries
	ManifestTooLarge     Status = "manifest-too-large"    // over 1 MiB, or with a content coding
	ManifestPending      Status = "manifest-pending"      // 202: not built yet
	ManifestMutated      Status = "manifest-mutated"      // not the announced bytes, or not the earlier ones
	ManifestMalformed    Status = "manifest-malformed"    // not the JSON of a manifest
	VersionUnsupported   Status = "version-unsupported"   // a major version other than 1
	ManifestInconsistent Status = "manifest-inconsistent" // it contradicts itself, or the header
	ManifestMismatch     Status = "manifest-mismatch"     // it belongs to another URL or another run
	ExcerptTooShort      Status = "excerpt-too-short"     // too short to mean anything: see snapshot.ShortExcerpt
	OutputMismatch       Status = "output-mismatch"       // it is about another response
	Replayed             Status = "replayed"              // it was seen with another response before
	Unsigned             Status = "unsigned"
	SignatureInvalid     Status = "signature-invalid"
	CoverageInsufficient Status = "coverage-insufficient" // the signature does not cover all that it must
	KeyUnknown           Status = "key-unknown"
	KeyUnavailable       Status = "key-unavailable"
	KeyRevoked           Status = "key-revoked"
	KeyOutsideValidity   Status = "key-outside-validity"
	SignatureExpired     Status = "signature-expired"
	NotYetValid          Status = "not-yet-valid"
	AuthorityMismatch    Status = "authority-mismatch" // signed by someone who may not speak for the agent
	Expired              Status = "expired"
	NotLogged            Status = "not-logged"
	LogChanged           Status = "log-changed" // not the log of the publisher's earlier manifests
	LogProofInvalid      Status = "log-proof-invalid"
	LogInconsistent      Status = "log-inconsistent"
	ChainInvalid         Status = "chain-invalid"
	ChainGap             Status = "chain-gap"
	LevelNotMet          Status = "level-not-met"
)

// Statuses of one source of one claim: see [Compare].
const (
	Blocked              Status = "blocked"
	RobotsDisallowed     Status = "robots-disallowed"
	NotDereferenceable   Status = "not-dereferenceable" // urn:ibid:src:…, which cannot be fetched
	Unreachable          Status = "unreachable"         // see SourceResult.Reason
	Gone                 Status = "gone"
	AccessDenied         Status = "access-denied"
	TooLarge             Status = "too-large"
	UnsupportedMedia     Status = "unsupported-media"
	NotComparable        Status = "not-comparable"        // not the source: see SourceResult.Reason
	AlgorithmUnsupported Status = "algorithm-unsupported" // a hash other than sha256
	VerifiedFromArchive  Status = "verified-from-archive" // the source could not be read, but its archived copy passed
	Verified             Status = "verified"
	VerifiedHashOnly     Status = "verified-hash-only"
	ExcerptFound         Status = "excerpt-found" // no hash was recorded; the excerpt is there
	OffsetWrong          Status = "offset-wrong"
	ExcerptMismatch      Status = "excerpt-mismatch" // the source is unchanged and lacks it: the agent misquoted
	DriftedTextIntact    Status = "source-drifted-text-intact"
	DriftedExcerptIntact Status = "source-drifted-excerpt-intact"
	ExcerptReformatted   Status = "excerpt-reformatted" // found in another form: see SourceResult.Match
	ExcerptCut           Status = "excerpt-cut"         // it is there, but begins or ends inside a number or word
	ExcerptAltered       Status = "excerpt-altered"
	ExcerptMissing       Status = "excerpt-missing"
	HashMismatch         Status = "hash-mismatch"    // the source changed, and no excerpt was recorded
	NothingRecorded      Status = "nothing-recorded" // neither hash nor excerpt: there is nothing to compare
)

// Statuses of a claim, in the words of [support.Verdict.Word]. Those of a checker with another name are supported-NAME,
// unsupported-NAME and contradicted-NAME.
const (
	SupportedVerbatim Status = "supported-verbatim"
	SupportedLexical  Status = "supported-lexical"
	ClaimDiffers      Status = "differs"   // from its excerpt, in one detail
	ClaimUnjudged     Status = "unjudged"  // its excerpts are there; nobody has judged what they mean
	ClaimUnchecked    Status = "unchecked" // there is nothing to compare it with: see ClaimReport.Reason
)

// DeniesClaim reports whether a status says that a claim differs from its excerpts, or that a judge denies it.
func (s Status) DeniesClaim() bool {
	return s == ClaimDiffers || strings.HasPrefix(string(s), "unsupported-") ||
		strings.HasPrefix(string(s), "contradicted-")
}

// Statuses that the specification does not have: for what was in order, and what could not be compared.
const (
	HeaderRead           Status = "header-read"
	HeaderMissing        Status = "header-missing" // nothing is announced, so there is nothing to verify
	ResponseUnreadable   Status = "response-unreadable"
	ManifestRead         Status = "manifest-read"
	OutputBound          Status = "output-bound"
	OutputUnchecked      Status = "output-unchecked" // there is no response, or nothing to compare it with
	SignatureValid       Status = "signature-valid"
	KeyFromBundle        Status = "key-from-bundle" // only the bundle says whose key it is
	AuthorityVerified    Status = "authority-verified"
	AuthorityUnchecked   Status = "authority-unchecked"
	Logged               Status = "logged"
	LogUnavailable       Status = "log-unavailable" // the tiles to compare two of its checkpoints could not be read
	ChainValid           Status = "chain-valid"
	NothingClaimed       Status = "nothing-claimed" // no claim, or one without a supporting source
	LevelMet             Status = "level-met"
	Redirected           Status = "redirected"  // the source is at another site now
	SourceRead           Status = "source-read" // announced without a manifest, or cited without a quote, and readable
	UpstreamVerified     Status = "upstream-verified"
	UpstreamUnverifiable Status = "upstream-unverifiable"
	UpstreamInvalid      Status = "upstream-invalid" // a source is an agent's answer, and its manifest failed
	NothingQuoted        Status = "nothing-quoted"   // an answer document without a quote and an address
)

// Counts is what a finding counts as.
type Counts string

// The values of Counts. The first three pass; the zero value does not.
const (
	CountPass         Counts = "pass"
	CountInfo         Counts = "info"         // passed, with something to note
	CountWarning      Counts = "warning"      // passed, but should be looked at
	CountUnverifiable Counts = "unverifiable" // could not be checked
	CountFailure      Counts = "failure"
)

// Passes reports whether c means that the checked thing was in order.
func (c Counts) Passes() bool { return c == CountPass || c == CountInfo || c == CountWarning }

// statusesByCount lists the statuses that do not always fail. A few count as something else in some cases, as the code
// that finds them decides.
var statusesByCount = map[Counts][]Status{
	CountPass: {
		HeaderRead, ManifestRead, OutputBound, SignatureValid, AuthorityVerified, Logged, ChainValid, LevelMet,
		UpstreamVerified, Verified, DriftedTextIntact, SupportedVerbatim, SupportedLexical,
	},
	CountInfo: {
		Unsigned, KeyFromBundle, AuthorityUnchecked, NotLogged, NothingClaimed, Redirected, SourceRead,
		VerifiedFromArchive, VerifiedHashOnly, ExcerptFound, DriftedExcerptIntact, ExcerptReformatted, ClaimUnjudged,
		ClaimUnchecked,
	},
	CountWarning: {
		ExcerptTooShort, OutputUnchecked, LogChanged, OffsetWrong, ExcerptCut, ClaimDiffers,
	},
	CountUnverifiable: {
		HeaderMissing, ResponseUnreadable, ManifestBlocked, ManifestUnreachable, ManifestPending, KeyUnavailable,
		LogUnavailable, UpstreamUnverifiable, NothingQuoted, Blocked, RobotsDisallowed, NotDereferenceable, Unreachable,
		Gone, AccessDenied, TooLarge, UnsupportedMedia, AlgorithmUnsupported, HashMismatch, NothingRecorded,
		NotComparable,
	},
}

// counts returns what a status usually counts as.
func (s Status) counts() Counts {
	for c, list := range statusesByCount {
		if slices.Contains(list, s) {
			return c
		}
	}
	if s.DeniesClaim() {
		return CountWarning
	}
	return CountFailure
}

// Warning returns what a reader of a citation must know if its source has this status after it was read again, in words
// that follow the source's name. It is empty if the source still says what it was cited for, or if nothing was found
// out.
func (s Status) Warning() string {
	switch s { //nolint:exhaustive // the others need no warning
	case ExcerptAltered:
		return "changed: it has something similar, and not the quoted words"
	case ExcerptMissing:
		return "missing: it does not have the quoted words"
	case ExcerptMismatch:
		return "misquoted: it is unchanged, and never had the quoted words"
	case ExcerptCut:
		return "cut: the quoted words are part of a number or a word there"
	case HashMismatch:
		return "changed since it was cited, and no words were recorded that could be compared"
	case Unreachable, Gone, AccessDenied:
		return "not reachable when it was to be read again"
	case NotComparable:
		return "not readable when it was to be read again: another page stood in its place"
	}
	return ""
}

// Read reports whether a status means that the source itself was read.
func (s Status) Read() bool {
	switch s { //nolint:exhaustive // the others mean that it was not
	case Verified, VerifiedHashOnly, ExcerptFound, OffsetWrong, DriftedTextIntact, DriftedExcerptIntact,
		ExcerptReformatted, ExcerptCut, ExcerptAltered, ExcerptMissing, ExcerptMismatch, HashMismatch:
		return true
	}
	return false
}
