package page_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// The panel of a source lists the sentences that rest on it as they read, and links to them: a browser does not find
// Markdown marks in a page.
func TestPanelClaims(t *testing.T) {
	w := newWorld(t, nil)
	const text = "## Herons\n\n**Grey herons** nest in [tall trees](https://a.example).\n\n- They croak, `loudly`."
	a := &ibid.Answer{Provider: "openai", Complete: true, Text: text, Sources: []ibid.Source{{ID: "s1", Kind: ibid.Web, Title: "The Heron Book", URL: heronBook}}}
	for i, claim := range []string{"**Grey herons** nest in [tall trees](https://a.example).", "They croak, `loudly`."} {
		at := strings.Index(text, claim)
		span := ibid.Span{Start: at, End: at + len(claim)}
		a.Citations = append(a.Citations, ibid.Citation{
			ID: "c" + string(rune('1'+i)), Span: span, Claim: span, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Origin: ibid.OriginProvider, Refs: []ibid.Ref{{Source: "s1"}},
		})
	}
	testenv.OK(t, a.Check())
	if err := w.Store.Put(t.Context(), []*store.Call{{
		AnswerID: "ans_md", Tenant: store.DefaultTenant, Upstream: "openai", Route: "POST /v1/responses", Status: 200, Started: time.Date(2026, 5, 3, 10, 0, 0, 0, time.UTC), Answer: a,
	}}); err != nil {
		t.Fatal(err)
	}
	var got [][2]string
	for n := range every(sound(t, w.get(t, "/ui/answers/ans_md/sources/1").body), "rested")[0].Descendants() {
		if n.Data == "a" && attribute(n, "class") != "judge" {
			got = append(got, [2]string{wordsOf(n), attribute(n, "href")})
		}
	}
	want := [][2]string{
		{"Grey herons nest in tall trees.", "/ui/answers/ans_md#:~:text=Grey%20herons%20nest%20in%20tall%20trees."},
		{"They croak, loudly.", "/ui/answers/ans_md#:~:text=They%20croak%2C%20loudly."},
	}
	testenv.Equal(t, "", want, got)
}

// The words on a page determine its direction, not ours in front of them.
func TestDirections(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	w.book(t)
	words := func(n int) string { return strings.Repeat("שלום ", n) }
	w.record(t, "hebrew", &trail.Trail{
		Question: words(2), Agent: words(1), Answer: words(20) + ". " + words(9) + ".", Steps: []trail.Step{
			{Number: 1, Tool: "search", Question: words(3), Answer: words(100), Reasoning: words(4), Sources: []trail.Source{{DocumentID: words(1), Title: words(2), Content: words(100), Used: true}}},
			{Number: 2, After: []int{}, Question: words(3), Answer: words(3), Nested: &trail.Trail{Question: words(2), Answer: words(3), Steps: []trail.Step{{Number: 1, Question: words(3), Answer: words(3)}}}},
		},
	}, true)
	for n := range sound(t, w.get(t, "/ui/runs/hebrew").body).Descendants() {
		if attribute(n, "dir") == "auto" && !unicode.Is(unicode.Hebrew, firstLetter(n)) {
			t.Errorf("<%s> begins with %q: %s", n.Data, firstLetter(n), wordsOf(n))
		}
	}
	sides := every(sound(t, w.get(t, "/ui/answers/ans_book/sources/1").body), "compared")[0]
	for n := range sides.Descendants() {
		if n.Data == "blockquote" && firstLetter(n) != 'b' {
			t.Errorf("what was altered begins with %q: %s", firstLetter(n), wordsOf(n))
		}
	}
}

// firstLetter returns the letter that dir="auto" takes the direction of an element from.
func firstLetter(n *html.Node) rune {
	for c := range n.ChildNodes() {
		if c.Type == html.TextNode {
			for _, r := range c.Data {
				if unicode.IsLetter(r) {
					return r
				}
			}
		}
		if c.Data != "bdi" && attribute(c, "dir") == "" {
			if r := firstLetter(c); r != 0 {
				return r
			}
		}
	}
	return 0
}

// A slow download of a copy does not keep others from seeing quotes in context, and only takes a slot of its own
// tenant.
func TestSaveSlowly(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	w.book(t)
	octets := make([]byte, 16<<20) // more than fits in the buffers between a server and a client that does not read
	for i, random := 0, rand.New(rand.NewPCG(1, 2)); i < len(octets); i++ {
		octets[i] = byte(random.Uint32())
	}
	w.keep(t, string(octets), time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC))
	var last int
	for range 5 {
		asked := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+"/ui/copies/"+snapshot.Hash(octets), http.NoBody))(t)
		res, err := http.DefaultTransport.RoundTrip(asked)
		testenv.OK(t, err)
		defer res.Body.Close()
		last = res.StatusCode
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the fifth: %d", last)
	}
	if res := w.get(t, "/ui/answers/ans_book/sources/1"); res.StatusCode != 200 || strings.Contains(res.body, "Too many copies") {
		t.Errorf("the panel: %d", res.StatusCode)
	}
}
