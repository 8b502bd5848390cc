package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// maxWords is how many characters of a message are said: some hold what a provider sent.
const maxWords = 500

// say writes a message to the people who read w.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, "ibid: "+oneLine(fmt.Sprintf(format, args...)))
}

// hint writes what they can do about it, if that is known.
func hint(w io.Writer, text string) {
	if text != "" {
		fmt.Fprintln(w, "hint: "+oneLine(text))
	}
}

// oneLine keeps what others wrote (file names, providers' messages) from looking like words of ours, and from doing
// things to a terminal.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || turnsText(r) {
			return -1
		}
		return r
	}, s)
	n := 0
	for i := range s {
		if n++; n > maxWords {
			return s[:i] + "…"
		}
	}
	return s
}

// plural returns "1 issue" or "2 issues".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
