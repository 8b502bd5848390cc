package support

import (
	"bytes"
	"strings"
	"testing"
)

// Verbatim finds what a word-by-word comparison finds.
func FuzzVerbatim(f *testing.F) {
	long := strings.Repeat("the US army and the UK's navy didn't pay $5 million [1] in 2,019 ", 12)
	for _, text := range []string{
		"The tower is 333 m high. It was built in 1889, by 300 workers.", long, long + ". " + long, "He said: “No.” [1, 2] Then he left. U.S. troops, 5-10 of them.",
		"東京タワーは高さ333メートルです。", "５００ people paid +5 % – or −3 €", "a b a b a c a b a b a d", "Dr. Who? Mr. No. 5",
	} {
		f.Add("It was built in 1889", text, uint(3), uint(20))
		f.Add("the US army", text, uint(0), uint(400))
	}
	f.Fuzz(func(t *testing.T, claim, text string, from, length uint) {
		from %= uint(len(text)) + 1
		length %= uint(len(text)) - from + 1
		for _, claim := range []string{claim, text[from : from+length], text[from:], text} {
			words, all, want := rawWords(claim), rawWords(text), false
			for at := 0; len(words) > 0 && at+len(words) <= len(all); at += rawWord {
				want = want || bytes.Equal(words, all[at:at+len(words)])
			}
			if got := Verbatim(claim, text); got != want {
				t.Errorf("%q in %q: %t, want %t", claim, text, got, want)
			}
		}
	})
}
