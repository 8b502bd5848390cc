package page_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// manySources is an answer that cites n sources twice each, all of them hostile.
func manySources(t *testing.T, n int) *store.Call {
	t.Helper()
	c := talked("ans_many", "q", "It is. So.", "https://a.example/")
	for i := range n {
		source := ibid.Source{
			ID: fmt.Sprint("m", i), Kind: ibid.Web, Title: fmt.Sprintf(`</bdi><script>alert(%d)</script>" onclick="x`, i),
			URL: fmt.Sprintf(`https://s.example/%d?"><script>`, i), Site: "<i>s.example", Content: "Content <b> of " + fmt.Sprint(i),
		}
		if i == n-1 {
			source.URL = "javascript:alert(1)"
		}
		c.Answer.Sources = append(c.Answer.Sources, source)
		for k := range 2 {
			testenv.OK(t, c.Answer.Cite(ibid.Span{End: 6}, ibid.Ref{Source: source.ID, Quote: fmt.Sprintf("Herons <nest> %d.%d", i, k)}))
		}
	}
	return c
}

// The list of an answer with many sources has all of them, and of the first ones what citations take from them. The
// rest of a source comes when it is opened, or is on its own page.
func TestManySourcesFold(t *testing.T) {
	w := newWorld(t, nil)
	const n = 200
	w.put(t, manySources(t, n))
	body := w.get(t, "/ui/answers/ans_many").body
	if rows, uses := strings.Count(body, `<div class="source`)-strings.Count(body, `<div class="source-head`)-strings.Count(body, `<div class="sources`), strings.Count(body, `<div class="use"`); rows != n+1 || uses != 50 {
		t.Errorf("%d rows, %d uses", rows, uses)
	}
	for _, raw := range []string{"<script>alert", `?"><script>`, "<i>s.example", "javascript:", "<nest>", "Content <b>"} {
		if strings.Contains(body, raw) {
			t.Errorf("the page has %s", raw)
		}
	}
	folded := regexp.MustCompile(`<div class="source folded" role="listitem" id="s-(\d+)"><p class="source-name"><a class="n" href="([^"]+)">`)
	last := folded.FindAllStringSubmatch(body, -1)
	if len(last) != n+1-26 || last[len(last)-1][1] != fmt.Sprint(n+1) {
		t.Fatalf("%d folded rows, the last is %q", len(last), last[len(last)-1])
	}
	link := last[len(last)-2][2]
	row := w.get(t, link+"?row=t3-")
	for _, want := range []string{`id="t3-s-200"`, "Herons &lt;nest&gt; 198.0", "Herons &lt;nest&gt; 198.1", `<a href="#t3-m-1">In the text</a>`} {
		if !strings.Contains(row.body, want) {
			t.Errorf("the row of %s has no %s:\n%s", link, want, row.body)
		}
	}
	if row.StatusCode != 200 || strings.Count(row.body, `role="listitem"`) != 1 || strings.Contains(row.body, "<script>") || strings.Contains(row.body, "folded") {
		t.Errorf("%d\n%s", row.StatusCode, row.body)
	}
	if got := w.get(t, link+"?row=%22%3E%3Cx"); strings.Contains(got.body, "><x") {
		t.Error(got.body)
	}
	if got := w.get(t, link); got.StatusCode != 200 || !strings.Contains(got.body, "Herons") {
		t.Errorf("its page: %d", got.StatusCode)
	}
}

// A source that is cited very often has its first uses, and says how many more there are.
func TestManyUsesFold(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "q", "It is. So.", "https://a.example/")
	for i := range 120 {
		testenv.OK(t, c.Answer.Cite(ibid.Span{End: 6}, ibid.Ref{Source: "web:0", Quote: fmt.Sprint("Herons ", i)}))
	}
	w.put(t, c)
	body := w.get(t, "/ui/answers/ans_1").body
	if uses := strings.Count(body, `<div class="use"`); uses != 50 || !strings.Contains(body, `<a class="to-panel" href="/ui/answers/ans_1/sources/1">And 71 more</a>`) {
		t.Errorf("%d uses", uses)
	}
	if row := w.get(t, "/ui/answers/ans_1/sources/1?row="); strings.Count(row.body, `<div class="use"`) != 121 {
		t.Errorf("the row: %s", row.body)
	}
}
