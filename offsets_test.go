package ibid

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/testenv"
)

func ExampleOffsets() {
	offsets := NewOffsets("👍 Ça va?")
	span, ok := offsets.Span(UTF16, 3, 5)
	fmt.Println(span, ok)
	fmt.Println(offsets.In(CodePoint, span))

	_, ok = offsets.Span(UTF16, 1, 5) // 1 is inside the emoji
	fmt.Println(ok)
	// Output:
	// {5 8} true
	// 2 4
	// false
}

func TestOffsetsSpan(t *testing.T) {
	tests := testenv.Table[struct {
		Name, Text string
		Unit       Unit
		Start, End int
		Want       string // the words, or "-" for no span
	}](t, "testdata/tables/offsets-span.txt")
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) {
			o := NewOffsets(test.Text)
			span, ok := o.Span(test.Unit, test.Start, test.End)
			got := "-"
			if ok {
				got = test.Text[span.Start:span.End]
			} else if span != (Span{}) {
				t.Errorf("Span = %v, false; want the zero span", span)
			}
			if got != test.Want {
				t.Fatalf("Span(%q, %d, %d) = %q, want %q", test.Unit, test.Start, test.End, got, test.Want)
			}
			if !ok {
				return
			}
			if start, end := o.In(test.Unit, span); start != test.Start || end != test.End {
				t.Errorf("In(%q, %v) = %d, %d; want %d, %d", test.Unit, span, start, end, test.Start, test.End)
			}
		})
	}
}

func TestOffsetsInRejects(t *testing.T) {
	o := NewOffsets("aé🎉")
	for _, s := range []Span{{-1, 1}, {0, 8}, {2, 1}, {0, 2}, {2, 3}, {4, 7}, {8, 8}} {
		for _, u := range []Unit{UTF8, CodePoint, UTF16} {
			if start, end := o.In(u, s); start != -1 || end != -1 {
				t.Errorf("In(%q, %v) = %d, %d; want -1, -1", u, s, start, end)
			}
		}
	}
	if start, end := o.In("words", Span{0, 1}); start != -1 || end != -1 {
		t.Errorf("In an unknown unit = %d, %d; want -1, -1", start, end)
	}
}

// starts returns the byte at which each unit of text begins, followed by the length of text. A unit inside a character
// is -1.
func starts(u Unit, text string) []int {
	var at []int
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		units := 1
		switch u {
		case UTF8:
			units = size
		case UTF16:
			units = len(utf16.Encode([]rune{r}))
		case CodePoint:
		}
		at = append(at, i)
		for range units - 1 {
			at = append(at, -1)
		}
		i += size
	}
	return append(at, len(text))
}

// checkOffsets compares offsets of text in every unit with a naive count, in random order: all of a short text, a
// sample of a long one.
func checkOffsets(t *testing.T, o *Offsets, text string, next *rand.Rand) {
	t.Helper()
	for _, u := range []Unit{UTF8, CodePoint, UTF16} {
		at := starts(u, text)
		for _, n := range next.Perm(len(at))[:min(len(at), 300)] {
			want, wantOK := at[n], at[n] >= 0
			got, ok := o.byte(u, n)
			if ok != wantOK || ok && got != want {
				t.Fatalf("byte(%q, %d) = %d, %v; want %d, %v in %.60q", u, n, got, ok, want, wantOK, text)
			}
			if !ok {
				continue
			}
			if start, end := o.In(u, Span{got, len(text)}); start != n || end != len(at)-1 {
				t.Fatalf("In(%q, {%d %d}) = %d, %d; want %d, %d in %.60q", u, got, len(text), start, end, n, len(at)-1, text)
			}
		}
		for _, n := range []int{-1, len(at), len(at) + 300} {
			if got, ok := o.byte(u, n); ok {
				t.Fatalf("byte(%q, %d) = %d, true beyond %.60q", u, n, got, text)
			}
		}
	}
}

func TestOffsetsLong(t *testing.T) {
	next := rand.New(rand.NewPCG(1, 2))
	for _, alphabet := range []string{"a", "é", "日", "🎉", "a🎉", "aé日🎉", "ab\x80", "\xf0\x9f", "日\xe6", "𝔸\xff\u0301ב"} {
		for _, n := range []int{1, 85, 86, 127, 128, 255, 256, 257, 1000} {
			text := strings.Repeat(alphabet, n)
			checkOffsets(t, NewOffsets(text), text, next)
			text = strings.Repeat("x", n) + text // to shift the blocks
			checkOffsets(t, NewOffsets(text), text, next)
		}
	}
}

func FuzzOffsets(f *testing.F) {
	f.Add("plain", uint16(1), uint64(1))
	f.Add("naïve 東京 🎉 שלום e\u0301", uint16(90), uint64(7))
	f.Add("\xf0\x9f\x8e", uint16(300), uint64(3))
	f.Add("a\x80\xe6\x97", uint16(99), uint64(4))
	f.Fuzz(func(t *testing.T, text string, times uint16, seed uint64) {
		text = strings.Repeat(text, int(times%500)+1)
		text = text[:min(len(text), 1200)]
		next := rand.New(rand.NewPCG(seed, 1))
		checkOffsets(t, NewOffsets(text), text, next)

		var o Offsets // grown at random points, even inside characters, and used in between
		for n := 0; n < len(text); {
			n = min(len(text), n+1+next.IntN(400))
			o.Grow(text[:n])
			for _, u := range []Unit{CodePoint, UTF16} {
				at := starts(u, text[:n])
				k := next.IntN(len(at))
				if got, ok := o.byte(u, k); ok != (at[k] >= 0) || ok && got != at[k] {
					t.Fatalf("grown to %d: byte(%q, %d) = %d, %v; want %d in %.60q", n, u, k, got, ok, at[k], text[:n])
				}
			}
		}
		o.Grow(text)
		checkOffsets(t, &o, text, next)
	})
}

func TestOffsetsAllocateOnlyTheIndex(t *testing.T) {
	text := strings.Repeat("été 東京 🎉 ", 500)
	o := NewOffsets(text)
	o.Span(UTF16, 0, 3)
	o.In(UTF16, Span{0, len(text)})
	allocs := testing.AllocsPerRun(100, func() {
		s, _ := o.Span(CodePoint, 700, 1900)
		o.In(UTF16, s)
	})
	if allocs != 0 {
		t.Errorf("a conversion allocates %v times", allocs)
	}
}

func BenchmarkOffsetsIndex(b *testing.B) {
	for _, bench := range []struct{ name, word string }{
		{"ascii", "The committee published its findings in March. "},
		{"latin", "Le comité a publié ses résultats en mars à Genève. "},
		{"mostly-ascii", strings.Repeat("The committee published its findings. ", 10) + "It’s €3. 🎉 "},
		{"cjk", "委員会は三月に調査結果を公表した。"},
		{"hangul", "위원회는 3월에 조사 결과를 발표했다. "},
		{"emoji", "🎉👍"},
		{"invalid", "The committee \xff published its findings in March. "},
	} {
		text := strings.Repeat(bench.word, 1<<20/len(bench.word))
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				NewOffsets(text).In(UTF16, Span{0, len(text)})
			}
		})
	}
}

func BenchmarkOffsetsSpan(b *testing.B) {
	text := strings.Repeat("Le comité a publié ses résultats en mars à Genève 🎉. ", 1<<20/55)
	for _, u := range []Unit{UTF8, CodePoint, UTF16} {
		o := NewOffsets(text)
		_, units := o.In(u, Span{0, len(text)})
		next := rand.New(rand.NewPCG(1, 2))
		b.Run(string(u), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n := next.IntN(units - 40)
				if s, ok := o.Span(u, n, n+40); ok {
					o.In(u, s)
				}
			}
		})
	}
}
