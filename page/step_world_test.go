package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

const heronBook = "https://www.example.org/herons/book"

// record records a run.
func (w *world) record(tb testing.TB, id string, t *trail.Trail, finish bool) {
	tb.Helper()
	if _, err := w.Store.Record(tb.Context(), store.DefaultTenant, &store.Recording{Run: id, Trail: t, Finish: finish}); err != nil {
		tb.Fatal(err)
	}
}

// herons records the run of testdata/herons.json.
func (w *world) herons(tb testing.TB) {
	tb.Helper()
	raw := testenv.Must(os.ReadFile("testdata/herons.json"))(tb)
	t := testenv.Must(trail.Read(raw))(tb)
	w.record(tb, "herons", t, true)
}

// book stores an answer of that run that quotes a book with two kept versions: the second has another number.
func (w *world) book(tb testing.TB) {
	tb.Helper()
	tail := strings.Repeat(" Nobody counted the reeds.", 40)
	text := "<title>The Heron Book</title><p>Herons are patient.</p><p>They nest high up in tall trees, often 25 m above the ground, " +
		"and both parents sit on the eggs for about 26 days.</p><p>" + tail + "</p>"
	w.keep(tb, text, time.Date(2026, 5, 3, 9, 0, 0, 0, time.UTC))
	w.keep(tb, strings.ReplaceAll(text, "26 days", "25 days"), time.Date(2026, 7, 1, 9, 0, 0, 0, time.UTC))
	a := &ibid.Answer{
		Provider: "openai", Model: "heron-1", Complete: true, Text: "Herons nest high up in trees. Both parents sit on the eggs for about 26 days. They sing.",
		Sources: []ibid.Source{
			{ID: "s1", Kind: ibid.Web, Title: "The Heron Book", URL: heronBook, OriginalURL: heronBook + "?utm_source=x"},
			{ID: "s2", Kind: ibid.File, Filename: "notes.pdf", Chunks: []ibid.Chunk{
				{Content: "Herons croak at night."}, {Content: "A heron  does not\nsing, it croaks.", Locator: &ibid.Locator{Page: 7}},
			}},
		},
	}
	cite := func(id string, start, end int, source, quote string) ibid.Citation {
		span := ibid.Span{Start: start, End: end}
		return ibid.Citation{
			ID: id, Span: span, Claim: span, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Origin: ibid.OriginProvider,
			Refs: []ibid.Ref{{Source: source, Quote: quote}},
		}
	}
	a.Citations = []ibid.Citation{
		cite("c1", 0, 29, "s1", "high up in tall trees, often 25 m above the ground"),
		cite("c2", 30, 77, "s1", "both parents sit on the eggs for about 26 days"),
		cite("c3", 78, len(a.Text), "s2", "A heron does not sing, it croaks."),
		cite("c4", 78, len(a.Text), "s2", "Herons sing every morning."),
	}
	testenv.OK(tb, a.Check())
	call := &store.Call{
		AnswerID: "ans_book", Tenant: store.DefaultTenant, Upstream: "openai", Route: "POST /v1/responses", Run: "herons", Step: store.Step{Number: 3},
		Status: 200, Started: time.Date(2026, 5, 3, 10, 0, 0, 0, time.UTC), Answer: a,
	}
	testenv.OK(tb, w.Store.Put(tb.Context(), []*store.Call{call}))
	w.pin(tb)
}

func (w *world) keep(tb testing.TB, text string, at time.Time) {
	tb.Helper()
	octets := []byte(text)
	if err := w.Store.Copies(store.DefaultTenant).Keep(tb.Context(), &snapshot.Snapshot{
		URL: heronBook, FinalURL: heronBook, Status: 200, MediaType: "text/html; charset=utf-8", Octets: octets, Hash: snapshot.Hash(octets), FetchedAt: at,
	}); err != nil {
		tb.Fatal(err)
	}
}

// pin stores the second citation's pin, and that its source has since changed.
func (w *world) pin(tb testing.TB) {
	tb.Helper()
	const quote = "both parents sit on the eggs for about 26 days"
	call := testenv.Must(w.Store.Call(tb.Context(), store.DefaultTenant, "ans_book"))(tb)
	at := slices.IndexFunc(call.Answer.Citations, func(c ibid.Citation) bool { return c.Refs[0].Quote == quote })
	if err := w.Store.AddPins(tb.Context(), store.DefaultTenant, []store.Pin{{
		URL: heronBook, AnswerID: "ans_book", Run: "herons", Citation: call.Answer.Citations[at].ID, ClaimID: "k1", SourceID: "s1",
		Claim: manifest.ClaimSource{URL: heronBook, Excerpt: &manifest.Excerpt{Exact: quote}}, Source: manifest.Source{ID: "s1", URL: heronBook},
	}}); err != nil {
		tb.Fatal(err)
	}
	pins, err := w.Store.Pins(tb.Context(), store.DefaultTenant, heronBook)
	if err != nil || len(pins) != 1 {
		tb.Fatal(pins, err)
	}
	near, ok := snapshot.Nearest("They nest, and both parents sit on the eggs for about 25 days.", quote)
	if !ok {
		tb.Fatal("nothing is near")
	}
	detail := testenv.Must(json.Marshal(verify.SourceResult{Status: verify.ExcerptAltered, Near: near}))(tb)
	if err := w.Store.SetStatuses(tb.Context(), store.DefaultTenant, []store.PinStatus{{
		ID: pins[0].ID, Status: verify.ExcerptAltered, Counts: verify.CountFailure, CheckedAt: time.Date(2026, 7, 2, 0, 0, 0, 0, time.UTC), Detail: detail,
	}}); err != nil {
		tb.Fatal(err)
	}
}

// mill is a run of many steps with many sources.
func mill(steps, sources int) *trail.Trail {
	t := &trail.Trail{Question: "What do all of them say?", Agent: "mill", Answer: "The answer 7 is 42. The answer 900 is 6293."}
	for i := range steps {
		s := trail.Step{Number: i + 1, Tool: "search", Question: fmt.Sprintf("Question %d?", i+1), Answer: fmt.Sprintf("The answer %d is %d.", i+1, i*7)}
		for k := range sources {
			id := fmt.Sprintf("doc%d", (i*3+k)%400)
			s.Sources = append(s.Sources, trail.Source{
				DocumentID: id, Title: "Document " + id, Content: fmt.Sprintf("Passage %d of it says that the answer %d is %d.", k, i+1, i*7),
				Relevance: new(float64(k) / 10), Origin: ibid.ScoreRetriever, Used: true,
			})
		}
		t.Steps = append(t.Steps, s)
	}
	return t
}

// sound parses a page and checks that its tags are properly nested, that its ids are unique, that references to ids of
// the page resolve, and that nothing on it can run or load something from another origin.
func sound(tb testing.TB, body string) *html.Node {
	tb.Helper()
	nesting(tb, body)
	root := testenv.Must(html.Parse(strings.NewReader(body)))(tb)
	ids := map[string]bool{}
	for n := range root.Descendants() {
		if id := attribute(n, "id"); id != "" {
			if ids[id] {
				tb.Errorf("the id %q stands twice", id)
			}
			ids[id] = true
		}
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			checkAttribute(tb, n, a, ids)
		}
		if src := attribute(n, "src"); n.Data == "script" && !strings.HasPrefix(src, "/ui/assets/") {
			tb.Errorf("a script: %q", src)
		}
	}
	return root
}

func checkAttribute(tb testing.TB, n *html.Node, a html.Attribute, ids map[string]bool) {
	tb.Helper()
	switch {
	case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
		tb.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
	case a.Key == "href" && strings.HasPrefix(a.Val, "#"), a.Key == "aria-labelledby", a.Key == "aria-describedby", a.Key == "aria-controls":
		for id := range strings.FieldsSeq(strings.TrimPrefix(a.Val, "#")) {
			if !ids[id] {
				tb.Errorf("<%s> refers by %s to %q, which is not there", n.Data, a.Key, id)
			}
		}
	case a.Key == "href" && n.Data == "a" && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "http://") && !strings.HasPrefix(a.Val, "https://"):
		tb.Errorf("a link to %q", a.Val)
	case a.Key == "href" && n.Data != "a" && !strings.HasPrefix(a.Val, "/ui/assets/"), a.Key == "src" && !strings.HasPrefix(a.Val, "/"):
		tb.Errorf("<%s> loads %q", n.Data, a.Val)
	}
}

// nesting checks that tags are properly nested.
func nesting(tb testing.TB, body string) {
	tb.Helper()
	z := html.NewTokenizer(strings.NewReader(body))
	var open []string
	for {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				tb.Errorf("not closed: %v", open)
			}
			return
		case html.StartTagToken:
			name, _ := z.TagName()
			switch tag := string(name); tag {
			case "meta", "link", "input", "br", "img", "hr":
			default:
				open = append(open, tag)
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				tb.Fatalf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// every returns the elements with a class.
func every(root *html.Node, class string) []*html.Node {
	var found []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && slices.Contains(strings.Fields(attribute(n, "class")), class) {
			found = append(found, n)
		}
	}
	return found
}

// wordsOf returns the text of an element, with single spaces.
func wordsOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func wordsOfAll(list []*html.Node) []string {
	var all []string
	for _, n := range list {
		all = append(all, wordsOf(n))
	}
	return all
}
