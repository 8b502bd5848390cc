package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestCleaner(t *testing.T) {
	for text, want := range map[string]string{
		"Otters\thold\nhands – ok 🦦":                      "Otters\thold\nhands – ok 🦦",
		"\x1b]0;title\x07\x1b[2Jred\x1b[0m":               "]0;title[2Jred[0m",
		"over\rwritten\b\b":                               "overwritten",
		"C1 \u009b2J and \u0085":                          "C1 2J and ",
		"delete\x7f":                                      "delete",
		"a\u202egnp.exe\u202c \u2066x\u2069":              "agnp.exe x",
		"שלום \u200f!":                                    "שלום \u200f!",
		"not UTF-8 \x9b":                                  "not UTF-8 \ufffd",
		"\x1b\x1b\x1b":                                    "",
		"cut \xe2\x80":                                    "cut ",
		"both \xe2\x80\xe2\x80\x93":                       "both \ufffd\ufffd–",
		strings.Repeat("long ", 3) + "\u202e" + "\x00end": "long long long end",
	} {
		for name, r := range map[string]io.Reader{
			"at once":      strings.NewReader(text),
			"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		} {
			var got bytes.Buffer
			if n, err := io.Copy(&cleaner{w: &got}, r); err != nil || n != int64(len(text)) {
				t.Errorf("%q, %s: %d, %v", text, name, n, err)
			}
			if got.String() != want {
				t.Errorf("%q, %s: %q, want %q", text, name, got.String(), want)
			}
		}
	}
}

func FuzzCleaner(f *testing.F) {
	f.Add("\x1b[31mOtters\u202e – \xe2\x80", 3)
	f.Add("C1 \u009b\x9b", 4)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		var whole, halves bytes.Buffer
		testenv.Must(io.WriteString(&cleaner{w: &whole}, text))(t)
		w := &cleaner{w: &halves}
		if cut < 0 || cut > len(text) {
			cut = len(text) / 2
		}
		for _, half := range []string{text[:cut], text[cut:]} {
			testenv.Must(io.WriteString(w, half))(t)
		}
		got := whole.String()
		if got != halves.String() {
			t.Errorf("cut at %d: %q, whole: %q", cut, halves.String(), got)
		}
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || turnsText(r))
		}) {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"no such file":                  "no such file",
		"first\nhint: rm -rf\r\n\x1b[":  "first hint: rm -rf [",
		"\xffbad":                       "\ufffdbad",
		"a\u202eb":                      "ab",
		strings.Repeat("é", maxWords):   strings.Repeat("é", maxWords),
		strings.Repeat("é", 2*maxWords): strings.Repeat("é", maxWords) + "…",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("oneLine(%.40q) = %.40q, want %.40q", text, got, want)
		}
	}
}
