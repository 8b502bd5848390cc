package ibid

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/wire"
)

// readMarks returns the marks of a text that comes in pieces of so many bytes.
func readMarks(text string, piece int) []string {
	m := marks{Markers: wire.Markers{Refs: make([]wire.Ref, 9)}}
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
	tests := []struct{ name, text, want string }{
		{"plain", "One [1], two [1][2], three [1, 3] and [2-4].", "[1] [1] [2] [1, 3] [2-4]"},
		{"at the end", "One [1]", "[1]"},
		{"code", "`[1]` ``a ` [2]`` [3]\n```\n[4]\n```\n[5]", "[3] [5]"},
		{"escaped", `\[1\] \\[2]`, "[2]"},
		{"a link's text", "[1](https://a.example/) [2]", "[2]"},
		{"in a link's text", "[link[2]](https://x.example/[1]) [3]", "[3]"},
		{"in a link's destination", "[link](https://x.example/[1]) [3]", "[3]"},
		{"in a link's title", `[link](https://x.example/ "see [1]") [3]`, "[3]"},
		{"brackets about a link's number", "[[1]](https://x.example/) [2]", "[2]"},
		{"parentheses in a destination", "[a](https://x.example/b_(c)_[1]) [2]", "[2]"},
		{"in an image", "![fig [1]](https://x.example/1.png) ![2] [3]", "[3]"},
		{"brackets that are no link", "[see [1] and [2]] [3]", "[1] [2] [3]"},
		{"brackets that never close", "[see [1] and [2]\n\n[3]", "[1] [2] [3]"},
		{"a remark in parentheses", "So [1](emphasis added) it is [2].", "[1] [2]"},
		{"a link that is cut", "So [1](https://x.exa", ""},
		{"a link's text that is cut", "So [link [1]](https://x.exa", ""},
		{"a definition", "[1]: https://x.example/\n  [2]: y\nSo [3]: z", "[3]"},
		{"a bare address", "See https://x.example/[1] and https://x.example/?a[2]=b [3]", "[3]"},
		{"behind a host", "See https://x.example[1].", "[1]"},
		{"behind an address's sentence", "See https://x.example/a.[1] (https://x.example/b)[2]", "[1] [2]"},
		{"an address at the end", "See https://x.example/[1]", ""},
		{"an autolink", "See <https://x.example/[1]> and <mailto:a[2]@b.example> [3]", "[3]"},
		{"no autolink", "a <b [1] <c: d[2]> [3]", "[1] [2] [3]"},
		{"a colon", "Note: [1]", "[1]"},
		{"math", "$x[1]$ and $$y[2]$$, \\(z[3]\\), \\[w[4]\\] [5]", "[5]"},
		{"prices", "It cost $5 [1] and then $10 [2]. $ [3] $", "[1] [2] [3]"},
		{"a price next to a price", "$5[1]/$10[2]", "[1] [2]"},
		{"math that never closes", "$x [1]\n$$y [2]\n\n[3] \\[z [4]\n\n[5]", "[1] [2] [3] [4] [5]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, piece := range []int{len(tt.text), 1, 2, 3, 7} {
				got := readMarks(tt.text, piece)
				if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
					t.Errorf("in pieces of %d bytes (-want +got):\n%s", piece, diff)
				}
			}
		})
	}
}

// However far what could hold marks extends, its bound is the same whether the text comes at once or in pieces.
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

// BenchmarkMarks reads hostile texts: the time for a byte must not grow with the text.
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
