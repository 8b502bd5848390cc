package prose

import (
	"strings"
	"testing"

	uax29 "github.com/clipperhouse/uax29/v2/sentences"
	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

// sentences returns the sentences of text as strings.
func sentences(text string) []string {
	var all []string
	for start, end := range Sentences(text) {
		all = append(all, text[start:end])
	}
	return all
}

func TestSentences(t *testing.T) {
	for _, c := range testenv.Cases(t, "testdata/tables/sentences.txt", 1) {
		text, want := sample(c[0])
		if diff := cmp.Diff(want, sentences(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// Plain prose without anything that this package treats specially is split as by UAX 29.
func TestSentencesFollowUAX29(t *testing.T) {
	text := "The river rises in the hills. It falls 300 m (in three steps) to the sea! Who found it? Nobody knows; " +
		"maps of 1.5 million show it. “That is odd.” So they say. Der Fluss ist lang. Größe zählt nicht! Où va-t-il ? Ça va. " +
		"¿Dónde está? Está aquí. Река длинная. Она холодная! Ο ποταμός. Είναι μακρύς. Գետը երկար է։ Այո։ Հա։ " +
		"河很长。水很冷！谁知道？没人。川は長い。水は冷たい！नदी लंबी है। ठीक है। هل هو طويل؟ نعم. הנהר ארוך. כן! " +
		"강은 길다. 물은 차다! ወንዙ ረጅም ነው። አዎ። မြစ်ရှည်။ ဟုတ်။"
	var want []string
	for it := uax29.FromString(text); it.Next(); {
		want = append(want, strings.TrimSpace(it.Value()))
	}
	if diff := cmp.Diff(want, sentences(text)); diff != "" {
		t.Errorf("(-UAX 29 +got):\n%s", diff)
	}
}

// sample removes the bars before words from c, which mark the start of a sentence. A bar before a space or a dash
// belongs to a table.
func sample(c string) (text string, want []string) {
	var b strings.Builder
	cut := []int{0}
	for i := 0; i < len(c); i++ {
		if c[i] == '|' && (i+1 == len(c) || strings.IndexByte(" -:\n|", c[i+1]) < 0) {
			cut = append(cut, b.Len())
			continue
		}
		b.WriteByte(c[i])
	}
	text = b.String()
	cut = append(cut, len(text))
	for i := range len(cut) - 1 {
		if s := markers(text[cut[i]:cut[i+1]]); s != "" {
			want = append(want, s)
		}
	}
	return text, want
}

// markers removes from the end of s the markers that belong to the next block.
func markers(s string) string {
	lines := strings.Split(s, "\n")
	for len(lines) > 0 {
		last := strings.TrimSpace(lines[len(lines)-1])
		switch strings.Trim(last, "-=*:| ") {
		case "", "#", ">", "1.", "2)", "•", "[ ]", "[x]", "[^1]", "[2]":
			lines = lines[:len(lines)-1]
			continue
		}
		break
	}
	return strings.TrimRight(strings.TrimSpace(strings.Join(lines, "\n")), "| ")
}

func TestSentenceAt(t *testing.T) {
	testOffsets(t, func(text string, at int) string {
		start, end := SentenceAt(text, at)
		return text[start:end]
	}, "sentence-at.txt")
}

// In a block longer than the window, neither the result nor the time depends on its distant start.
func TestSentenceAtLongBlock(t *testing.T) {
	text := strings.Repeat("Some words stand here. ", 1000)
	at := strings.Index(text[12000:], "words") + 12000
	start, end := SentenceAt(text, at)
	if got, want := text[start:end], "Some words stand here."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	start, end = SentenceBefore(text, at+len("words"))
	if got, want := text[start:end], "Some words"; got != want {
		t.Errorf("before: got %q, want %q", got, want)
	}
	long := strings.Repeat("word ", 4000)
	start, end = SentenceAt(long, 10000)
	if start < 10000-Window || end > 10000+Window || start >= 10000 || end <= 10000 {
		t.Errorf("a sentence without end: got %d to %d", start, end)
	}
}

// testOffsets runs f for each case of a table: a text with a ^ at the offset, and the expected result.
func testOffsets(t *testing.T, f func(text string, at int) string, table string) {
	t.Helper()
	for _, c := range testenv.Cases(t, "testdata/tables/"+table, 3) {
		t.Run(c[0], func(t *testing.T) {
			before, after, ok := strings.Cut(c[1], "^")
			if !ok {
				t.Fatalf("no ^ in %q", c[1])
			}
			if got := f(before+after, len(before)); got != c[2] {
				t.Errorf("%q: got %q, want %q", c[1], got, c[2])
			}
		})
	}
}

func TestSentenceBefore(t *testing.T) {
	testOffsets(t, func(text string, at int) string {
		start, end := SentenceBefore(text, at)
		if s, e := SentenceBefore(text[:at], at); s != start || e != end {
			t.Errorf("%q without what follows: %d, %d, want %d, %d", text, s, e, start, end)
		}
		return text[start:end]
	}, "sentence-before.txt")
}
