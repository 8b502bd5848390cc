package support

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/testenv"
)

// shownValues renders the values of a kind as "text=value".
func shownValues(text string, kind ValueKind) []string {
	var out []string
	for _, v := range Values(text) {
		if v.Kind != kind {
			continue
		}
		s := text[v.Span.Start:v.Span.End] + "="
		switch kind {
		case ValueNumber:
			s += fmt.Sprintf("%.6g", v.Number)
			if v.High != v.Number {
				s += fmt.Sprintf("..%.6g", v.High)
			}
			if v.Unit != (Unit{}) {
				s += " " + strings.TrimSpace(string(v.Unit.Kind)+" "+v.Unit.Name)
			}
			if v.Approximate {
				s += " about"
			}
			s += map[int]string{1: " or more", -1: " or less"}[v.Bound]
		case ValueDate:
			s += fmt.Sprintf("%d-%d-%d", v.Date.Year, v.Date.Month, v.Date.Day)
			if v.Date.LastYear != v.Date.Year {
				s += fmt.Sprintf("..%d", v.Date.LastYear)
			}
			if v.Date.Swappable {
				s += " swappable"
			}
		case ValueNegation:
			s += text[v.Scope.Start:v.Scope.End]
		default:
			s += strings.Join(v.Words, " ")
		}
		out = append(out, s)
	}
	return out
}

func TestValues(t *testing.T) {
	for _, lines := range readCases(t, "values.txt") {
		kind, text, _ := strings.Cut(lines[0], ": ")
		got := append([]string{}, shownValues(text, ValueKind(kind))...)
		testenv.Equal(t, lines[0], lines[1:], got)
	}
}

func TestAgrees(t *testing.T) {
	for _, lines := range readCases(t, "agrees.txt") {
		claim, evidence := lines[0], lines[1]
		said, others := figuresOf(claim, "en"), figuresOf(evidence, "en")
		got := slices.ContainsFunc(said, func(v Value) bool {
			return slices.ContainsFunc(others, func(e Value) bool { return v.agrees(&e) })
		})
		if fmt.Sprint(got) != lines[2] {
			t.Errorf("%s | %s: %t", claim, evidence, got)
		}
	}
}

// checkValues checks the invariants of values in any text.
func checkValues(tb testing.TB, text string) {
	tb.Helper()
	values := Values(text)
	for i, v := range values {
		for _, s := range []int{v.Span.Start, v.Span.End, v.Scope.Start, v.Scope.End} {
			if s < 0 || s > len(text) || s < len(text) && !utf8.RuneStart(text[s]) && utf8.ValidString(text) {
				tb.Fatalf("%q: %+v is not in the text", text, v)
			}
		}
		if v.Span.Start >= v.Span.End || v.Scope.Start > v.Scope.End {
			tb.Fatalf("%q: %+v is empty or reversed", text, v)
		}
		if v.Kind == ValueNumber && (v.Number != v.Number || v.High < v.Number) {
			tb.Fatalf("%q: %+v is not a number", text, v)
		}
		if i > 0 && values[i-1].Span.Start > v.Span.Start {
			tb.Fatalf("%q: values are out of order", text)
		}
	}
}

func FuzzValues(f *testing.F) {
	for _, seed := range []string{
		"", "The tower is 330 m tall; it cost about $1.2 million in 1889.", "12.05.2020 12/05/2020 '60s 1995–98 44 BC", "two hundred and five thousand and",
		"-−5°C\xff\xfe 3½ 1/2 １２ ½", "U.S.A. J. R. R. O’Brien's didn’t n't", "9999999999999999999999999999 1e400 1,2,3,4 1.2.3.4", "between and to - % $",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkValues(t, text)
		differencesOf(text, text)
		half := len(text) / 2
		differencesOf(text[:half], text[half:])
		conflictsOf(t, []Passage{{Text: text[:half]}, {Text: text[half:]}}, nil)
	})
}

func TestValuesOfLongTexts(t *testing.T) {
	for name, text := range map[string]string{
		"digits":   strings.Repeat("7", 1<<18),
		"words":    strings.Repeat("million ", 1<<15),
		"names":    strings.Repeat("Verrin ", 1<<15),
		"nots":     strings.Repeat("not ", 1<<15),
		"hyphens":  strings.Repeat("two-", 1<<15),
		"initials": strings.Repeat("A.", 1<<15),
		"commas":   strings.Repeat("1,", 1<<15),
		"lines":    strings.Repeat("5 km in 1999\n", 1<<14),
	} {
		t.Run(name, func(t *testing.T) { checkValues(t, text) })
	}
}

func BenchmarkValues(b *testing.B) {
	text := strings.Repeat("The Verrin Bridge, which opened on 26 June 1980, is 1,420 m long and cost $35 million. It was not closed. ", 14)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Values(text)
	}
}
