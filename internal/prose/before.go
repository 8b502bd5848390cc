package prose

import (
	"strings"
	"unicode"
)

// SentenceBefore returns the statement that a citation at the offset at stands for: its sentence from the start to the
// last letter, digit, terminator or closing sign before at. Citation marks and their opening brackets right before at
// are not part of it, nor are the markers of the block. A citation after the end of a sentence closes that sentence.
// The range is empty where nothing stands before at in its block.
//
// Nothing from at on is looked at, so the result is the same while the text behind it is still to come:
// SentenceBefore(text, at) is SentenceBefore(text[:at], at).
func SentenceBefore(text string, at int) (start, end int) {
	text = wholeRunes(text[:clamp(text, at)])
	start, end = len(text), len(text)
	// A line on which nothing stands yet goes on with the block before it.
	body, onNewLine := strings.CutSuffix(strings.TrimRight(text, " \t"), "\n")
	for s := splitterNear(body, len(body)); ; {
		b, e, ok := s.next()
		if !ok && onNewLine && s.alone {
			return len(text), len(text)
		}
		if !ok {
			return start, end
		}
		if e = trimMarks(text, b, e); b < e {
			start, end = b, e
		}
	}
}

// maxMarks is how many citation marks in a row are taken from the end of a statement.
const maxMarks = 64

// trimMarks returns the end of the statement in text[start:end]: without citation marks, opening signs and separators
// at its end.
func trimMarks(text string, start, end int) int {
	kept := trimTail(text, start, end)
	p := kept
	for range maxMarks {
		q, certain := markStart(text, start, p)
		if q == p {
			break
		}
		p = trimTail(text, start, q)
		// A link may be a part of the sentence. It is a citation where it opens the sentence or stands in parentheses.
		if certain || p == start || strings.HasSuffix(strings.TrimRight(text[start:q], " "), "(") {
			kept = p
		}
	}
	return kept
}

// trimTail returns end without the signs before it that close nothing.
func trimTail(text string, start, end int) int {
	for end > start {
		r, w := runeBefore(text, end)
		switch {
		case r == '*' || r == '_' || r == '~' || r == '`':
			from := end - 1
			for from > start && strings.IndexByte("*_~`", text[from-1]) >= 0 {
				from--
			}
			if prev, _ := runeBefore(text, from); from > start && !isSpace(prev) && !opens(prev) {
				return end
			}
			w = end - from
		case r == '>' && strings.HasSuffix(text[start:end], supOpen):
			w = len(supOpen)
		case (r == '"' || r == '\'') && opensQuote(text, start, end-1):
		case !isSpace(r) && !opens(r) && !separates(r):
			return end
		}
		end -= w
	}
	return start
}

// opens reports whether r only ever opens.
func opens(r rune) bool {
	switch r {
	case '(', '[', '{', '<', '¿', '¡', '„', '‚':
		return true
	}
	return r >= 0x2000 && unicode.Is(unicode.Ps, r)
}

// separates reports whether r stands between parts of a sentence.
func separates(r rune) bool {
	switch r {
	case ',', ';', ':', '|', '-', '/', '\\', '&', '+', '=', '#', '>', '、', '，', '；', '：', '،', '؛':
		return true
	}
	return r >= 0x2000 && unicode.Is(unicode.Pd, r)
}

// opensQuote reports whether the ASCII quote at p opens one: nothing but white space or an opening sign comes before.
func opensQuote(text string, start, p int) bool {
	prev, w := runeBefore(text, p)
	return p <= start || w == 0 || isSpace(prev) || opens(prev)
}

// markStart returns the start of the citation mark or link that ends at end, or end. A link whose words are no number
// and no site is not certain to be a citation.
func markStart(text string, start, end int) (from int, certain bool) {
	low := max(start, end-maxURL-maxTitle)
	body := text[low:end]
	switch {
	case strings.HasSuffix(body, "]"):
		for n, tries := len(body), 0; tries < 2; tries++ { // the second for "[[1]]"
			if n = strings.LastIndexByte(body[:n], '['); n < 0 {
				break
			}
			if noteMark(text, low+n) == end {
				return low + n, true
			}
		}
	case strings.HasSuffix(body, "】"):
		if n := strings.LastIndex(body, "【"); n >= 0 {
			return low + n, true
		}
	case strings.HasSuffix(body, supClose):
		if n := strings.LastIndex(body, supOpen); n >= 0 {
			return low + n, true
		}
	case strings.HasSuffix(body, ")"):
		return linkStart(text, low, end)
	}
	return end, false
}

// linkStart is markStart for what ends with a parenthesis.
func linkStart(text string, low, end int) (from int, certain bool) {
	depth, p := 0, end
	for p > low {
		p--
		if text[p] == ')' {
			depth++
		} else if text[p] == '(' {
			if depth--; depth == 0 {
				break
			}
		}
	}
	switch {
	case depth != 0:
		return end, false
	case p > low && text[p-1] == ']':
		n := strings.LastIndexByte(text[low:p-1], '[')
		if n < 0 {
			return end, false
		}
		from = low + n
		if from > low && text[from-1] == '[' {
			from--
		}
		name := strings.Trim(text[from:p], "[]^")
		return from, isNumbers(name) || !strings.Contains(name, " ") && strings.Contains(name, ".")
	case linkGroup(text, p) == end:
		return p, true
	}
	return end, false
}
