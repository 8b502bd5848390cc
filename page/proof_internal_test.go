package page

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/ibidhq/ibid/store"
)

// The words of a query are marked as the store finds them: in any case, without accents, of the last one the beginning.
func TestExcerptMarks(t *testing.T) {
	long := strings.Repeat("Herons nest in trees. ", 40)
	tests := []struct{ name, query, text, want string }{
		{"nothing is asked", "", "Bees dance.", "Bees dance."},
		{"the last word may begin one", "bees da", "Bees dance, and bee.", "<mark>Bees</mark> <mark>dance</mark>, and bee."},
		{"a finished word must be all of it", "dan ", "Bees dance, says Dan.", "Bees dance, says <mark>Dan</mark>."},
		{"accents", "cafe zurich", "Das Café in Zürich", "Das <mark>Café</mark> in <mark>Zürich</mark>"},
		{"CJK", "東京", "東京の人口", "<mark>東</mark><mark>京</mark>の人口"},
		{"hostile", "script", "<script>x</script>", "&lt;<mark>script</mark>&gt;x&lt;/<mark>script</mark>&gt;"},
		{"lines", "b", "a\n\n b", "a <mark>b</mark>"},
		{"not there", "wasps", "Bees.", "Bees."},
		{"far in", "owl", long + "An owl calls. " + long, "… " + strings.Repeat("Herons nest in trees. ", 4)[8:] + "An <mark>owl</mark> calls. "},
	}
	for _, test := range tests {
		got := string(newFinder(test.query).excerpt(test.text))
		if test.name == "far in" {
			if !strings.HasPrefix(got, "… ") || !strings.HasSuffix(got, " …") || !strings.Contains(got, "An <mark>owl</mark> calls.") || len(got) > 500 {
				t.Errorf("%s: %q", test.name, got)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// Whatever the text and the query are, what comes is text and marks.
func FuzzExcerpt(f *testing.F) {
	f.Add("bees da", "Bees <b>dance</b>\xff 東京 \u202e x")
	f.Add("a", strings.Repeat("\u0301a ", 300))
	f.Fuzz(func(t *testing.T, query, text string) {
		body := string(newFinder(query).excerpt(text))
		nodes, err := html.ParseFragment(strings.NewReader(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range nodes {
			for n := range root.Descendants() {
				if n.Type == html.ElementNode && n.Data != "mark" && n.Data != "head" && n.Data != "body" {
					t.Fatalf("%q has <%s>", body, n.Data)
				}
			}
		}
	})
}

// Of two texts that are compared each word that only one has is marked, and both stay what they were.
func TestCompareWords(t *testing.T) {
	shown := func(list []piece) string {
		var b strings.Builder
		for _, p := range list {
			if p.Own {
				b.WriteString("[" + p.Text + "]")
			} else {
				b.WriteString(p.Text)
			}
		}
		return b.String()
	}
	tests := []struct{ x, y, wantX, wantY string }{
		{"", "", "", ""},
		{"a b", "", "a b", ""},
		{"closed in 1987.", "closed in 1989.", "closed in [1987].", "closed in [1989]."},
		{"a b c", "a c", "a [b ]c", "a c"},
		{"a c", "a b c", "a c", "a [b ]c"},
		{strings.Repeat("x ", 600), "x", strings.Repeat("x ", 600), "x"},
	}
	for _, test := range tests {
		x, y := compareWords(test.x, test.y)
		if diff := cmp.Diff([]string{test.wantX, test.wantY}, []string{shown(x), shown(y)}); diff != "" {
			t.Errorf("%.20q and %.20q: %s", test.x, test.y, diff)
		}
	}
}

// Days that lie close together stay days; else they become weeks from Monday, the last ones.
func TestSpans(t *testing.T) {
	monday := time.Date(2026, 8, 31, 0, 0, 0, 0, time.UTC)
	var days []store.CheckedDay
	for i := range 11 {
		days = append(days, store.CheckedDay{Day: monday.AddDate(0, 0, i), Passed: 1})
	}
	if spans, weeks := spansOf(days); weeks || len(spans) != 11 {
		t.Errorf("%v %v", spans, weeks)
	}
	for i := 11; i < 200; i++ {
		days = append(days, store.CheckedDay{Day: monday.AddDate(0, 0, i), Passed: 1, Failed: 2})
	}
	spans, weeks := spansOf(days)
	if !weeks || len(spans) != maxWeeks || spans[0].passed != 7 || spans[0].failed != 14 {
		t.Errorf("%v %v", spans, weeks)
	}
	for _, s := range spans {
		if s.from.Weekday() != time.Monday {
			t.Errorf("%v is no Monday", s.from)
		}
	}
	if spans, _ := spansOf(nil); spans != nil {
		t.Errorf("of nothing: %v", spans)
	}
}

// Columns are as high as their shares, and never invisible.
func TestDraw(t *testing.T) {
	bars := draw([]column{{parts: []int{1, 1}, kinds: []string{"a", "b"}}, {parts: []int{0}, kinds: []string{"a"}}, {parts: []int{1, 100000}, kinds: []string{"a", "b"}}}, 0)
	if p := bars[0].Parts; len(p) != 2 || p[0].Height != p[1].Height || p[0].Y != p[1].Y+p[1].Height {
		t.Errorf("halves: %+v", p)
	}
	if len(bars[1].Parts) != 0 || bars[2].Parts[0].Height < 1 {
		t.Errorf("%+v", bars)
	}
}

// A digest is good for a minute, and there is room for so many of them: the oldest goes.
func TestDigestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all digests
		all.put("first", &digest{at: time.Now()})
		time.Sleep(digestFor - 1)
		if all.get("first") == nil {
			t.Error("it is not good for a minute")
		}
		for i := range maxDigests {
			all.put(fmt.Sprint(i), &digest{at: time.Now()})
		}
		if all.get("first") != nil || len(all.kept) != maxDigests || all.get("0") == nil {
			t.Errorf("%d are kept", len(all.kept))
		}
		time.Sleep(digestFor)
		if all.get("0") != nil {
			t.Error("it is good for longer than a minute")
		}
	})
}
