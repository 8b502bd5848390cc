package ibid

import (
	"bytes"
	"strings"
)

// linkHope says whether citations are expected to come as visible links and marks: then these are held back until
// theirs has come.
type linkHope struct {
	seen   bool // one came
	absent bool // citations came in another way, or a link was left without one
}

// cited learns from a citation.
func (h *linkHope) cited(c *liveCite) {
	switch {
	case c.Covers == CoversLink:
		h.seen = true
	case c.Placed():
		h.absent = true
	}
}

// missed learns from a link without a citation.
func (h *linkHope) missed() { h.absent = true }

func (h *linkHope) wait() bool { return h.seen || !h.absent }

// The brackets of OpenAI's file marks.
const (
	markBegin = "【"
	markEnd   = "】"
)

// holdLinks returns the start of the first link or mark of the open block up to end that is not complete or whose
// citation may still come; end if there is none. Ended says that the block ends there.
func (l *Live) holdLinks(end int, ended bool) int {
	t := &l.text
	if !l.places.links.wait() || t.scan.fence != "" {
		return end
	}
	for at := t.written; at < end; {
		switch t.buf[at] {
		case '[', markBegin[0]:
		case '\\':
			at += 2
			continue
		case '`':
			at += codeLen(t.buf[at:end])
			continue
		default:
			at++
			continue
		}
		size, state := linkLen(t.buf[at:end], ended)
		switch {
		case state == notLink || at > 0 && t.buf[at-1] == '!':
			at += size
		case state == wholeLink && l.cites(at, at+size):
			at += size
		case state == wholeLink && l.expired(at, at+size, ended):
			l.places.links.missed()
			at += size
		default:
			return t.before(at)
		}
	}
	return end
}

// cites reports whether a citation for a link has come.
func (l *Live) cites(start, end int) bool {
	for _, c := range l.places.pending {
		if c.Covers == CoversLink && c.span.Start-l.text.from < end && c.span.End-l.text.from > start {
			return true
		}
	}
	return false
}

// expired reports whether no citation is to be expected for a link any more. Providers send it directly after the text that
// completes the link.
func (l *Live) expired(start, end int, ended bool) bool {
	t := &l.text
	if len(t.buf)-start > l.hold() {
		return true
	}
	return t.known > end && (ended || bytes.IndexByte(t.buf[end:t.known], '\n') >= 0)
}

// before returns where what stands directly before a link begins: its parenthesis, and space.
func (t *liveText) before(at int) int {
	for at > t.written && (isSpaceByte(t.buf[at-1]) || t.buf[at-1] == '(') {
		at--
	}
	return at
}

// The states of what may be a link.
type linkState uint8

const (
	notLink linkState = iota
	openLink
	wholeLink
)

// isLinkStart reports whether s begins with what may be a link, perhaps behind a parenthesis.
func isLinkStart(s []byte) bool {
	s = bytes.TrimLeft(s, " ,;(")
	return len(s) == 0 || s[0] == '[' || bytes.HasPrefix(s, []byte(markBegin))
}

// linkLen returns the length of what may be a link or mark at the start of s, and how far it is one: [a](u), [1], 【1†a】.
// Ended says that s does not go on.
func linkLen(s []byte, ended bool) (int, linkState) {
	if n := bytes.IndexByte(s, '\n'); n >= 0 {
		s, ended = s[:n], true
	}
	open := openLink
	if ended {
		open = notLink
	}
	if s[0] != '[' {
		const longest = 64 // bytes of a mark
		s = s[:min(len(s), longest)]
		n := bytes.Index(s, []byte(markEnd))
		switch {
		case !bytes.HasPrefix(s, []byte(markBegin)):
			return 1, notLink
		case n >= 0:
			return n + len(markEnd), wholeLink
		case len(s) < longest:
			return len(s), open
		default:
			return len(markBegin), notLink
		}
	}
	n := balanced(string(s), '[', ']')
	switch {
	case n == 0:
		return len(s), open
	case n == len(s) && !ended:
		return n, openLink
	case n < len(s) && s[n] == '(':
		if m := balanced(string(s[n:]), '(', ')'); m > 0 {
			return n + m, wholeLink
		}
		return len(s), open
	case isMark(string(s[:n])):
		return n, wholeLink
	default:
		return 1, notLink
	}
}

// isMark reports whether s, in brackets, is a mark such as [1], [1, 3], [2-4] or [doc1].
func isMark(s string) bool {
	inside := strings.ReplaceAll(strings.Trim(s, "[]"), "doc", "")
	return inside != "" && len(s) < 40 && strings.Trim(inside, "0123456789,-– ") == ""
}

// codeLen returns the length of the code span at the start of s, or of the run of backquotes if none is there.
func codeLen(s []byte) int {
	run := len(s) - len(bytes.TrimLeft(s, "`"))
	for at := run; ; {
		n := bytes.IndexByte(s[at:], '`')
		if n < 0 {
			return run
		}
		at += n
		size := len(s[at:]) - len(bytes.TrimLeft(s[at:], "`"))
		at += size
		if size == run {
			return at
		}
	}
}
