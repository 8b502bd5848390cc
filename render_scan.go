package ibid

import "strings"

// mathWindow bounds how far dollar-sign math on one line is looked for, so that hostile text stays cheap.
const mathWindow = 512

// textScanner finds what chat interfaces treat as solid but CommonMark does not know: math, footnote marks, and
// addresses that are too odd for GFM to link or stand where it does not.
type textScanner struct {
	*treeBuilder
	at        int
	raw, held int            // the first raw block and solid that end after at
	next      map[string]int // where a closer next occurs: it is looked for once, however often it is missing
}

// scan fills b.found.
func (b *treeBuilder) scan() {
	s := textScanner{treeBuilder: b, next: map[string]int{}}
	for {
		i := strings.IndexAny(b.text[s.at:], "\\$[:@")
		if i < 0 {
			s.hosts()
			return
		}
		s.at += i
		if end := s.skipped(); end > s.at {
			s.at = end
			continue
		}
		s.at = s.construct()
	}
}

// skipped returns the end of the raw block or solid that s.at stands in; s.at if there is none.
func (s *textScanner) skipped() int {
	for s.raw < len(s.raws) && s.raws[s.raw].End <= s.at {
		s.raw++
	}
	if s.raw < len(s.raws) && s.raws[s.raw].Start <= s.at {
		return s.raws[s.raw].End
	}
	held := s.tree.solids
	for s.held < len(held) && held[s.held].End <= s.at {
		s.held++
	}
	if s.held < len(held) && held[s.held].Start <= s.at {
		return held[s.held].End
	}
	return s.at
}

// construct notes the construct that starts at s.at, if one does, and returns where to go on.
func (s *textScanner) construct() int {
	rest := s.text[s.at:]
	switch {
	case strings.HasPrefix(rest, `\(`):
		return s.delimited(2, `\)`)
	case strings.HasPrefix(rest, `\[`):
		return s.delimited(2, `\]`)
	case rest[0] == '\\':
		return s.at + min(2, len(rest))
	case strings.HasPrefix(rest, "$$"):
		return s.delimited(2, "$$")
	case rest[0] == '$':
		return s.dollar(rest)
	case strings.HasPrefix(rest, "[^"):
		return s.footnote(rest)
	case strings.HasPrefix(rest, "://"):
		return s.address(rest)
	case rest[0] == '@':
		return s.mailbox(rest)
	default:
		return s.at + 1
	}
}

// delimited notes math up to closer, which must stand in the same paragraph.
func (s *textScanner) delimited(opener int, closer string) int {
	from := s.at + opener
	end := s.find(closer, from)
	if end < 0 || end == from || s.blankLine(from) < end || s.raw < len(s.raws) && s.raws[s.raw].Start < end {
		return from
	}
	return s.mathTo(end + len(closer))
}

// find returns where sub next occurs from at on; -1: nowhere.
func (s *textScanner) find(sub string, at int) int {
	if next, ok := s.next[sub]; ok && (next < 0 || next >= at) {
		return next
	}
	next := strings.Index(s.text[at:], sub)
	if next >= 0 {
		next += at
	}
	s.next[sub] = next
	return next
}

// blankLine returns where the next blank line starts.
func (s *textScanner) blankLine(at int) int {
	next := len(s.text)
	for _, sub := range [...]string{"\n\n", "\r\n\r\n"} {
		if i := s.find(sub, at); i >= 0 {
			next = min(next, i)
		}
	}
	return next
}

// dollar notes math between single dollar signs by pandoc's rule: no space inside next to them, no digit after, one
// line.
func (s *textScanner) dollar(rest string) int {
	rest = rest[:min(len(rest), mathWindow)]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	if len(rest) < 3 || isSpaceByte(rest[1]) {
		return s.at + 1
	}
	for i := 2; i < len(rest); i++ {
		switch {
		case rest[i] == '\\':
			i++
		case rest[i] != '$' || isSpaceByte(rest[i-1]):
		case i+1 < len(rest) && '0' <= rest[i+1] && rest[i+1] <= '9':
		case s.held < len(s.tree.solids) && s.tree.solids[s.held].Start < s.at+i:
			return s.at + 1
		default:
			return s.mathTo(s.at + i + 1)
		}
	}
	return s.at + 1
}

// mathTo notes math from s.at to end.
func (s *textScanner) mathTo(end int) int {
	s.found = append(s.found, solid{Span{s.at, end}, mathSolid})
	return end
}

// footnote notes a footnote mark, with its colon where it starts a definition.
func (s *textScanner) footnote(rest string) int {
	i := strings.IndexAny(rest[1:], "[]\n") + 1
	if i < 3 || rest[i] != ']' {
		return s.at + 1
	}
	end := s.at + i + 1
	lineStart := strings.LastIndexByte(s.text[max(0, s.at-8):s.at], '\n') + 1 + max(0, s.at-8)
	if strings.HasPrefix(s.text[end:], ":") && strings.Trim(s.text[lineStart:s.at], " >") == "" {
		end++
	}
	s.found = append(s.found, solid{Span{s.at, end}, otherSolid})
	return end
}

// address notes an address whose "://" stands at s.at.
func (s *textScanner) address(rest string) int {
	start := s.at
	for start > 0 && s.at-start < 16 && isASCIIAlnum(rune(s.text[start-1])) {
		start--
	}
	end := 3
	for end < len(rest) && rest[end] > ' ' && rest[end] < 0x7F && !strings.ContainsRune("<>\"`|*", rune(rest[end])) {
		end++
	}
	url := strings.TrimRight(rest[:end], ".,;:!?'_~)]")
	if start == s.at || len(url) <= 3 {
		return s.at + 3
	}
	s.found = append(s.found, solid{Span{start, s.at + len(url)}, bareSolid})
	return s.at + len(url)
}

// mailbox notes a mail address whose @ stands at s.at.
func (s *textScanner) mailbox(rest string) int {
	start, end := s.at, 1
	for start > 0 && s.at-start < 64 && (isASCIIAlnum(rune(s.text[start-1])) || strings.IndexByte("._+-!#%&'/=?", s.text[start-1]) >= 0) {
		start--
	}
	for end < len(rest) && (isASCIIAlnum(rune(rest[end])) || strings.IndexByte("._-", rest[end]) >= 0) {
		end++
	}
	host := strings.TrimRight(rest[1:end], ".")
	if start == s.at || !strings.Contains(host, ".") {
		return s.at + 1
	}
	s.found = append(s.found, solid{Span{start, s.at + 1 + len(host)}, bareSolid})
	return s.at + 1 + len(host)
}

// hosts notes addresses that begin with www and that GFM does not link where they stand.
func (s *textScanner) hosts() {
	for at := 0; ; {
		i := strings.Index(s.text[at:], "www.")
		if i < 0 {
			return
		}
		at += i
		end := at
		for end < len(s.text) && s.text[end] > ' ' && s.text[end] < 0x7F && strings.IndexByte("<>\"`|*()[]", s.text[end]) < 0 {
			end++
		}
		s.found = append(s.found, solid{Span{at, at + len(strings.TrimRight(s.text[at:end], ".,;:!?'_~"))}, bareSolid})
		at = end
	}
}
