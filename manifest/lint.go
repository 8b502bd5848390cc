package manifest

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Finding is a result of Lint about one place in a manifest.
type Finding struct {
	Severity string `json:"severity"` // SeverityError or SeverityAdvice
	Code     string `json:"code"`     // a status, or the code of an advice
	Path     string `json:"path"`     // JSON pointer
	Line     int    `json:"line"`     // from 1
	Column   int    `json:"column"`   // from 1, in code points
	Detail   string `json:"detail"`
}

// Severities of a finding.
const (
	SeverityError  = "error"  // a verifier refuses or reports it
	SeverityAdvice = "advice" // valid, but could be better
)

// maxFindings is how many findings are reported for one manifest.
const maxFindings = 2048

// Lint returns everything that is wrong with the manifest in b, and advice for improving it, in document order, at most
// 2048 findings. Errors are all that Parse refuses, not only the first, and otherwise the results of Problems.
func Lint(b []byte) []Finding {
	m, errs := parse(b, maxFindings)
	l := &linter{}
	for i := range errs {
		l.add(SeverityError, errs[i].Status, errs[i].Path, errs[i].Detail)
	}
	if m == nil { // places cannot be found
		l.findings[0].Line, l.findings[0].Column = errs[0].Line, errs[0].Column
		return l.findings
	}
	if len(errs) == 0 {
		for _, p := range m.Problems() {
			l.add(SeverityError, p.Status, p.Path, p.Detail)
		}
	}
	l.top(m)
	for i := range m.Sources {
		s, path := &m.Sources[i], "/sources/"+strconv.Itoa(i)
		l.extra(path, *s, s.Extra)
		l.url(s.URL, path+"/url")
		if s.Hash == "" && s.Unavailable == "" {
			l.advise("no-hash", path, "it has no hash and gives no reason (unavailable)")
		}
	}
	for i := range m.Claims {
		l.claim(m, &m.Claims[i], "/claims/"+strconv.Itoa(i))
	}
	for i := range m.Chain {
		s, path := &m.Chain[i], "/chain/"+strconv.Itoa(i)
		l.extra(path, *s, s.Extra)
		switch {
		case s.Inputs == nil && s.InputsHash == "" && len(s.InputsRef) == 0:
			l.advise("no-inputs", path, "it has neither inputs, inputs_ref nor inputs_hash")
		case s.Inputs == nil && strings.HasPrefix(s.InputsHash, "sha256:"):
			l.advise("guessable-hash", path+"/inputs_hash", "short private inputs can be guessed from a "+
				"plain hash; hmac-sha256 with a salt keeps them private")
		}
	}
	return l.placed(b)
}

type linter struct{ findings []Finding }

func (l *linter) add(severity, code, path, detail string) {
	if len(l.findings) < maxFindings {
		l.findings = append(l.findings, Finding{Severity: severity, Code: code, Path: path, Detail: detail})
	}
}

func (l *linter) advise(code, path, detail string) { l.add(SeverityAdvice, code, path, detail) }

// placed returns the findings with their lines and columns, in document order.
func (l *linter) placed(b []byte) []Finding {
	paths, at := make([]string, len(l.findings)), make([]int, len(l.findings))
	for i := range paths {
		paths[i] = l.findings[i].Path
	}
	known := offsets(b, paths)
	slices.SortStableFunc(l.findings, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(known[x.Path], known[y.Path]), -cmp.Compare(x.Severity, y.Severity))
	})
	for i := range at {
		at[i] = known[l.findings[i].Path]
	}
	for i, p := range positions(b, at) {
		l.findings[i].Line, l.findings[i].Column = p.line, p.column
	}
	return l.findings
}

func (l *linter) top(m *Manifest) {
	for _, absent := range []struct {
		is           bool
		code, detail string
	}{
		{m.Version == "", "no-version", "it does not give its format version: \"version\":\"1.0\""},
		{m.Self == "", "no-self", "it does not give its URL (self), so it can be passed off as another one"},
		{
			m.Output == nil, "no-output",
			"it does not say which response it is about (output), so it can be replayed with another one",
		},
		{
			m.TextProfile == "", "no-text-profile",
			"it does not give the unit of offsets: \"text_profile\":\"" + TextProfile + "\"",
		},
		{
			len(m.Sources) == 0, "no-sources",
			"it does not list its sources, with their final URLs and the hashes of their texts",
		},
		{len(m.Chain) == 0, "no-chain", "it does not show how the answer came about (chain), which level 3 requires"},
	} {
		if absent.is {
			l.advise(absent.code, "", absent.detail)
		}
	}
	if m.Output != nil && m.Output.TextHash == "" {
		l.advise("no-output", "/output", "it has no text_hash, so the answer has to be kept octet by octet")
	}
	if strings.HasPrefix(m.Self, "http:") {
		l.advise("plain-http", "/self", "without TLS, anyone on the network path can change it")
	}
	l.extra("", *m, m.Extra)
	if m.Output != nil {
		l.extra("/output", *m.Output, m.Output.Extra)
	}
}

// extra advises against unknown members: most of them are misspelt.
func (l *linter) extra(path string, of any, extra Extra) {
	known := members[reflect.TypeOf(of)]
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		detail := "version 1 does not have this member"
		if i := slices.IndexFunc(known, func(m member) bool { return strings.EqualFold(m.name, name) }); i >= 0 {
			detail += "; did you mean " + known[i].name + "?"
		}
		l.advise("unknown-member", string(jsontext.Pointer(path).AppendToken(name)), detail)
	}
}

// url reports a source that a verifier cannot fetch by its URL.
func (l *linter) url(address, path string) {
	if err := checkSourceURL(withoutFragment(address)); err != nil {
		l.advise("unfetchable-url", path, "it cannot be fetched: "+err.Error())
	} else if strings.Contains(address, "#") {
		l.advise("unfetchable-url", path, "a fragment is never sent, and the header has the URL without it")
	}
}

func (l *linter) claim(m *Manifest, c *Claim, path string) {
	l.extra(path, *c, c.Extra)
	if c.ID != ClaimID(c.Text) {
		l.advise("unstable-id", path+"/claim_id",
			"ids made from the text stay the same in every run; this would be "+ClaimID(c.Text))
	}
	if c.ConfidenceScore != nil && *c.ConfidenceScore != float64(int(*c.ConfidenceScore)) {
		l.advise(
			"fractional-score", path+"/confidence_score",
			"programs write fractions differently, and the confidence says enough",
		)
	}
	if len(c.Steps) == 0 && len(m.Chain) > 0 {
		l.advise("no-steps", path, "it does not say which steps made it")
	}
	for i := range c.Sources {
		s := &c.Sources[i]
		path := path + "/sources/" + strconv.Itoa(i)
		l.extra(path, *s, s.Extra)
		if s.Source == "" {
			l.url(s.URL, path+"/url")
		}
		for _, p := range missing(s, path) {
			l.advise(p.Status, path, p.Detail)
		}
		if s.Excerpt == nil {
			continue
		}
		l.extra(path+"/excerpt", *s.Excerpt, s.Excerpt.Extra)
		if max(utf8.RuneCountInString(s.Excerpt.Prefix), utf8.RuneCountInString(s.Excerpt.Suffix)) > maxAroundWritten {
			l.advise("long-context", path+"/excerpt",
				"prefix and suffix should have at most "+plural(maxAroundWritten, "code point"))
		}
	}
}

// maxAroundWritten is how many code points writers should give before or after an excerpt.
const maxAroundWritten = 32
