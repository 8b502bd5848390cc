package ibid

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/wire"
)

// readMarks returns the marks of a text that arrives in pieces of piece bytes.
func readMarks(text string, piece int) []string {
	m := marks{markList: newMarkList(&wire.Markers{Refs: slices.Repeat([]wire.Ref{{Source: "s"}}, 9)}, nil, false)}
	m.restart()
	var out []string
	for end := 0; end < len(text); {
		end = min(len(text), end+piece)
		for {
			found, ok := m.next(text[:end], end == len(text))
			if !ok {
				break
			}
			out = append(out, text[found.span.Start:found.span.End])
		}
	}
	return out
}

func TestMarks(t *testing.T) {
	eachCase(t, "marks", func(t *testing.T, text, want string) {
		t.Helper()
		for _, piece := range []int{len(text), 1, 2, 3, 7} {
			got := readMarks(text, piece)
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Errorf("in pieces of %d bytes (-want +got):\n%s", piece, diff)
			}
		}
	})
}

// However long a construct that could hide marks is, the result is the same whether the text arrives at once or in
// pieces.
func TestMarksPastBounds(t *testing.T) {
	for _, begin := range []string{"[", "[a](", "[[[", "$x", "$$", `\(`, `\[`, "`", "<a:", "https://x/", "```\n"} {
		for _, fill := range []string{"x", "x ", "[x] ", "(x) ", "[1]", "\\", "$"} {
			for _, end := range []string{"]", "](u)", ")", "$", "$$", `\)`, "`", ">", "\n\n"} {
				for _, size := range []int{30, 500, 2030, 2045, 4090, 4100} {
					text := begin + strings.Repeat(fill, size/len(fill)) + end + " [7]"
					whole := readMarks(text, len(text))
					if pieces := readMarks(text, 97); !slices.Equal(whole, pieces) {
						t.Fatalf("%s, %d bytes of %q, %s: %d marks in the whole, %d in pieces", begin, size, fill, end, len(whole), len(pieces))
					}
				}
			}
		}
	}
}

// BenchmarkMarks reads hostile texts: the time per byte must not grow with the text.
func BenchmarkMarks(b *testing.B) {
	for _, unit := range []string{"[", "[a](", "[ " + strings.Repeat("x", 100), "[1][2]", "[1]:", "$x", "$$ ", `\[`, "<a:", "https://x/", "`", "($(["} {
		for _, size := range []int{1 << 14, 1 << 18} {
			text := strings.Repeat(unit, size/len(unit))
			b.Run(unit[:min(len(unit), 10)], func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					readMarks(text, len(text))
				}
			})
		}
	}
}
