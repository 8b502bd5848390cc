package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// shownAnswer is the page of an answer, parsed as a browser does.
type shownAnswer struct {
	*html.Node

	body string
}

func showAnswer(tb testing.TB, p *Page, call *store.Call) *shownAnswer {
	tb.Helper()
	var b bytes.Buffer
	p.write(tb, &b, call)
	n := testenv.Must(html.Parse(bytes.NewReader(b.Bytes())))(tb)
	return &shownAnswer{n, b.String()}
}

// all returns the elements with a name and a class; empty matches any.
func (s *shownAnswer) all(name, class string) []*html.Node {
	var out []*html.Node
	for n := range s.Descendants() {
		if n.Type == html.ElementNode && (name == "" || n.Data == name) && (class == "" || slices.Contains(strings.Fields(attr(n, "class")), class)) {
			out = append(out, n)
		}
	}
	return out
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// feedbackOf returns the text of an element, with single spaces.
func said(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func texts(nodes []*html.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, said(n))
	}
	return out
}

// dogs is the answer of the third seed: a file with its quote and confidence, and a second source for the same place.
func dogs() *store.Call {
	text := "Core vaccines protect dogs from distemper. Ask your vet."
	s := ibid.Span{Start: 0, End: 42}
	return &store.Call{
		AnswerID: "ans_1", Run: "run_1", Conversation: "talk", Started: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC), Step: store.Step{Number: 2},
		Prompt: []store.Message{{Role: "system", Text: "Be brief."}, {Role: "user", Text: "Which vaccines does a dog need?"}},
		Answer: &ibid.Answer{
			Provider: "gemini", Model: "gemini-2.5-flash", Text: text, Complete: true, Finish: ibid.FinishStop, Queries: []string{"dog vaccines"},
			Sources: []ibid.Source{
				{ID: "a", Kind: ibid.File, Title: "WSAVA-Vaccination-guidelines-2024.pdf", Filename: "WSAVA-Vaccination-guidelines-2024.pdf", Score: new(0.85), ScoreOrigin: ibid.ScoreRetriever},
				{ID: "b", Kind: ibid.Web, Title: "Vaccines", URL: "https://www.bücher.example/dogs", RetrievedAt: time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)},
				{ID: "c", Kind: ibid.DocumentKind, Title: "Handbook", Content: "Opening hours."},
			},
			Citations: []ibid.Citation{
				{
					ID: "c-1", Span: s, Claim: s, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Origin: ibid.OriginProvider,
					Verification: &ibid.Verification{Status: "verified", CheckedAt: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)},
					Support:      &ibid.Support{Label: "supported", By: "lexical"},
					Refs: []ibid.Ref{
						{Source: "a", Quote: "Core vaccines for dogs include CDV, CAV, and CPV.", Confidence: new(0.95), Locator: &ibid.Locator{Page: 12}},
						{Source: "b"},
					},
				},
				{ID: "c-2", Anchor: ibid.AnchorNone, Origin: ibid.OriginInferred, Refs: []ibid.Ref{{Source: "b", Quote: "A vet knows."}, {Source: "gone", Quote: "Nobody."}}},
			},
			Issues: []ibid.Issue{{Code: "unknown-source", Detail: "gone"}},
		},
	}
}

func TestAnswer(t *testing.T) {
	s := showAnswer(t, newViews(t), dogs())
	for _, test := range []struct {
		what, name, class string
		want              []string
	}{
		{"heading", "h1", "", []string{"Which vaccines does a dog need?"}},
		{"chips", "a", "chip", []string{"supported: 1 WSAVA-Vaccination-guidelines-2024.pdf p. 12 +1"}},
		{"claims", "mark", "claim", []string{"Core vaccines protect dogs from distemper."}},
		{"names", "p", "source-name", []string{"Source 1: WSAVA-Vaccination-guidelines-2024.pdf", "Source 2: Vaccines", "Source 3: Handbook"}},
		{"quotes", "blockquote", "", []string{"Core vaccines for dogs include CDV, CAV, and CPV.", "A vet knows.", "Nobody.", "Opening hours."}},
		{"badges", "span", "badge", []string{"supported", "not checked"}},
		{"uses", "div", "use", []string{
			"Core vaccines for dogs include CDV, CAV, and CPV. p. 12 confidence 0.95, given by the provider In the text Is this right?",
			"no quote supported In the text Open Is this right?",
			"A vet knows. found afterwards for no particular place in the text Open Is this right?",
			"source gone Nobody. not checked found afterwards for no particular place in the text Is this right?",
		}},
		{"heads of lists", "h2", "", []string{"Sources 2"}},
		{"other heads", "h3", "", []string{"Citations without their source", "Not cited", "Searches"}},
		{"remarks", "details", "issues", []string{"1 remark on how the response was read unknown-source gone"}},
		{"tiles", "span", "tile", []string{"W", "B", "H"}},
	} {
		var got []string
		for _, n := range s.all(test.name, test.class) {
			words := said(n)
			if test.name == "div" || test.name == "details" {
				words = spaced(n)
			}
			got = append(got, words)
		}
		testenv.Equal(t, test.what, test.want, got)
	}
	var hits []string
	for _, n := range s.all("mark", "") {
		if attr(n, "class") == "" {
			hits = append(hits, said(n))
		}
	}
	testenv.Equal(t, "words that quote and claim share", []string{"Core vaccines", "dogs"}, hits)
	for _, part := range []string{
		`<ibid-cite id="m-1" data-s="supported" data-cites="c-1" data-n="1 2"><a class="chip good" href="#s-1">`, `<div class="source active" role="listitem" tabindex="-1" id="s-1" data-s="supported">`, `href="#m-1"`,
		`href="https://www.xn--bcher-kva.example/dogs"`, `>bücher.example<`, `read <time datetime="2026-02-03T00:00:00Z">3 February 2026</time>`,
		`score 0.85, given by the retriever`, `href="/ui/answers/ans_1/sources/2"`, `href="/ui/runs/run_1"`, `href="/ui/conversations/talk#a-ans_1"`,
		`href="/ui/answers/ans_1/export?as=bibtex"`, `href="https://www.xn--bcher-kva.example/dogs#:~:text=A%20vet%20knows."`,
	} {
		if !strings.Contains(s.body, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	checkHarmless(t, s)
}

// spaced returns the text of an element with a space between its parts.
func spaced(n *html.Node) string {
	if n.Type == html.TextNode {
		return strings.Join(strings.Fields(n.Data), " ")
	}
	var out []string
	for c := range n.ChildNodes() {
		if words := spaced(c); words != "" {
			out = append(out, words)
		}
	}
	return strings.Join(out, " ")
}

// An answer shows what is wrong with it, and that it has no sources.
func TestAnswerNotices(t *testing.T) {
	p := newViews(t)
	for name, test := range map[string]struct {
		answer  ibid.Answer
		notices []string
		heading string
	}{
		"no sources":       {ibid.Answer{Text: "Paris.", Complete: true}, nil, "No sources"},
		"uncited":          {ibid.Answer{Text: "Paris.", Complete: true, Sources: []ibid.Source{{ID: "a", Title: "A"}}}, nil, "No sources"},
		"broken":           {ibid.Answer{Text: "Par"}, []string{"The answer broke off. This is what had arrived."}, "No sources"},
		"stopped":          {ibid.Answer{Text: "Par", Issues: []ibid.Issue{{Code: gateway.IssueStopped}}}, []string{"The answer was stopped. This is what had arrived."}, "No sources"},
		"cut":              {ibid.Answer{Text: "Par", Complete: true, Finish: ibid.FinishLength}, []string{"The answer was cut off at its maximum length."}, "No sources"},
		"refused":          {ibid.Answer{Text: "No.", Complete: true, Finish: ibid.FinishRefusal}, []string{"The model refused to answer."}, "No sources"},
		"filtered":         {ibid.Answer{Complete: true, Finish: ibid.FinishFilter}, []string{"A filter of the provider stopped the answer."}, "No sources"},
		"nothing":          {ibid.Answer{Complete: true}, []string{"The answer has no text."}, "No sources"},
		"waits for a tool": {ibid.Answer{Text: "Let me look.", Complete: true, Finish: ibid.FinishTool}, []string{"This is not the end: the model is waiting for the result of a tool."}, "No sources"},
		"error": {
			ibid.Answer{Error: &ibid.ProviderError{Code: "overloaded", Message: "Try\nlater."}, Finish: ibid.FinishError},
			[]string{"The provider answered with an error: overloaded: Try later."},
			"No sources",
		},
		"more": {ibid.Answer{Text: "A", Complete: true, Alternatives: []*ibid.Answer{{}}}, []string{"The provider sent 1 other answer to the same question. The JSON has them."}, "No sources"},
	} {
		s := showAnswer(t, p, &store.Call{AnswerID: "ans_1", Answer: &test.answer})
		testenv.Equal(t, fmt.Sprintf("%s: notices", name), test.notices, texts(s.all("p", "notice")))
		if got := texts(s.all("h2", "")); !slices.Contains(got, test.heading) {
			t.Errorf("%s: headings %q, want %q", name, got, test.heading)
		}
	}
}

// What a provider requires to be shown is in a frame that can do nothing to the page.
func TestAnswerDisplay(t *testing.T) {
	call := dogs()
	call.Answer.Display = []ibid.Display{{Kind: "google-search-suggestions", HTML: "<script>alert(1)</script>"}}
	s := showAnswer(t, newViews(t), call)
	frames := s.all("iframe", "")
	if len(frames) != 1 || attr(frames[0], "sandbox") != "allow-popups allow-popups-to-escape-sandbox" || attr(frames[0], "src") != "/ui/answers/ans_1/display/1" {
		t.Errorf("frames: %v", frames)
	}
	checkHarmless(t, s)
}

// Citations that say the same of a source share one use of it, and several answers can share a page.
func TestAnswerUses(t *testing.T) {
	call := citedCall(4)
	for i := range call.Answer.Citations {
		call.Answer.Citations[i].Refs = []ibid.Ref{{Source: "s0", Quote: "The same words."}}
	}
	p := newViews(t)
	s := showAnswer(t, p, call)
	uses := s.all("div", "use")
	if len(uses) != 1 || len(strings.Fields(attr(uses[0], "data-cites"))) != 4 {
		t.Errorf("%d uses; the first has the citations %q", len(uses), attr(uses[0], "data-cites"))
	}
	v := p.answerView(t.Context(), call, &answerOptions{prefix: "t3-", numbering: &ibid.Numbering{"web:https://other.example/": 7}})
	if v.Cited[0].Number != 8 || v.Cited[0].Prefix != "t3-" || !strings.Contains(string(v.Text), `<ibid-cite id="t3-m-1"`) || !strings.Contains(string(v.Text), `href="#t3-s-8"`) {
		t.Errorf("in a conversation: number %d, prefix %s", v.Cited[0].Number, v.Cited[0].Prefix)
	}
	if live := p.answerView(t.Context(), &store.Call{AnswerID: "x", Answer: &ibid.Answer{Text: "Par"}}, &answerOptions{live: true}); len(live.Notices) != 0 || !live.Live {
		t.Errorf("an answer that is still arriving has the notices %v", live.Notices)
	}
}

// No row has a form: while parsing, a browser lays the page out again for each form. A link leads to the form, if the
// reader may give feedback.
func TestAnswerJudged(t *testing.T) {
	p, call := newViews(t), dogs()
	s := showAnswer(t, p, call)
	if forms := s.all("form", ""); len(forms) != 2 { // search and sign out
		t.Errorf("%d forms", len(forms))
	}
	links := s.all("a", "judge")
	if len(links) == 0 || attr(links[0], "href") != "/ui/feedback?answer=ans_1&citation=c-1" {
		t.Errorf("links to judge: %q", texts(links))
	}
	if v := p.answerView(t.Context(), call, &answerOptions{readOnly: true}); v.Cited[0].Uses[0].Judge != "" {
		t.Error("a reader who may not judge is asked to")
	}
}

// A chip shows the gravest result for its citations, as an icon and, for screen readers, a word; what is wrong is
// marked in the text.
func TestStandings(t *testing.T) {
	p := newViews(t)
	for name, test := range map[string]struct {
		status, quote, support, said string
		word, kind, note             string
	}{
		"not checked":                 {word: wordUnchecked, kind: badgeNone},
		"found":                       {status: "verified", quote: "The mill of Tonbo.", word: wordFound, kind: badgeFound},
		"read, and nothing is quoted": {status: "verified", word: wordNoQuote, kind: badgeNone},
		"found and supported":         {status: "verified", quote: "The mill of Tonbo closed in 1967.", word: wordSupported, kind: badgeGood},
		"supported and not read":      {quote: "The mill of Tonbo closed in 1967.", word: wordUnchecked, kind: badgeNone},
		"differs":                     {status: "verified", quote: "The mill of Tonbo closed in 1962.", word: wordDiffers, kind: badgeClose, note: "source: 1962"},
		"contradicted by a judge":     {status: "verified", support: "contradicted", word: wordContradicted, kind: badgeClose},
		"differs over not reachable":  {status: "unreachable", quote: "The mill of Tonbo closed in 1962.", word: wordDiffers, kind: badgeClose, note: "source: 1962"},
		"differs over supported":      {status: "verified", quote: "The mill of Tonbo closed in 1962.", support: "supported", word: wordDiffers, kind: badgeClose, note: "source: 1962"},
		"not reachable":               {status: "gone", quote: "The mill of Tonbo closed in 1967.", word: wordUnreachable, kind: badgeLost},
		"cut":                         {status: "excerpt-cut", word: wordCut, kind: badgeClose},
		"changed over differs":        {status: "excerpt-altered", quote: "The mill of Tonbo closed in 1962.", word: wordChanged, kind: badgeBad},
		"missing":                     {status: "excerpt-missing", word: wordMissing, kind: badgeBad},
		"misquoted":                   {status: "excerpt-mismatch", word: wordMisquoted, kind: badgeBad},
		"wrong source":                {status: "verified", said: store.VerdictWrongSource, word: wordWrongSource, kind: badgeBad},
		"a reader says it is not so":  {status: "verified", said: store.VerdictNotSaid, word: wordUnsupported, kind: badgeClose},
		"a reader says it is right":   {status: "excerpt-missing", said: store.VerdictRight, word: wordMissing, kind: badgeBad},
		"a status that nobody knows":  {status: `x" onclick="y`, word: wordUnchecked, kind: badgeNone},
	} {
		text := "The mill of Tonbo closed in 1967."
		span := ibid.Span{End: len(text)}
		c := ibid.Citation{ID: "c", Span: span, Claim: span, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: "a", Quote: test.quote}}}
		if test.status != "" {
			c.Verification = &ibid.Verification{Status: test.status}
		}
		if test.support != "" {
			c.Support = &ibid.Support{Label: test.support}
		}
		o := &answerOptions{}
		if test.said != "" {
			o.feedback = &answerFeedback{last: map[string]verdict{"c": {Word: test.said}}}
		}
		call := &store.Call{AnswerID: name, Answer: &ibid.Answer{Text: text, Complete: true, Sources: []ibid.Source{{ID: "a", URL: "https://a.example/"}}, Citations: []ibid.Citation{c}}}
		html := string(p.answerView(t.Context(), call, o).Text)
		heard := ""
		if test.word != wordUnchecked {
			heard = `<span class="unseen">` + test.word + ": </span>"
		}
		want := `<a class="chip ` + test.kind + `" href="#s-1">` + heard + `<span class="n">1</span> <bdi>a.example</bdi>`
		if test.note != "" {
			want += ` <span class="note">` + test.note + "</span>"
		}
		if want += "</a>"; !strings.Contains(html, want) {
			t.Errorf("%s: no %s in %s", name, want, html)
		}
		isWrong := test.kind == badgeBad || test.kind == badgeClose
		if strings.Contains(html, `<mark class="claim `+test.kind+`"`) != isWrong {
			t.Errorf("%s: the text is not marked as wanted: %s", name, html)
		}
	}
}

// A citation of a source that does not say it, while another one does, is nobody's error until somebody judges it: its
// chip shows that the quote was found, and no more.
func TestUnjudged(t *testing.T) {
	text := "The bridge has eight lanes."
	s := ibid.Span{End: len(text)}
	a := &ibid.Answer{
		Text: text, Complete: true, Sources: []ibid.Source{{ID: "towers", URL: "https://towers.example/", Title: "Towers"}},
		Citations: []ibid.Citation{{
			ID: "c0", Span: s, Claim: s, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact,
			Refs:         []ibid.Ref{{Source: "towers", Quote: "The towers of the bridge are 89 metres high."}},
			Verification: &ibid.Verification{Status: "verified"},
		}},
	}
	v := newViews(t).answerView(t.Context(), &store.Call{AnswerID: "ans_1", Answer: a}, &answerOptions{trust: &trust{page: "/ui/answers/ans_1"}})
	if html := string(v.Text); !strings.Contains(html, `class="chip found"`) || strings.Contains(html, `<mark class="claim `) || len(v.Notices) > 0 {
		t.Errorf("%v: %s", v.Notices, html)
	}
	testenv.Equal(t, "the line of trust", "1 quote found", v.Trust.Parts[0].Text)
}

// A sentence without a source says so in an answer that has some, and takes no number.
func TestBareSentences(t *testing.T) {
	text := "The mill of Tonbo closed in 1967. The island in the lake belongs to the northern parish."
	span := ibid.Span{End: 33}
	call := &store.Call{AnswerID: "ans_1", Answer: &ibid.Answer{
		Text: text, Complete: true, Sources: []ibid.Source{{ID: "a", URL: "https://a.example/"}, {ID: "b", URL: "https://b.example/"}},
		Citations: []ibid.Citation{{ID: "c", Span: span, Claim: span, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: "a"}}}},
	}}
	numbering := &ibid.Numbering{}
	o := &answerOptions{numbering: numbering, trust: &trust{page: "/ui/answers/ans_1", show: "no-source"}}
	v := newViews(t).answerView(t.Context(), call, o)
	want := `<span class="bare shown" data-s="no-source">The island in the lake belongs to the northern parish.</span> <span class="no-source shown" data-s="no-source">no source</span>`
	if !strings.Contains(string(v.Text), want) {
		t.Errorf("%s", v.Text)
	}
	if len(*numbering) != 2 || len(call.Answer.Citations) != 1 {
		t.Errorf("%d numbers, %d citations", len(*numbering), len(call.Answer.Citations))
	}
	var parts []string
	for _, part := range v.Trust.Parts {
		parts = append(parts, part.Text+" "+part.URL)
	}
	testenv.Equal(t, "the line of trust", []string{"1 sentence without a source /ui/answers/ans_1", "1 not checked /ui/answers/ans_1?show=not-checked"}, parts)
	call.Answer.Citations = nil
	if html := string(newViews(t).answerView(t.Context(), call, nil).Text); strings.Contains(html, "no source") {
		t.Errorf("an answer without any citation: %s", html)
	}
}

// begun is an answer whose only sentence cites a source, quoting these words of it, that was read again.
func begun(quote string) *store.Call {
	text := "It began with a single pair in 1968, after the mill had closed."
	span := ibid.Span{End: len(text)}
	return &store.Call{AnswerID: "ans_1", Answer: &ibid.Answer{
		Text: text, Complete: true, Sources: []ibid.Source{{ID: "a", URL: "https://a.example/"}},
		Citations: []ibid.Citation{{
			ID: "c", Span: span, Claim: span, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact,
			Refs: []ibid.Ref{{Source: "a", Quote: quote}}, Verification: &ibid.Verification{Status: string(verify.Verified)},
		}},
	}}
}

// A citation without a quote is compared with the words found in the source for it, and its card shows those.
func TestFoundWords(t *testing.T) {
	p, call := newViews(t), begun("")
	for _, test := range []struct{ found, want string }{
		{"The colony began with a single pair in 1986, after the mill closed.", "1 differs"},
		{"The colony began with a single pair in 1968, after the mill closed.", "1 quote found"},
		{"", "1 citation without a quote"},
	} {
		v := p.answerView(t.Context(), call, &answerOptions{trust: &trust{found: excerpts{"c": {"https://a.example/": {text: test.found}}}}})
		if got := v.Trust.Parts[0].Text; len(v.Trust.Parts) != 1 || got != test.want {
			t.Errorf("%q: %s, not %s", test.found, got, test.want)
		}
		use := v.Cited[0].Uses[0]
		if use.Found != (test.found != "") || test.found != "" && string(use.Quote.Full) == "" {
			t.Errorf("%q: the card has %v", test.found, use.Quote)
		}
	}
}

// A list shows the same as the page of an answer, unless there is no time left to compare: then only the result of
// reading the sources, which is not cached.
func TestCountStandings(t *testing.T) {
	p, call := newViews(t), begun("The colony began with a single pair in 1986, after the mill closed.")
	for _, test := range []struct {
		until time.Time
		want  string
	}{
		{time.Now().Add(-time.Second), "1 quote found"},
		{time.Now().Add(time.Minute), "1 differs"},
		{time.Now().Add(-time.Second), "1 differs"}, // it is cached by now
	} {
		counts, err := p.countStandings(t.Context(), store.DefaultTenant, nil, call, test.until)
		if err != nil || len(counts) != 1 || counts[0].Text() != test.want {
			t.Errorf("%v: %v, %v, not %s", test.until, counts, err, test.want)
		}
	}
}

// A change in a source is described in a sentence: its words, and the answer's.
func TestChangeSentence(t *testing.T) {
	for _, test := range []struct{ claim, was, is, want string }{
		{"It began in 1968, they say.", "seen in 1968, a year after", "seen in 1986, a year after", "The source now says 1986, the answer 1968."},
		{"It began with a pair.", "seen in 1968, a year after", "seen in 1986, a year after", "The source now says “1986” instead of “1968”."},
		{"They built in an old alder.", "built in an old alder there", "built in a young oak there", "The source now says “a young oak”, the answer “an old alder”."},
		{"It is not open.", "It is not open now.", "It is open now.", "The source no longer says “not”."},
		{"It is open.", "It is open now.", "It is not open now.", "The source now also says “not”."},
		{"It began in 1968.", "In 1968 pairs came twice.", "In 1986 pairs came thrice.", "The source now says 1986, the answer 1968. More of it changed."},
	} {
		near := &snapshot.Near{Text: test.is, Diff: []snapshot.Edit{{Kind: snapshot.EditQuote, Text: test.was}, {Kind: snapshot.EditText, Text: test.is}}}
		detail := testenv.Must(json.Marshal(&verify.SourceResult{Near: near}))(t)
		c := changeOf(&store.Pin{Detail: detail})
		if c == nil {
			t.Fatalf("%q: no change", test.is)
		}
		if got := c.sentence(test.claim); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if html := string(c.html()); !strings.Contains(html, "<del>") && !strings.Contains(html, "<ins>") {
			t.Errorf("shown as %s", html)
		}
	}
	if changeOf(&store.Pin{Detail: []byte("{}")}) != nil || changeOf(&store.Pin{}) != nil {
		t.Error("a change of nothing")
	}
}

// Sources with something wrong are laid out first, wherever they are in a long list.
func TestWrongSourcesAreUnfolded(t *testing.T) {
	call := citedCall(400)
	at := len(call.Answer.Citations) - 3
	call.Answer.Citations[at].Verification = &ibid.Verification{Status: string(verify.ExcerptAltered)}
	v := newViews(t).answerView(t.Context(), call, nil)
	n := 0
	for _, s := range v.Cited {
		n += len(s.Uses)
		if isWrong := s.N == at%200+1; s.IsWrong() != isWrong || s.Active != isWrong || isWrong && s.Left > 0 {
			t.Errorf("source %d: wrong %t, active %t, %d left", s.N, s.IsWrong(), s.Active, s.Left)
		}
	}
	if n != maxOpenUses {
		t.Errorf("%d uses are laid out", n)
	}
}

// A page whose reader has left is not laid out, however far it was.
func TestAnswerViewOfLeftReader(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v := newViews(t).answerView(ctx, citedCall(10), nil); v.Text != "" || len(v.Cited) > 0 {
		t.Errorf("%d sources", len(v.Cited))
	}
}
