package text_test

import (
	"testing"

	"github.com/ibidhq/ibid/internal/text"
)

func TestHeadAndTailKeepRunesWhole(t *testing.T) {
	for _, test := range []struct {
		s          string
		n          int
		head, tail string
	}{
		{"heron", 9, "heron", "heron"},
		{"heron", 3, "her", "ron"},
		{"Müller", 2, "M", "er"},
		{"Müü", 2, "M", "ü"},
		{"東京", 4, "東", "京"},
		{"東京", 2, "", ""},
		{"a", 0, "", ""},
		{"\x80\x80", 1, "\x80", ""}, // contains no start of a rune
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80\x80", ""},
	} {
		if got := text.Head(test.s, test.n); got != test.head {
			t.Errorf("Head(%q, %d) = %q, want %q", test.s, test.n, got, test.head)
		}
		if got := text.Tail(test.s, test.n); got != test.tail {
			t.Errorf("Tail(%q, %d) = %q, want %q", test.s, test.n, got, test.tail)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, test := range []struct {
		s    string
		n    int
		want string
	}{
		{"two words", 9, "two words"},
		{"two words", 4, "two…"},
		{"東京都", 2, "東京…"},
		{"", 0, ""},
		{"a", 0, "…"},
	} {
		if got := text.Shorten(test.s, test.n); got != test.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", test.s, test.n, got, test.want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, test := range []struct {
		name, s string
		n       int
		want    string
	}{
		{"white space of any kind", " a\t\r\n b\u2028c\u00a0d ", 0, "a b c d"},
		{"a terminal's escape", "\x1b[31mred", 0, "[31mred"},
		{"reversed text", "abc\u202e fed", 0, "abc fed"},
		{"not UTF-8", "a\xffb", 0, "a\ufffdb"},
		{"only joiners", "\u200d\u200c", 0, ""},
		{"a family", "👩\u200d👧", 0, "👩\u200d👧"},
		{"cut", "one two three", 8, "one two…"},
		{"cut after a space", "one two three", 4, "one…"},
		{"as long as allowed", "one two", 7, "one two"},
	} {
		if got := text.Line(test.s, test.n); got != test.want {
			t.Errorf("%s: Line(%q, %d) = %q, want %q", test.name, test.s, test.n, got, test.want)
		}
	}
}

func TestHost(t *testing.T) {
	for raw, want := range map[string]string{
		"https://Example.ORG./a":       "example.org",
		"http://user@example.org:8080": "example.org",
		" https://[2001:db8::1]:443/ ": "2001:db8::1",
		"mailto:a@example.org":         "",
		"no address":                   "",
		"http://%zz":                   "",
	} {
		if got := text.Host(raw); got != want {
			t.Errorf("Host(%q) = %q, want %q", raw, got, want)
		}
	}
}
