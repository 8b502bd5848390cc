package verify_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

// A page of a site that has an article between its navigation, its cookie bar and its footer.
func sitePage(title, body string) string {
	const fill = `<p>The hills above the river are full of chalk, and people have burned it for as long as anybody can
tell. What they left are round towers of stone with a hole at the foot, some as high as a house, most of them
overgrown with ivy and elder.</p><p>Burning was hard work in bad air. Whoever had a field went back to it as soon as
the harvest began, so that the fires went out every summer and had to be lit again when the leaves fell.</p>`
	return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>` + title + ` | Hill Guide</title></head><body>
<nav><a href="/">Home</a> <a href="/login">Log in</a></nav><div class="cookie-bar">We use cookies. <button>Accept all</button></div>
<main><h1>` + title + `</h1>` + fill + body + fill + `</main><footer>Hill Guide. <a href="/privacy">Privacy</a></footer></body></html>`
}

// comparePage compares a quote with a page and returns the class that a careful reader would put it in.
func comparePage(title, mediaType, quote, page string) (class string, r verify.SourceResult) {
	const address = "https://guide.example/2024/page"
	snap := &snapshot.Snapshot{URL: address, FinalURL: address, Status: 200, MediaType: mediaType, Octets: []byte(page)}
	r = verify.Compare(
		&manifest.ClaimSource{URL: address, Excerpt: &manifest.Excerpt{Exact: quote}, ExcerptOrigin: manifest.OriginProvider},
		&manifest.Source{URL: address, Title: title}, snap, nil, nil,
	)
	switch {
	case r.Status == verify.ExcerptCut:
		return "falsified", r
	case r.Counts.Passes():
		return "harmless", r
	case r.Counts == verify.CountUnverifiable:
		return "not-comparable", r
	}
	return "falsified", r // or gone
}

// Forms of pages as content management systems, wikis, generators of documentation, forums, feeds and programs make
// them, each with what it says and with something else.
func TestPageForms(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/page_forms.txt", 5) {
		page := row[4]
		if body, ok := strings.CutPrefix(page, "BODY"); ok {
			page = sitePage("Orrin harbour", body)
		}
		if got, r := comparePage("", row[2], row[3], page); got != row[0] {
			t.Errorf("%s, not %s: %s: %s %s %s", got, row[0], row[1], r.Status, r.Reason, r.Note)
		}
	}
}

// The table in docs/verify.md of what is said of pages that are quoted in other forms, replaced, falsified or rewritten.
// It was written before these pages were first compared; -v lists the cases that are wrong.
func TestPagesKept(t *testing.T) {
	right, all := map[string]int{}, map[string]int{}
	for _, row := range testenv.Cases(t, "testdata/pages_kept.txt", 6) {
		want := strings.Replace(row[0], "gone", "falsified", 1)
		page, ok := strings.CutPrefix(row[5], "PAGE")
		if !ok {
			page = sitePage(row[3], page)
		}
		got, r := comparePage(row[3], "text/html; charset=utf-8", row[4], page)
		all[row[0]]++
		if got == want && r.Reason == row[2] {
			right[row[0]]++
		} else {
			t.Logf("%s, %s: %s %s, %s", row[0], row[1], r.Status, r.Reason, r.Note)
		}
	}
	var table strings.Builder
	for _, class := range []string{"harmless", "not-comparable", "falsified", "gone"} {
		fmt.Fprintf(&table, "| %s | %d of %d |\n", class, right[class], all[class])
	}
	page := string(testenv.Must(os.ReadFile(filepath.Join("..", "docs", "verify.md")))(t))
	if !strings.Contains(page, table.String()) {
		t.Errorf("docs/verify.md has another table than:\n%s", table.String())
	}
}
