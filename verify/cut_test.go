package verify_test

import (
	"context"
	"fmt"
	entities "html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// citing returns an answer with one claim that is cited to a quote of a source.
func citing(claim, address, quote string) *ibid.Answer {
	span := ibid.Span{End: len(claim)}
	return &ibid.Answer{
		Text: claim, Sources: []ibid.Source{{ID: "a", URL: address}},
		Citations: []ibid.Citation{{
			ID: "c", Span: span, Claim: span, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact,
			Refs: []ibid.Ref{{Source: "a", Quote: quote}},
		}},
	}
}

// A claim whose quote was cut short is compared with what its source goes on to say; if the source is away, nothing is
// said of it.
func TestCutQuotes(t *testing.T) {
	pages := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, pages[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	v := &verify.Verifier{Fetcher: fetcher(t)}
	for i, row := range testenv.Cases(t, "testdata/cut.txt", 5) {
		path := fmt.Sprintf("/%d", i)
		pages[path] = sitePage("Notes", row[2])
		a := citing(row[3], server.URL+path, row[1])
		c := &testenv.Must(v.Answer(t.Context(), a))(t).Claims[0]
		got := string(c.Finding)
		if len(c.Differs) > 0 {
			got += " " + c.Differs[0].Excerpt
		}
		if got != row[4] {
			t.Errorf("%s: %s, not %s (%s)", row[0], got, row[4], c.Detail)
		}
		away := &testenv.Must((&verify.Verifier{Offline: true}).Answer(t.Context(), a))(t).Claims[0]
		if away.Finding != support.Unchecked || away.Reason != "unread" {
			t.Errorf("%s: if the page is away: %s %s", row[0], away.Finding, away.Reason)
		}
		r := &c.Sources[0].Result
		found, err := verify.CheckCitations(t.Context(), a, &verify.CitationOptions{
			Plain: strings.Clone, Most: 1, Quote: func(*ibid.Citation, *ibid.Ref) (quote, passage string) {
				return r.Excerpt, r.Passage
			},
		})
		testenv.OK(t, err)
		// A page does not read the sentences around a quote.
		if want := c.Finding; want != support.Unchecked && !strings.Contains(row[0], "denial") && found[0].Finding != want {
			t.Errorf("%s: %s, but on a page %s", row[0], c.Finding, found[0].Finding)
		}
	}
}

// asked is a judge that records the passages that it is shown, and finds no claim supported.
type asked struct{ passages []string }

func (a *asked) Info() support.Info { return support.Info{ID: "asked", Version: "1"} }

func (a *asked) Check(_ context.Context, in []support.Pair) ([]support.Verdict, error) {
	verdicts := make([]support.Verdict, len(in))
	for i := range in {
		for _, p := range in[i].Passages {
			a.passages = append(a.passages, p.Text)
		}
		verdicts[i] = support.Verdict{Label: support.Unsupported, By: "asked@1"}
	}
	return verdicts, nil
}

// A judge is shown the passage around a quote that was cut short, and decides.
func TestCutQuoteJudged(t *testing.T) {
	body := sitePage("Notes", "<p>Four keepers lived on the rock and kept goats.</p><p>The lamp burned rapeseed oil.</p>")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	var judge asked
	v := &verify.Verifier{Fetcher: fetcher(t), Judge: support.WithJudge(&judge)}
	for _, quote := range []string{"Four keepers lived on the rock ...", "Four keepers lived on the rock and kept goats."} {
		r := testenv.Must(v.Answer(t.Context(), citing("The lamp at the rock burned oil.", server.URL+"/", quote)))(t)
		if got := r.Claims[0].Finding; got != support.Unsupported {
			t.Errorf("%q: %s", quote, got)
		}
	}
	if len(judge.passages) != 2 || !strings.Contains(judge.passages[0], "kept goats. The lamp burned rapeseed oil.") ||
		judge.passages[1] != "Four keepers lived on the rock and kept goats." {
		t.Errorf("shown: %q", judge.passages)
	}
}

// recordedAnswers calls f for each answer that a provider's responses were recorded of, in the shared corpus.
func recordedAnswers(t *testing.T, provider string, f func(name string, a *ibid.Answer)) {
	t.Helper()
	dir := filepath.Join(testenv.Shared(t), "corpus", provider)
	testenv.OK(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".request.json") || strings.HasSuffix(path, ".jsonl") {
			return err
		}
		body := testenv.Must(os.ReadFile(path))(t)
		if a, err := ibid.Decode(body, nil); err == nil {
			f(filepath.Base(path), a)
		}
		return nil
	}))
}

var aDigit = regexp.MustCompile(`[1-9]`)

// The quotes that Anthropic cut in recorded answers, on pages that go on after the cut: with the claim, or with the
// claim but for one digit. Without the page nothing that the quotes say becomes worse.
func TestRecordedCutQuotes(t *testing.T) {
	pages := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, pages[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	v := &verify.Verifier{Fetcher: fetcher(t)}
	cut, supported, falsified := 0, 0, 0
	recordedAnswers(t, "anthropic", func(name string, a *ibid.Answer) {
		for i := range a.Citations {
			c := &a.Citations[i]
			_, after := snapshot.CutShort(c.Refs[0].Quote)
			if s := a.Source(c.Refs[0].Source); !after || s == nil || s.URL == "" {
				continue
			}
			cut++
			claim := (&ibid.Answer{Text: a.Text[c.Claim.Start:c.Claim.End]}).Render(&ibid.RenderOptions{Style: ibid.StylePlain})
			claim = strings.TrimRight(strings.TrimSpace(claim), ".")
			shown := entities.UnescapeString(strings.TrimSuffix(c.Refs[0].Quote, "..."))
			check := func(kind, said string) support.Label {
				path := fmt.Sprintf("/%d/%s", cut, kind)
				// A quote of several blocks of a page has them in one line.
				body := entities.EscapeString(shown + "xt. " + said + ".")
				pages[path] = sitePage("Notes", "<p>"+strings.ReplaceAll(body, " · ", "</p><p>")+"</p>")
				r := testenv.Must(v.Answer(t.Context(), citing(claim+".", server.URL+path, c.Refs[0].Quote)))(t)
				result := &r.Claims[0].Sources[0].Result
				if !result.Counts.Passes() || result.Passage == "" {
					t.Errorf("%s: the page has %q: %s %s", name, c.Refs[0].Quote, result.Status, result.Note)
				}
				return r.Claims[0].Finding
			}
			switch got := check("honest", claim); got {
			case support.Supported:
				supported++
			default:
				t.Logf("%s: %q is %s by %q", name, claim, got, c.Refs[0].Quote)
				if got != support.Unjudged {
					t.Errorf("%s: %q is %s", name, claim, got)
				}
			}
			at := aDigit.FindStringIndex(claim)
			if at == nil {
				continue
			}
			falsified++
			changed := claim[:at[0]] + string('1'+(claim[at[0]]-'0')%9) + claim[at[1]:]
			if got := check("falsified", changed); got == support.Supported {
				t.Errorf("%s: %q is supported by %q", name, claim, changed)
			}
		}
	})
	t.Logf("%d cut quotes: %d claims supported by what follows, %d falsified", cut, supported, falsified)
	if cut < 50 || supported < cut*95/100 {
		t.Errorf("%d of %d claims are supported by what follows their quotes", supported, cut)
	}
}
