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

// ReportVersion is the version of a [Report] as JSON. Members may be added within a version; none is renamed or
// removed.
const ReportVersion = 1

// State is the overall result of a report.
type State string

// The states, from best to worst. The zero State is not trusted.
const (
	Trusted      State = "trusted"      // valid, completely checked, and the user trusts the signer
	Valid        State = "valid"        // nothing failed, but there is no signer, or the user does not trust it
	Pending      State = "pending"      // nothing failed, and all that is missing is a manifest that is not built yet
	Unverifiable State = "unverifiable" // nothing failed, but something claimed could not be checked
	Invalid      State = "invalid"      // something failed
)

// Kind is what was verified.
type Kind string

// The kinds.
const (
	KindResponse Kind = "response" // an HTTP response that may announce manifests
	KindManifest Kind = "manifest" // a manifest by itself, not compared with a response
	KindBundle   Kind = "bundle"   // a stored bundle
	KindDocument Kind = "document" // an answer document: its quotes, which are unsigned
)

// Report is the result of a verification. It is plain data; its JSON is documented in docs/verify.md.
type Report struct {
	Version         int       `json:"version"` // 1; members may be added within a version, none is renamed or removed
	State           State     `json:"state"`   // of the sources, their manifests and signatures
	Kind            Kind      `json:"kind"`
	Input           string    `json:"input"`        // the URL or the name of what was verified; empty if it has none
	ResponseURL     string    `json:"response_url"` // where the response came from; empty if unknown or none
	CheckedAt       time.Time `json:"checked_at"`
	Verifier        string    `json:"verifier"`
	VerifierVersion string    `json:"verifier_version"`
	Offline         bool      `json:"offline"` // nothing was fetched

	// Success, Info and Failure are all findings about the response and its manifests, in the order in which they were
	// made. Findings about single sources are in Claims; failures among them are also in Failure.
	Success []Finding `json:"success"`
	Info    []Finding `json:"info"` // also warnings, and what could not be checked: see Counts
	Failure []Finding `json:"failure"`

	Findings  Findings         `json:"findings"`
	Level     Levels           `json:"level"`     // the lowest of the manifests'
	Manifests []ManifestReport `json:"manifests"` // in the order in which they were announced
	Claims    []ClaimReport    `json:"claims"`    // of all manifests
	// announced without a manifest (Level 1): whether they can be read, no more
	Sources  []SourceReport `json:"sources"`
	Upstream []*Report      `json:"upstream"` // of sources that are agents' answers themselves

	// why the given address could not be read; nil if it could, or if there was none
	Unread *snapshot.FetchError `json:"-"`

	// why there is nothing to report on, as a file that cannot be read; set by the caller that collects reports
	Error string `json:"error,omitempty"`
}

// Finding is the result of one check, good or bad.
type Finding struct {
	Code     Status `json:"code"`
	Counts   Counts `json:"counts"`
	Detail   string `json:"detail"`             // a sentence
	Manifest string `json:"manifest,omitempty"` // the URL of the manifest it is about
	Claim    string `json:"claim,omitempty"`    // the claim's id
	Source   string `json:"source,omitempty"`   // the source's URL
	Path     string `json:"path,omitempty"`     // JSON pointer into the manifest
}

// Levels compares the promised level with the observed one.
type Levels struct {
	Promised int      `json:"promised"` // 0 if none
	Observed int      `json:"observed"` // 0 if nothing was announced
	Why      []string `json:"why"`      // what is missing for the next level
}

// ManifestReport is what was found about one manifest. Members are empty if unknown.
type ManifestReport struct {
	URL       string `json:"url"`
	SHA256    string `json:"sha256"` // of its body, hexadecimal
	RunID     string `json:"run_id"`
	AgentID   string `json:"agent_id"`
	EmittedAt string `json:"emitted_at"`
	KeyID     string `json:"key_id"`     // of the signature; empty if unsigned
	SignedAt  string `json:"signed_at"`  // created parameter of the signature
	Verified  bool   `json:"verified"`   // the signature is valid, and its key is good
	Trusted   bool   `json:"trusted"`    // Verified, and its host or key is in Verifier.Trust
	TrustedBy string `json:"trusted_by"` // the entry of Verifier.Trust
	Logged    bool   `json:"logged"`     // its digest is in the publisher's log
	LogSize   int64  `json:"log_size"`   // entries of the checkpoint that proves it
	Level     Levels `json:"level"`      // of this manifest
	Incidents string `json:"incidents"`  // where its publisher accepts incidents; empty if nowhere

	Bundle   *manifest.Signed   `json:"-"` // all that is needed to verify it again; nil if it could not be read
	Manifest *manifest.Manifest `json:"-"` // nil if it could not be read
}

// ClaimReport is what was found about one claim.
type ClaimReport struct {
	Manifest string `json:"manifest"` // URL of its manifest
	ID       string `json:"claim_id"`
	Text     string `json:"text"`

	// Finding is the result of comparing the claim with its excerpts, or a judge's verdict. It is independent of the
	// state of the sources. Reason tells why a claim is unchecked or could not be judged; it is empty otherwise.
	Finding support.Label `json:"finding"`
	Reason  string        `json:"reason,omitempty"` // no-excerpt, cut, unread, no-source, failed, error
	// the details in which the claim differs from its excerpt; beside a judge's verdict they only annotate it
	Differs []Difference `json:"differs,omitempty"`
	// WrongSource is an excerpt of another claim that supports this one, if its own are far from it; nil if there is
	// none.
	WrongSource *Excerpted `json:"wrong_source,omitempty"`

	Status Status `json:"status"` // of the claim's support: supported-verbatim, …
	Counts Counts `json:"counts"`
	// how near the excerpts are to the claim, in [0, 1]: see support.Verdict
	Closeness *float64       `json:"closeness,omitempty"`
	By        string         `json:"by"` // the checker's name
	Detail    string         `json:"detail"`
	Sources   []SourceReport `json:"sources"`
}

// Difference is a detail in which a claim contradicts its excerpt.
type Difference struct {
	Kind     support.ConflictKind `json:"kind"`
	Claim    string               `json:"claim"`    // the claim's words
	Excerpt  string               `json:"excerpt"`  // the excerpt's words in their place
	Sentence string               `json:"sentence"` // of the excerpt
}

// Excerpted is a sentence of an excerpt.
type Excerpted struct {
	URL     string `json:"url"`
	Excerpt string `json:"excerpt"`
}

// Findings are the two results of a report. They are independent of each other.
type Findings struct {
	Sources State       `json:"sources"` // same as Report.State
	Claims  ClaimCounts `json:"claims"`
}

// ClaimCounts counts claims by finding.
type ClaimCounts struct {
	Supported    int `json:"supported"`
	Differs      int `json:"differs"`
	Unsupported  int `json:"unsupported"`
	Contradicted int `json:"contradicted"`
	Unjudged     int `json:"unjudged"`
	Unchecked    int `json:"unchecked"`
	Failed       int `json:"failed"` // those of Unchecked whose quotes none of their sources has
}

// Denied returns how many claims differ from their excerpts, or are denied by a judge.
func (n *ClaimCounts) Denied() int { return n.Differs + n.Unsupported + n.Contradicted }

// add counts a claim.
func (n *ClaimCounts) add(c *ClaimReport) {
	switch c.Finding {
	case support.Supported:
		n.Supported++
	case support.Differs:
		n.Differs++
	case support.Unsupported:
		n.Unsupported++
	case support.Contradicted:
		n.Contradicted++
	case support.Unchecked:
		if n.Unchecked++; c.Reason == reasonFailed {
			n.Failed++
		}
	default:
		n.Unjudged++
	}
}

// String returns the counts in words, the gravest first: 1 failed, 1 differs, 3 supported, 2 unjudged. Failed claims
// are not counted as unchecked again.
func (n *ClaimCounts) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{n.Failed, "failed"},
		{n.Contradicted, "contradicted"},
		{n.Unsupported, "unsupported"},
		{n.Differs, "differs"},
		{n.Supported, "supported"},
		{n.Unjudged, "unjudged"},
		{n.Unchecked - n.Failed, "unchecked"},
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
	Excerpt   string       `json:"excerpt"` // the manifest's quote; empty if it has none
	Result    SourceResult `json:"result"`
	Cached    bool         `json:"cached"`     // Result is from an earlier job
	CheckedAt time.Time    `json:"checked_at"` // when Result was found
}

// Expected is what a manifest records of a source. Members are empty if not recorded.
type Expected struct {
	Hash        string `json:"hash"`
	TextHash    string `json:"text_hash"`
	ExcerptHash string `json:"excerpt_hash"`
}

func newFinding(code Status, detail string) Finding {
	return Finding{Code: code, Counts: code.counts(), Detail: detail}
}

// found adds a finding about the response.
func (r *Report) found(code Status, format string, args ...any) {
	r.add(newFinding(code, fmt.Sprintf(format, args...)))
}

// add adds a finding to the list that it counts for.
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

// state derives the state from the findings.
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
	if len(r.Manifests) == 0 || len(r.Sources) > 0 || slices.ContainsFunc(r.Info, isOpenQuestion) ||
		slices.ContainsFunc(r.Manifests, func(m ManifestReport) bool { return !m.Trusted }) {
		return Valid
	}
	return Trusted
}

// isOpenQuestion reports whether a finding leaves something unproven, so that the report is not trusted.
func isOpenQuestion(f Finding) bool {
	return f.Code == NothingClaimed ||
		f.Counts == CountWarning && slices.Contains([]Status{OutputBound, OutputUnchecked, HeaderMalformed}, f.Code)
}

// Why gives the reason for the report's state in a sentence or two. For the claims see WhyClaims.
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
			return "Something could not be checked."
		}
		what := shown(string(f.Code))
		if f.Source != "" {
			what += ": " + shownURL(f.Source)
		}
		if f.Detail != "" {
			what += ". " + shown(f.Detail)
		}
		return fmt.Sprintf("Nothing failed, but %d could not be checked, the first %s", n, what)
	case Trusted:
		return "Nothing failed, and everything is signed by someone you trust." + r.summary()
	case Valid:
		why := "you have not said that you trust its signer."
		left := slices.IndexFunc(r.Info, isOpenQuestion)
		switch {
		case len(r.Manifests) == 0:
			why = "it is not signed."
		case len(r.Sources) > 0:
			why = "for some announced sources nothing states what was taken from them."
		case slices.ContainsFunc(r.Manifests, func(m ManifestReport) bool { return !m.Verified }):
			why = "it has no signature that could be checked."
		case left >= 0:
			detail := r.Info[left].Detail
			why = strings.ToLower(detail[:1]) + shown(detail[1:])
		}
		return "Nothing failed, but " + why + r.summary()
	default:
		return "Nothing is known about it: " + shown(strings.TrimSpace(r.Error))
	}
}

// summary tells how many sources passed.
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

// WhyClaims describes the first claim that differs or is denied in a sentence; it returns "" if there is none.
func (r *Report) WhyClaims() string {
	i := slices.IndexFunc(r.Claims, func(c ClaimReport) bool { return c.Status.DeniesClaim() })
	if i < 0 {
		return ""
	}
	c := &r.Claims[i]
	s := "Claim " + shown(c.ID)
	if c.Finding == support.Differs {
		s += " differs: "
	} else {
		s += " is " + string(c.Finding) + ": "
	}
	s += shown(c.Detail)
	if more := r.Findings.Claims.Denied() - 1; more > 0 {
		s += fmt.Sprintf(" (And %d more.)", more)
	}
	return s
}

// FailOn selects what fails a gate.
type FailOn string

// The values of FailOn.
const (
	FailOnDiffers  FailOn = "differs"  // invalid reports, and claims that differ or that a judge denies
	FailOnUnjudged FailOn = "unjudged" // and claims that are not supported, for whatever reason
	FailOnInvalid  FailOn = "invalid"  // invalid reports only, for gates that are about quotes
)

// Fails reports whether the report fails a gate. The zero FailOn is [FailOnDiffers].
func (r *Report) Fails(on FailOn) bool {
	n := &r.Findings.Claims
	switch {
	case r.State == Invalid:
		return true
	case on == FailOnInvalid:
		return false
	case on == FailOnUnjudged && n.Unjudged+n.Unchecked > 0:
		return true
	}
	return n.Denied() > 0
}

// number returns a count with its noun: 1 claim, 2 claims.
func number(n int, name string) string {
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

// Next tells a person what to do now; it returns "" if nothing needs to be done.
func (r *Report) Next() string {
	if r.State != Invalid && r.Findings.Claims.Denied() > 0 {
		return "compare the claims that differ with their sources; --fail-on invalid lets them pass."
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
				return "if you know that this key is the publisher's, say so with --trust " + shown(m.KeyID) + "."
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
			return "if the address is in your own network, allow it with --allow-net."
		case first.Code == HeaderMissing || first.Code == NothingQuoted:
			return "ask its publisher to cite its sources (docs/attribution-v1.md)."
		default:
			return "verify it again later, or open the sources that could not be read."
		}
	case Invalid:
		for i := range r.Manifests {
			if m := &r.Manifests[i]; m.Incidents != "" {
				return "do not rely on what failed; report it to the publisher at " + shownURL(m.Incidents) + "."
			}
		}
		return "do not rely on what failed; open its source and read it yourself."
	default:
	}
	return ""
}

// unverifiable returns the number of findings that could not be checked, and the first of them.
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
