package prose

import "strings"

// How far a mark may reach. Text between two brackets without end must not be read again for each of them.
const (
	maxNote  = 64   // "[1, 2]", "[^name]", "【4:0†source】"
	maxTitle = 300  // the words of a link
	maxURL   = 1024 // its destination; a group of links; what stands in <sup>
	maxCode  = 512  // a code span
)

// linkEnd returns the end of the markdown link whose bracket opens at p, or p when none does.
func linkEnd(text string, p int) int {
	line := text[p:min(len(text), p+maxTitle)]
	n := strings.IndexByte(line, ']')
	if n < 0 || strings.IndexByte(line[:n], '\n') >= 0 {
		return p
	}
	n += p + 1
	if n < len(text) && text[n] == ']' { // [[1]](url)
		n++
	}
	if n >= len(text) || text[n] != '(' {
		return p
	}
	if end := closing(text, n, maxURL); end > n {
		return end
	}
	return p
}

// closing returns the place after the parenthesis that closes the one at p on the same line, or p.
func closing(text string, p, limit int) int {
	limit = min(len(text), p+limit)
	if strings.IndexByte(text[p:limit], ')') < 0 { // fast where many open and none closes
		return p
	}
	depth := 0
	for q := p; q < limit; q++ {
		switch text[q] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return q + 1
			}
		case '\n':
			return p
		}
	}
	return p
}

// codeEnd returns the end of the code span that begins with the backticks at p, or the place after them when it does
// not end on the line.
func codeEnd(text string, p int) int {
	n := runOf(text, p, '`')
	limit := min(len(text), p+n+maxCode)
	for q := p + n; q < limit && text[q] != '\n'; q++ {
		if text[q] != '`' {
			continue
		}
		m := runOf(text, q, '`')
		if m == n {
			return q + m
		}
		q += m - 1
	}
	return p + n
}

// noteMark returns the end of "[1]", "[^1]", "[2, 3]", "[4-6]", "[^name]" or "[[1]]" at p, or p.
func noteMark(text string, p int) int {
	line := text[p:min(len(text), p+maxNote)]
	n := strings.IndexByte(line, ']')
	if n < 0 {
		return p
	}
	inner := line[1:n]
	double := strings.HasPrefix(inner, "[") && strings.HasPrefix(line[n:], "]]")
	if double {
		inner, n = inner[1:], n+1
	}
	if name, ok := strings.CutPrefix(inner, "^"); ok && name != "" && !strings.ContainsAny(name, " \n[") {
		return p + n + 1
	}
	if !isNumbers(inner) {
		return p
	}
	return p + n + 1
}

// isNumbers reports whether s is a list of numbers and ranges as citation marks have it.
func isNumbers(s string) bool {
	digit := false
	for _, r := range s {
		switch {
		case '0' <= r && r <= '9':
			digit = true
		case r != ' ' && r != ',' && r != ';' && r != '-' && r != '–':
			return false
		}
	}
	return digit
}

// citeMark returns the end of the citation mark at p, or p: a number in brackets, linked or not; links in parentheses;
// 【…】; a superscript element.
func citeMark(text string, p int) int {
	rest := text[p:]
	switch {
	case rest == "":
		return p
	case rest[0] == '[':
		end := noteMark(text, p)
		if end == p {
			return p
		}
		return max(end, linkEnd(text, p))
	case strings.HasPrefix(rest, "(["):
		return linkGroup(text, p)
	case strings.HasPrefix(rest, "【"):
		if n := strings.Index(rest[:min(len(rest), maxNote)], "】"); n > 0 {
			return p + n + len("】")
		}
	case strings.HasPrefix(rest, supOpen):
		if n := strings.Index(rest[:min(len(rest), maxURL)], supClose); n > 0 {
			return p + n + len(supClose)
		}
	}
	return p
}

const (
	supOpen  = "<sup>"
	supClose = "</sup>"
)

// afterSigns returns the end of the emoji and other signs without words that end the line after p, or p.
func afterSigns(text string, p int) int {
	const most = 48 // bytes
	end := p
	for q := p; q < min(len(text), p+most); {
		r, w := runeAt(text, q)
		switch {
		case atLineEnd(text, q):
			return end
		case !isBlank(text[q]) && !isAttached(r):
			return p
		}
		if q += w; !isBlank(text[q-1]) {
			end = q
		}
	}
	if p+most < len(text) {
		return p
	}
	return end
}

// linkGroup returns the end of "([a](u), [b](v))" at p, or p.
func linkGroup(text string, p int) int {
	q := p + 1
	for {
		end := linkEnd(text, q)
		if end == q {
			if end = noteMark(text, q); end == q {
				return p
			}
		}
		q = end
		for q < len(text) && strings.IndexByte(" ,;", text[q]) >= 0 {
			q++
		}
		switch {
		case q >= len(text) || q-p > maxURL:
			return p
		case text[q] == ')':
			return q + 1
		case text[q] != '[':
			return p
		}
	}
}

// afterMarks returns the end of the citation marks that follow p on the line, apart or not. Links that are not citation
// marks by their form are when nothing but such marks follows on the line.
func afterMarks(text string, p int) int {
	kept := p
	for {
		q := skipBlanks(text, p)
		end := citeMark(text, q)
		switch {
		case end > q:
			if p == kept {
				kept = end
			}
			p = end
		case q < len(text) && text[q] == '[':
			end = linkEnd(text, q)
			if end == q {
				return kept
			}
			p = end
		case atLineEnd(text, q):
			return p
		default:
			return kept
		}
	}
}
