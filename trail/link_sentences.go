package trail

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

// sentences cuts an answer into its sentences. A mark behind a full stop, as in "It closed. [mill] Cranes live there.",
// belongs to the sentence before it, and ends that. Origin is as in marked.
func (l *linker) sentences(text string, origin int) []Sentence {
	var all []Sentence
	for start, end := range prose.Sentences(text) {
		for from := start; ; {
			n := l.markEnd(text[from:end], origin)
			all = append(all, Sentence{Span: ibid.Span{Start: from, End: from + n}, Text: text[from : from+n]})
			if from += n + spaceBefore(text[from+n:end]); from == end {
				break
			}
		}
	}
	return all
}

// markEnd returns where the marks behind the first full stop in a sentence end that has some, or the sentence's end.
func (l *linker) markEnd(text string, origin int) int {
	if strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~") {
		return len(text)
	}
	for at := 0; ; {
		n := strings.IndexAny(text[at:], "[【")
		if n < 0 {
			return len(text)
		}
		at += n
		if stopped := strings.TrimRight(
			text[:at],
			" \t\r\n\"'”’)*_",
		); stopped == "" ||
			!strings.ContainsAny(lastRune(stopped), ".!?。！？…") {
			at++
			continue
		}
		end := l.resolved(text[at:], origin)
		if end == 0 {
			at++
			continue
		}
		at += end
		for gap := spaceBefore(text[at:]); ; gap = spaceBefore(text[at:]) {
			if end = l.resolved(text[at+gap:], origin); end == 0 {
				break
			}
			at += gap + end
		}
		if next, _ := utf8.DecodeRuneInString(
			text[at+spaceBefore(text[at:]):],
		); at == len(text) ||
			spaceBefore(text[at:]) > 0 && !unicode.IsLower(next) {
			return at // else it is an abbreviation's full stop, or the mark is a word of the sentence
		}
	}
}

// resolved returns the length of the mark that text begins with, or 0 if that names no source and no step.
func (l *linker) resolved(text string, origin int) int {
	if text == "" || text[0] != '[' && !strings.HasPrefix(text, "【") {
		return 0
	}
	inside, size := bracketed(text)
	for _, mark := range marks(text[:size+len(inside)] + "]") {
		if l.resolves(mark, origin) {
			return 2*size + len(inside)
		}
	}
	return 0
}

// resolves reports whether a mark names a source or a step.
func (l *linker) resolves(mark string, origin int) bool {
	if step, ok := strings.CutPrefix(strings.ToLower(mark), "step "); ok {
		number, err := strconv.Atoi(strings.TrimSpace(step))
		_, ok = l.byNumber[number]
		return ok && err == nil
	}
	if number, err := strconv.Atoi(strings.TrimPrefix(mark, "^")); err == nil {
		return l.numbered(mark, number, origin) >= 0
	}
	_, ok := l.bySaid[strings.ToLower(mark)]
	return ok
}

// spaceBefore returns how many bytes of white space text begins with.
func spaceBefore(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\r\n")) }

func lastRune(s string) string {
	_, n := utf8.DecodeLastRuneInString(s)
	return s[len(s)-n:]
}
