package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

const towerText = `Home Iron tower The tower was built in 1889 — it is 330 metres tall, weighs 10.1 thousand tons and grew by −5% in 2019. ` +
	`It isn't unable to sway: by 12.5 cm, not 125. Der Turm ist 🧭 schön; 東京タワーは333メートルです。 The tower was built in 1889 — they say.`

func TestFind(t *testing.T) {
	type find struct {
		name  string
		quote snapshot.Quote
		want  snapshot.MatchKind // empty if not found
		text  string             // what is found, if not the quote
	}
	tests := []find{
		{"in place", snapshot.Quote{Exact: "The tower was built in 1889", Start: 16, End: 43}, snapshot.MatchExact, ""},
		{"elsewhere", snapshot.Quote{Exact: "it is 330 metres tall", Start: 1, End: 22}, snapshot.MatchElsewhere, ""},
		{"a place behind the end", snapshot.Quote{Exact: "it is 330 metres tall", Start: 9000, End: 9021}, snapshot.MatchElsewhere, ""},
		{"a place without sense", snapshot.Quote{Exact: "it is 330 metres tall", Start: -5, End: 9}, snapshot.MatchElsewhere, ""},
		{"a place of another length", snapshot.Quote{Exact: "The tower was built in 1889", Start: 16, End: 40}, snapshot.MatchElsewhere, ""},
		{"its prefix goes on", snapshot.Quote{Exact: "able to sway", Prefix: "It isn't un"}, snapshot.MatchElsewhere, ""},
		{"its suffix goes on", snapshot.Quote{Exact: "weighs 10", Suffix: ".1 thousand"}, snapshot.MatchElsewhere, ""},
	}
	for _, row := range testenv.Cases(t, "testdata/find.txt", 4) {
		tests = append(tests, find{row[0], snapshot.Quote{Exact: row[1]}, snapshot.MatchKind(row[2]), row[3]})
	}
	for _, test := range tests {
		got, ok := snapshot.Find(towerText, &test.quote)
		if got.How != test.want || ok != (test.want != "") {
			t.Errorf("%s: %+v, %v, want %q", test.name, got, ok, test.want)
			continue
		}
		if !ok {
			continue
		}
		want := test.quote.Exact
		if test.text != "" {
			want = test.text
		}
		if text, _ := snapshot.Slice(towerText, got.Start, got.End); text != want {
			t.Errorf("%s: found %q, want %q", test.name, text, want)
		}
	}
}

// The best of several hits is found.
func TestFindBest(t *testing.T) {
	text := "one alpha said it was so. two alpha said it was so! three alpha said it was so? four"
	for _, test := range []struct {
		name  string
		quote snapshot.Quote
		start int
	}{
		{"the first", snapshot.Quote{}, 4},
		{"by prefix", snapshot.Quote{Prefix: "was so! three "}, 58},
		{"by suffix", snapshot.Quote{Suffix: "! three"}, 30},
		{"by place", snapshot.Quote{Start: 62, End: 82}, 58},
		{"suffix before place", snapshot.Quote{Suffix: ". two", Start: 62, End: 82}, 4},
		{"in place before all", snapshot.Quote{Prefix: "one ", Suffix: ". two", Start: 30, End: 50}, 30},
	} {
		test.quote.Exact = "alpha said it was so"
		got, _ := snapshot.Find(text, &test.quote)
		if got.Start != test.start || got.Count != 3 {
			t.Errorf("%s: %+v, want start %d of 3", test.name, got, test.start)
		}
	}
}

func pageText(r *rand.Rand, words int) []string {
	list := strings.Fields("the tower was built in 1889 by engineers who did not expect 7.5 million visitors each year but it isn't closed on Mondays nor is it 3300 metres high says Anna Weber from Köln since März 2019 when −3.5 degrees stopped all lifts")
	out := make([]string, words)
	for i := range out {
		out[i] = list[r.IntN(len(list))]
		if r.IntN(9) == 0 {
			out[i] += "."
		}
	}
	return out
}

// True quotes are found, in place and reformatted; with one digit, word or negation changed they are not.
func TestFindFalsified(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	digits := 0
	for range 3000 {
		words := pageText(r, 400)
		at := r.IntN(380)
		quoted := words[at : at+8+r.IntN(12)]
		text, exact := strings.Join(words, " "), strings.Join(quoted, " ")
		if _, ok := snapshot.Find(text, &snapshot.Quote{Exact: exact}); !ok {
			t.Fatalf("not found: %q", exact)
		}
		if m, ok := snapshot.Find(text, &snapshot.Quote{Exact: strings.ReplaceAll(exact, ". ", " · ")}); !ok {
			t.Fatalf("reformatted, not found: %q in %q: %v", exact, text, m)
		}
		var changed []string
		if i := strings.IndexFunc(exact, unicode.IsDigit); i >= 0 {
			digits++
			b := []byte(exact)
			b[i] = '0' + (b[i]-'0'+byte(1+r.IntN(9)))%10
			changed = append(changed, string(b), exact[:i]+exact[i+1:], exact[:i]+"4"+exact[i:])
		}
		n := r.IntN(len(quoted))
		other := append(append(append([]string{}, quoted[:n]...), "zebra"), quoted[n+1:]...)
		changed = append(changed, strings.Join(other, " "))
		other = append(append(append([]string{}, quoted[:n]...), "never"), quoted[n:]...)
		changed = append(changed, strings.Join(other, " "))
		for _, c := range changed {
			if strings.Contains(text, c) { // it is a true quote too
				continue
			}
			if m, ok := snapshot.Find(text, &snapshot.Quote{Exact: c}); ok {
				got, _ := snapshot.Slice(text, m.Start, m.End)
				t.Fatalf("%q, changed from %q, was found as %s: %q", c, exact, m.How, got)
			}
		}
	}
	if digits < 1000 {
		t.Errorf("only %d quotes had digits", digits)
	}
}

func TestNearest(t *testing.T) {
	text := "Before it. The tower was built in 1889 and is 330 metres tall 🧭 today. After it."
	got, ok := snapshot.Nearest(text, "The tower was built in 1887 and is not 330 metres tall today.")
	want := &snapshot.Near{Start: 11, End: 70, Edits: 7, Text: "The tower was built in 1889 and is 330 metres tall 🧭 today.", Diff: []snapshot.Edit{
		{Kind: snapshot.EditSame, Text: "The tower was built in 188"},
		{Kind: snapshot.EditQuote, Text: "7"},
		{Kind: snapshot.EditText, Text: "9"},
		{Kind: snapshot.EditSame, Text: " and is"},
		{Kind: snapshot.EditQuote, Text: " not"},
		{Kind: snapshot.EditSame, Text: " 330 metres tall"},
		{Kind: snapshot.EditText, Text: " 🧭"},
		{Kind: snapshot.EditSame, Text: " today."},
	}}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, quote := range map[string]string{
		"too short":     "The tower was built in 1887 and",
		"too different": "A church was erected since 1788 and was 210 feet in height.",
		"too long":      strings.Repeat("a", snapshot.MaxNearest+1),
	} {
		if got, ok := snapshot.Nearest(text, quote); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, ok := snapshot.Nearest("", strings.Repeat("a", 40)); ok {
		t.Error("found in an empty text")
	}
}

// Results for quotes longer than one machine word agree with a plain distance matrix.
func FuzzNearest(f *testing.F) {
	f.Add("the tower was built in 1889 by engineers who did not expect so many visitors each year but all came", "tower was built by 1887 engineers who did expect so many", 1)
	f.Add("aéaéaéaéaéaéaéaéaéaéaéaéaéaéaéaéaéaéaéaéaéaéaéaé", "aéaéaéaéaéaéaéaéaéaéaéaéaéaébéaéaé", 5)
	f.Fuzz(func(t *testing.T, text, quote string, times int) {
		text = snapshot.Normalize(strings.Repeat(text, 1+max(0, min(times, 4))))
		q, runes := []rune(snapshot.Normalize(quote)), []rune(text)
		if len(q) > 300 || len(runes) > 2000 {
			return
		}
		got, ok := snapshot.Nearest(text, quote)
		row, best := make([]int, len(q)+1), len(q)
		for i := range row {
			row[i] = i
		}
		for _, r := range runes {
			diagonal := row[0]
			for i := range q {
				next := diagonal
				if q[i] != r {
					next = 1 + min(diagonal, row[i+1], row[i])
				}
				diagonal, row[i+1] = row[i+1], next
			}
			best = min(best, row[len(q)])
		}
		if want := len(q) >= snapshot.MinNearest && best <= len(q)/5; ok != want {
			t.Fatalf("found %v, want %v: %d edits", ok, want, best)
		}
		if !ok {
			return
		}
		var a, b strings.Builder
		edits := 0
		for i, d := range got.Diff {
			if d.Kind != snapshot.EditText {
				a.WriteString(d.Text)
			}
			if d.Kind != snapshot.EditQuote {
				b.WriteString(d.Text)
			}
			if d.Kind == snapshot.EditQuote {
				edits += len([]rune(d.Text))
				if i+1 < len(got.Diff) && got.Diff[i+1].Kind == snapshot.EditText {
					edits += max(0, len([]rune(got.Diff[i+1].Text))-len([]rune(d.Text)))
				}
			} else if d.Kind == snapshot.EditText && (i == 0 || got.Diff[i-1].Kind != snapshot.EditQuote) {
				edits += len([]rune(d.Text))
			}
		}
		slice, _ := snapshot.Slice(text, got.Start, got.End)
		if got.Edits != best || a.String() != string(q) || b.String() != got.Text || slice != got.Text ||
			edits > got.Edits && isASCII(a.String()+b.String()) { // a piece of a grapheme is shown as the whole
			t.Fatalf("%+v of %q, best %d, edits %d", got, slice, best, edits)
		}
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// Differences never begin or end inside a grapheme.
func TestNearWholeGraphemes(t *testing.T) {
	const said = "The crew of the ferry flies the flag %s on every crossing of the strait."
	for _, test := range []struct{ quote, text string }{
		{"👍🏽", "👍🏿"}, {"👍", "👍🏿"}, {"🇩🇪", "🇩🇰"}, {"🇩🇪", "🇫🇪"}, {"🏳️", "🏳"}, {"q̣", "q̇"}, {"क्ष", "क्य"},
	} {
		quote, text := fmt.Sprintf(said, test.quote), fmt.Sprintf(said, test.text)
		got, ok := snapshot.Nearest(text, quote)
		want := []snapshot.Edit{
			{snapshot.EditSame, "The crew of the ferry flies the flag "},
			{snapshot.EditQuote, test.quote},
			{snapshot.EditText, test.text},
			{snapshot.EditSame, " on every crossing of the strait."},
		}
		if !ok {
			t.Errorf("%s, %s: not near", test.quote, test.text)
		} else if diff := cmp.Diff(want, got.Diff); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", test.quote, test.text, diff)
		}
	}
}

// Hostile texts, one of them as large as a source may be, take about a second. Quadratic code would take hours, so the
// bound is generous.
func TestFindBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, test := range []struct{ name, text, quote string }{
		{"one letter", strings.Repeat("a", 1<<20), strings.Repeat("a", 2000) + "b"},
		{"many hits", strings.Repeat("ab ", 1<<20/3) + "x", "ab ab ab ab"},
		{"almost", strings.Repeat(strings.Repeat("a", 1999)+"c ", 8<<20/2001), strings.Repeat("a", 1999) + "b"},
		{"ideographs", strings.Repeat("塔塔塔", 1<<20/9), strings.Repeat("塔", 2000) + "楼"},
	} {
		start := time.Now()
		text := snapshot.Normalize(test.text)
		around := strings.Repeat("ab ", 1<<18)
		_, found := snapshot.Find(text, &snapshot.Quote{Exact: test.quote, Prefix: around, Suffix: around, Start: 5, End: 9})
		find := time.Since(start)
		near, ok := snapshot.Nearest(text, test.quote)
		took := time.Since(start)
		if took > 5*time.Minute || !found && !ok {
			t.Errorf("%s: %v, %v, %v", test.name, took, found, near)
		}
		t.Logf("%s: Find %v, Nearest %v", test.name, find, took-find)
	}
}

func TestShortExcerpt(t *testing.T) {
	for text, want := range map[string]bool{
		"in 1889": true, "fifteen letters": true, "sixteen letters!": false, "a b c": false, "": true, "一二三四五六七八九十": true,
		"  two\u00a0words  ": true,
	} {
		if got := snapshot.ShortExcerpt(text); got != want {
			t.Errorf("ShortExcerpt(%q) = %v", text, got)
		}
	}
}

func FuzzSlice(f *testing.F) {
	f.Add("aé🧭 b", 1, 3)
	f.Fuzz(func(t *testing.T, text string, start, end int) {
		text = snapshot.Normalize(text)
		runes := []rune(text)
		got, ok := snapshot.Slice(text, start, end)
		if want := start >= 0 && start <= end && end <= len(runes); ok != want {
			t.Fatalf("Slice(%q, %d, %d): %v", text, start, end, ok)
		}
		if !ok {
			return
		}
		if got != string(runes[start:end]) {
			t.Fatalf("Slice(%q, %d, %d) = %q", text, start, end, got)
		}
		q := quoteAt(text, start, end)
		if m, ok := snapshot.Find(text, &q); got == snapshot.Normalize(got) && got != "" && (!ok || m.Start != start || m.How != snapshot.MatchExact) {
			t.Fatalf("Find(QuoteAt) = %+v, %v", m, ok)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	text := strings.Join(pageText(r, 3000), " ")
	quote := quoteAt(text, len([]rune(text))/2, len([]rune(text))/2+120)
	for _, bench := range []struct {
		name string
		q    snapshot.Quote
	}{
		{"exact", quote},
		{"reformatted", snapshot.Quote{Exact: strings.ReplaceAll(quote.Exact, " ", "  ·")}},
		{"missing", snapshot.Quote{Exact: quote.Exact + "x"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				snapshot.Find(text, &bench.q)
			}
		})
	}
	b.Run("nearest", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			snapshot.Nearest(text, "x"+quote.Exact)
		}
	})
}

// A change of a number, a word or a question is not a difference of formatting.
func TestFindReformatted(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/find_reformatted.txt", 3) {
		m, ok := snapshot.Find(snapshot.Normalize(row[0]), &snapshot.Quote{Exact: row[1]})
		if strconv.FormatBool(ok) != row[2] {
			t.Errorf("%q in %q: %+v, %v", row[1], row[0], m, ok)
		}
	}
}

// A quote that begins or ends inside a number is cut, even in its place.
func TestFindCut(t *testing.T) {
	const text = "The trial cured 15 percent of all, –5 more (7) than 1/2 of the unable; it was 10.5 of them."
	for _, test := range testenv.Cases(t, "testdata/find_cut.txt", 2) {
		quote, cut := test[0], test[1] == "true"
		start := len([]rune(text[:strings.Index(text, quote)]))
		q := snapshot.Quote{Exact: quote, Start: start, End: start + len([]rune(quote))}
		m, ok := snapshot.Find(text, &q)
		if !ok || m.How != snapshot.MatchExact || m.Cut != cut || snapshot.IsCut(text, q.Start, q.End) != cut {
			t.Errorf("%q in place: %+v, %v", quote, m, ok)
		}
		q = quoteAt(text, q.Start, q.End)
		q.Start, q.End = 0, 0
		if m, ok := snapshot.Find(text, &q); !ok || m.Cut != cut {
			t.Errorf("%q by its context: %+v, %v", quote, m, ok)
		}
		if m, ok := snapshot.Find(text, &snapshot.Quote{Exact: quote}); ok == cut {
			t.Errorf("%q anywhere: %+v, %v", quote, m, ok)
		}
	}
	if snapshot.IsCut(text, 5, 4) || snapshot.IsCut(text, 9000, 9001) {
		t.Error("an invalid place is cut")
	}
}

// Runs of dots cost no more than other texts.
func TestFindPoints(t *testing.T) {
	start := time.Now()
	for _, run := range []string{".", ",", ".,", "-", "("} {
		snapshot.Find(strings.Repeat(run, 400_000), &snapshot.Quote{Exact: run})
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// A copy without its octets has no text.
func TestTextsWithoutOctets(t *testing.T) {
	hash := snapshot.Hash([]byte("Some page."))
	texts := &snapshot.Texts{}
	if _, _, err := texts.Of(&snapshot.Snapshot{MediaType: "text/plain", Hash: hash}); err == nil {
		t.Error("a text was read without octets")
	}
	text, _, err := texts.Of(&snapshot.Snapshot{MediaType: "text/plain", Hash: hash, Octets: []byte("Some page.")})
	if err != nil || text.Content != "Some page." {
		t.Errorf("%v, %v", text, err)
	}
}

// quoteAt returns the quote of the code points [start, end) of a text, with up to 32 before and after it.
func quoteAt(text string, start, end int) snapshot.Quote {
	runes := []rune(text)
	if start < 0 || end < start || end > len(runes) {
		return snapshot.Quote{}
	}
	return snapshot.Quote{
		Exact: string(runes[start:end]), Start: start, End: end,
		Prefix: string(runes[max(0, start-32):start]), Suffix: string(runes[end:min(len(runes), end+32)]),
	}
}
