package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// ReportVersion is the version of a [Report] as JSON. Members may be added within one; none is renamed or removed.
const ReportVersion = 1

// State is what a whole report comes to.
type State string

// The states, from best to worst. What has no state is not trusted.
const (
	Trusted      State = "trusted"      // valid, all of it was read, and the verifier's user trusts the signer
	Valid        State = "valid"        // nothing failed, but the signer is not known as trusted, or nobody signed
	Pending      State = "pending"      // nothing failed, and all that is missing is a manifest that is not built yet
	Unverifiable State = "unverifiable" // nothing failed, but something that is claimed could not be looked at
	Invalid      State = "invalid"      // something failed
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
	Version         int       `json:"version"` // 1; members may be added within a version, none is renamed or removed
	State           State     `json:"state"`   // of the sources, their manifests and signatures
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

	Findings  Findings         `json:"findings"`
	Level     Levels           `json:"level"`     // the lowest of the manifests'
	Manifests []ManifestReport `json:"manifests"` // in the order in which they were announced
	Claims    []ClaimReport    `json:"claims"`    // of all manifests
	// announced without a manifest (Level 1): only whether they can be read
	Sources  []SourceReport `json:"sources"`
	Upstream []*Report      `json:"upstream"` // of sources that are agents' answers themselves

	// why the address that was given could not be read; nil: it could, or there was none
	Unread *snapshot.FetchError `json:"-"`

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
	Manifest string `json:"manifest"` // URL of the manifest that has it
	ID       string `json:"claim_id"`
	Text     string `json:"text"`

	// Finding is what was found out about the claim; Reason says why it was not checked, and is empty otherwise.
	Finding ClaimFinding `json:"finding"`
	Reason  string       `json:"reason,omitempty"` // unsure, no-excerpt, cut, unread, no-source, failed, error
	Differs []Difference `json:"differs,omitempty"`
	// WrongSource is what another claim quotes, and says what this one's own excerpts do not; nil: nothing does.
	WrongSource *Excerpted `json:"wrong_source,omitempty"`

	Status  Status         `json:"status"` // of the claim's support: supported-verbatim, …
	Counts  Counts         `json:"counts"`
	Label   support.Label  `json:"label,omitempty"` // what the checker said; empty: none was asked
	Score   *float64       `json:"score,omitempty"` // likewise: the probability in [0, 1] that the claim is supported
	By      string         `json:"by"`              // the checker that said it
	Detail  string         `json:"detail"`
	Sources []SourceReport `json:"sources"`
}

// ClaimFinding is what was found out about a claim.
type ClaimFinding string

// What is found out about a claim. It says nothing of the claim's sources, and their state nothing of it.
const (
	Supported  ClaimFinding = "supported"   // a checker says that the excerpts support it
	Doubtful   ClaimFinding = "doubtful"    // it differs from its excerpts, or they say next to nothing of it
	NotChecked ClaimFinding = "not-checked" // nobody can say: see ClaimReport.Reason
)

// Difference is what a claim says otherwise than its excerpt.
type Difference struct {
	Kind     support.ConflictKind `json:"kind"`
	Claim    string               `json:"claim"`    // the words of the claim
	Excerpt  string               `json:"excerpt"`  // what the excerpt has in their place
	Sentence string               `json:"sentence"` // of the excerpt
}

// Excerpted is a sentence of an excerpt.
type Excerpted struct {
	URL     string `json:"url"`
	Excerpt string `json:"excerpt"`
}

// Findings are the two findings of a report, side by side: neither changes the other.
type Findings struct {
	Sources State       `json:"sources"` // as Report.State
	Claims  ClaimCounts `json:"claims"`
}

// ClaimCounts counts claims by what was found about them.
type ClaimCounts struct {
	Supported  int `json:"supported"`
	Doubtful   int `json:"doubtful"`
	NotChecked int `json:"not_checked"`
	Unsure     int `json:"unsure"` // of NotChecked, those that were compared
	Failed     int `json:"failed"` // of NotChecked, those of which no source says what is quoted from it
}

// String returns the counts in words, the gravest first: 1 failed, 1 doubtful, 3 supported, 2 unsure. What failed or is
// unsure is not counted as not checked once more.
func (n *ClaimCounts) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{n.Failed, "failed"},
		{n.Doubtful, "doubtful"},
		{n.Supported, "supported"},
		{n.Unsure, "unsure"},
		{n.NotChecked - n.Unsure - n.Failed, "not checked"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
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

func newFinding(code Status, detail string) Finding {
	return Finding{Code: code, Counts: code.counts(), Detail: detail}
}

// found enters a finding about the response.
func (r *Report) found(code Status, format string, args ...any) {
	r.add(newFinding(code, fmt.Sprintf(format, args...)))
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

// state says what the findings come to.
func (r *Report) state() State {
	if len(r.Failure) > 0 {
		return Invalid
	}
	if n, _ := r.unverifiable(); n > 0 {
		for _, f := range r.Info {
			if f.Counts == CountUnverifiable && f.Code != ManifestPending {
				return Unverifiable
			}
		}
		return Pending
	}
	if len(r.Manifests) == 0 || len(r.Sources) > 0 || slices.ContainsFunc(r.Info, open) ||
		slices.ContainsFunc(r.Manifests, func(m ManifestReport) bool { return !m.Trusted }) {
		return Valid
	}
	return Trusted
}

// open reports whether a finding leaves open what there is to trust.
func open(f Finding) bool {
	return f.Code == NothingClaimed || f.Code == OutputUnchecked && f.Counts == CountWarning
}

// Why says in a sentence or two what the report's state comes from: what was found about the sources. Of the claims see
// WhyClaims.
func (r *Report) Why() string {
	switch r.State {
	case Invalid:
		if len(r.Failure) == 0 {
			return "Something failed."
		}
		f := &r.Failure[0]
		s := "Failed: "
		if f.Claim != "" {
			s += "claim " + shown(f.Claim) + ": "
		}
		if s += shown(string(f.Code)); f.Detail != "" {
			s += ". " + shown(f.Detail)
		}
		if more := len(r.Failure) - 1; more > 0 {
			s += fmt.Sprintf(" (And %d more.)", more)
		}
		return s
	case Unverifiable, Pending:
		n, f := r.unverifiable()
		if f == nil {
			return "Something could not be looked at."
		}
		what := shown(string(f.Code))
		if f.Source != "" {
			what += ": " + shownURL(f.Source)
		}
		if f.Detail != "" {
			what += ". " + shown(f.Detail)
		}
		return fmt.Sprintf("Nothing failed, but %d could not be looked at, the first %s", n, what)
	case Trusted:
		return "Nothing failed, and everything is signed by whom you trust." + r.summary()
	case Valid:
		why := "you have not said that you trust who signed it."
		left := slices.IndexFunc(r.Info, open)
		switch {
		case len(r.Manifests) == 0:
			why = "nobody signed it."
		case len(r.Sources) > 0:
			why = "sources are announced of which nobody says what was taken from them."
		case slices.ContainsFunc(r.Manifests, func(m ManifestReport) bool { return !m.Verified }):
			why = "it has no signature that could be checked."
		case left >= 0:
			detail := r.Info[left].Detail
			why = strings.ToLower(detail[:1]) + shown(detail[1:])
		}
		return "Nothing failed, but " + why + r.summary()
	default:
		return "Nothing is known of it: " + shown(strings.TrimSpace(r.Error))
	}
}

// summary says how much was looked at.
func (r *Report) summary() string {
	cited, good, warnings := 0, 0, 0
	for i := range r.Claims {
		cited += len(r.Claims[i].Sources)
		for k := range r.Claims[i].Sources {
			s := &r.Claims[i].Sources[k].Result
			if s.Counts.Passes() {
				good++
			}
			if s.Counts == CountWarning {
				warnings++
			}
		}
	}
	s := fmt.Sprintf(" %d of %s in order.", good, number(cited, "cited source"))
	if warnings > 0 {
		s += " " + number(warnings, "warning") + "."
	}
	return s
}

// WhyClaims says in a sentence what is doubtful, the first claim with its words; empty: nothing is.
func (r *Report) WhyClaims() string {
	i := slices.IndexFunc(r.Claims, func(c ClaimReport) bool { return c.Finding == Doubtful })
	if i < 0 {
		return ""
	}
	s := "Claim " + shown(r.Claims[i].ID) + " is doubtful: " + shown(r.Claims[i].Detail)
	if more := r.Findings.Claims.Doubtful - 1; more > 0 {
		s += fmt.Sprintf(" (And %d more.)", more)
	}
	return s
}

// FailOn is what fails a gate.
type FailOn string

// What fails a gate.
const (
	FailOnDoubtful FailOn = "doubtful" // a report that is invalid or has a doubtful claim
	FailOnInvalid  FailOn = "invalid"  // one that is invalid: gates that only ask for quotes
)

// Fails reports whether the report fails a gate. The zero FailOn is
// [FailOnDoubtful].
func (r *Report) Fails(on FailOn) bool {
	return r.State == Invalid || on != FailOnInvalid && r.Findings.Claims.Doubtful > 0
}

// number returns how many there are of what has this name: 1 claim, 2 claims.
func number(n int, name string) string {
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

// Next says what a person can do now; empty: nothing needs to be done.
func (r *Report) Next() string {
	if r.State != Invalid && r.Findings.Claims.Doubtful > 0 {
		return "read what is doubtful beside its source; --fail-on invalid lets it pass."
	}
	switch r.State {
	case Valid:
		for i := range r.Manifests {
			m := &r.Manifests[i]
			host := ascii(hostOf(m.URL))
			switch {
			case m.Verified && !m.Trusted && unforgeable(m.URL):
				return fmt.Sprintf("if you trust %s, say so with --trust %s, or --trust %s for this key only.",
					host, host, shown(m.KeyID))
			case m.Verified && !m.Trusted:
				return "if you know this key to be the publisher's, say so with --trust " + shown(m.KeyID) + "."
			case !m.Verified && r.Kind == KindManifest && m.URL != "" && r.Input != m.URL:
				return "verify " + shownURL(m.URL) + ", where its signature is."
			}
		}
	case Unverifiable, Pending:
		_, first := r.unverifiable()
		switch {
		case first == nil:
		case first.Code == ManifestPending:
			return "verify it again in a minute."
		case first.Code == Blocked || first.Code == ManifestBlocked:
			return "if the address is in a network of yours, allow it with --allow-net."
		case first.Code == HeaderMissing || first.Code == NothingQuoted:
			return "ask its publisher to say where its claims come from (docs/attribution-v1.md)."
		default:
			return "verify it again later, or open the sources that could not be read."
		}
	case Invalid:
		for i := range r.Manifests {
			if m := &r.Manifests[i]; m.Incidents != "" {
				return "do not rely on what failed; the publisher takes incidents at " + shownURL(m.Incidents) + "."
			}
		}
		return "do not rely on what failed; open its source and read it yourself."
	default:
	}
	return ""
}

// unverifiable returns how many findings could not be looked at, and the first of them.
func (r *Report) unverifiable() (n int, first *Finding) {
	for i := range r.Info {
		if f := &r.Info[i]; f.Counts == CountUnverifiable {
			if n++; first == nil {
				first = f
			}
		}
	}
	return n, first
}
