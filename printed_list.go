package ibid

import (
	"cmp"
	"slices"
	"strings"
)

// printedEntry is one entry of a list of sources that the model printed.
type printedEntry struct {
	number int  // 0 if it has none
	source int  // index in Answer.Sources, or -1
	note   bool // it defines a footnote that names no source
}

// PrintedList returns the list of sources that the model itself printed at the end of the text, with its heading:
// "Sources: 1. …", footnotes and the like. It returns false if there is none.
//
// Only marks refer to such a list: an answer without any has none. A list without a heading counts if its entries are
// definitions of footnotes, or if each names a source of the answer.
func (a *Answer) PrintedList() (Span, bool) {
	s, _, ok := a.printedList()
	return s, ok
}

func (a *Answer) printedList() (s Span, entries []printedEntry, ok bool) {
	if !slices.ContainsFunc(a.Citations, func(c Citation) bool { return c.Origin == OriginMarker }) {
		return s, nil, false
	}
	const most = 1000 // entries
	end := len(strings.TrimRight(a.Text, " \t\r\n"))
	at, definitions := end, true
	for at > 0 && len(entries) < most {
		start := strings.LastIndexByte(a.Text[:at], '\n') + 1
		line := strings.TrimRight(a.Text[start:at], "\r")
		switch {
		case strings.TrimSpace(line) == "", strings.Trim(line, "-*_= \t") == "":
		case isEntry(line):
			entry, definition := a.readEntry(line)
			entries, definitions = append(entries, entry), definitions && definition
			s.Start = start
		case isListHeading(line) && len(entries) > 0:
			return Span{start, end}, entries, true
		default:
			at = 0
			continue
		}
		at = max(0, start-1)
		if start == 0 {
			break
		}
	}
	for _, e := range entries {
		if (e.source < 0 || e.number == 0) && !definitions {
			return Span{}, nil, false
		}
	}
	if len(entries) == 0 {
		return Span{}, nil, false
	}
	return Span{s.Start, end}, entries, true
}

// readEntry reads an entry of a printed list: its number and the source that it names.
func (a *Answer) readEntry(line string) (entry printedEntry, definition bool) {
	entry.source = -1
	rest := line
	if m := entryMark().FindStringSubmatch(line); m != nil {
		rest = line[len(m[0]):]
		entry.number = max(number(entryLabel(m)), 0)
		definition = isDefinition(m[0])
	}
	name := foldName(strings.TrimLeft(rest, " \t:.)–—-*_\"“["))
	longest := 0
	for i := range a.Sources {
		src := &a.Sources[i]
		for _, of := range [...]string{src.Title, src.Filename} {
			if of = foldName(of); len(of) > longest && isEntitled(name, of) {
				entry.source, longest = i, len(of)
			}
		}
		if src.URL != "" && longest == 0 && strings.Contains(line, src.URL) {
			entry.source = i
		}
	}
	entry.note = definition && entry.source < 0
	return entry, definition
}

// entryLabel returns the number or name of an entry of a printed list from a match of entryMark, or "".
func entryLabel(m []string) string {
	for _, label := range m[1:] {
		if label != "" {
			return cmp.Or(superscript(label), label)
		}
	}
	return ""
}

// isDefinition reports whether the mark of an entry is that of the definition of a footnote: [^1]:.
func isDefinition(mark string) bool {
	return strings.Contains(mark, "[^") && strings.Contains(mark, "]:")
}

// isEntitled reports whether an entry of a list is about the source with a name: it begins with the name, and what
// follows is no sentence.
func isEntitled(entry, name string) bool {
	const most = 3 // words after the name
	rest, ok := strings.CutPrefix(entry, name)
	if !ok || name == "" {
		return false
	}
	rest = strings.Trim(rest, " \t.,;:()[]<>–—-|*_\"”'")
	return rest == "" || strings.Contains(rest, "://") || len(strings.Fields(rest)) <= most && !hasMark(rest)
}

// hasMark reports whether s has brackets, as a sentence with a mark has.
func hasMark(s string) bool { return strings.ContainsAny(s, "[【［") }

// withoutPrintedList returns a without the list that the model printed, and a itself if it printed none, or other
// footnotes among it.
func (a *Answer) withoutPrintedList() *Answer {
	s, entries, ok := a.printedList()
	if !ok || slices.ContainsFunc(entries, func(e printedEntry) bool { return e.note }) {
		return a
	}
	out := *a
	out.Text = strings.TrimRight(a.Text[:s.Start], " \t\r\n")
	out.Parts, out.Citations = nil, nil
	for _, p := range a.Parts {
		if p.Start < len(out.Text) {
			p.End = min(p.End, len(out.Text))
			out.Parts = append(out.Parts, p)
		}
	}
	for _, c := range a.Citations {
		if c.Span.End <= len(out.Text) {
			c.Claim.End = min(c.Claim.End, len(out.Text))
			out.Citations = append(out.Citations, c)
		}
	}
	return &out
}

// printsAll reports whether the list that the model printed names every cited source by its number.
func (a *Answer) printsAll(numbers []int, cited []bool) bool {
	_, entries, ok := a.printedList()
	if !ok {
		return false
	}
	have := map[int]bool{}
	for _, e := range entries {
		have[e.number] = true
	}
	for i, n := range numbers {
		if cited[i] && !have[n] {
			return false
		}
	}
	return true
}
