package trail

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

// indexMarks indexes the documents by what marks may call them: their ids and titles.
func (l *linker) indexMarks() {
	l.byMark = make(map[string]int, 2*len(l.names))
	add := func(name string, n int) {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			return
		}
		if other, ok := l.byMark[name]; ok && other != n {
			n = -1 // ambiguous
		}
		l.byMark[name] = n
	}
	for n := range l.names {
		add(l.names[n], n)
	}
	for i := range l.rows {
		r := &l.rows[i]
		if !strings.EqualFold(r.DocumentID, l.names[r.document]) {
			add(r.DocumentID, r.document)
		}
		add(r.Title, r.document)
	}
}

// linkMarks links a sentence to what its marks name. A number counts the sources of the step at index origin; if that
// is -1, it names nothing. Lost are the numbers, of sources and of steps, that name nothing.
func (l *linker) linkMarks(s *Sentence, origin int) (lost []string) {
	for _, mark := range marks(s.Text) {
		document, step, number := l.meaning(mark, origin)
		switch {
		case document >= 0:
			link := l.linkTo(document, "")
			link.Reason = ReasonMarker
			s.add(link)
		case step >= 0:
			l.linkStep(s, step)
		case number > 0 && number < leastYear || number > 0 && isStep(mark):
			lost = append(lost, mark)
		}
	}
	return lost
}

// meaning returns the document and the index of the step that a mark names, each -1 if it names none, and the mark's
// number, even if that names nothing; 0 if it is not a number. Origin is as in linkMarks.
func (l *linker) meaning(mark string, origin int) (document, step, number int) {
	name := strings.ToLower(mark)
	if isStep(mark) {
		number, err := strconv.Atoi(strings.TrimSpace(mark[len(stepMark):]))
		i, ok := l.byNumber[number]
		switch {
		case err != nil: // "step by step" is not a mark
			return -1, -1, 0
		case !ok:
			return -1, -1, max(1, number)
		}
		return -1, i, number
	}
	if strings.HasPrefix(mark, "http://") || strings.HasPrefix(mark, "https://") {
		return l.find(&Source{URL: mark, DocumentID: mark}), -1, 0
	}
	if number, err := strconv.Atoi(strings.TrimPrefix(mark, "^")); err == nil {
		return l.numbered(mark, number, origin), -1, number
	}
	if n, ok := l.byMark[name]; ok {
		return n, -1, 0
	}
	return -1, -1, 0
}

const stepMark = "step "

func isStep(mark string) bool { return strings.HasPrefix(strings.ToLower(mark), stepMark) }

// leastYear is the least number in brackets that is taken for a year rather than for a mark that names nothing.
const leastYear = 1000

// maxLost is how many marks that name nothing are reported.
const maxLost = 100

// reportLost reports the marks of a sentence of the final answer that name nothing.
func (l *linker) reportLost(sentence int, lost []string) {
	for _, mark := range lost {
		if l.lost++; l.lost > maxLost {
			return
		}
		why := "it is ambiguous which step's sources it counts"
		switch {
		case isStep(mark):
			why = "there is no such step"
		case l.origin >= 0:
			s := &l.t.Steps[l.origin]
			why = fmt.Sprintf("it is not one of the %d sources of step %d", len(s.Sources), s.Number)
		}
		detail := fmt.Sprintf("sentences[%d]: [%s]: %s", sentence, mark, why)
		l.links.Issues = append(l.links.Issues, ibid.Issue{Code: issueMarker, Detail: detail})
	}
}

// linkStep resolves the mark [step 2]: the sentence rests on the step, and on what that cites, or else used.
func (l *linker) linkStep(s *Sentence, step int) {
	number, sources := l.t.Steps[step].Number, l.t.Steps[step].Sources
	s.Steps = append(s.Steps, number)
	cites := slices.ContainsFunc(sources, func(f Source) bool { return f.Cited })
	for k := range sources {
		if f := &sources[k]; len(s.Passages) < maxLinks && (f.Cited || !cites && f.Used) {
			link := l.linkToRow(l.at[f])
			link.Reason, link.Via = ReasonMarker, []int{number}
			s.add(link)
		}
	}
}

// numbered returns the document that a number names, or -1.
func (l *linker) numbered(mark string, number, origin int) int {
	if n, ok := l.byMark[mark]; ok {
		return n
	}
	if origin < 0 {
		return -1
	}
	sources := l.t.Steps[origin].Sources
	for k := range sources {
		if sources[k].Rank == number {
			return l.documentOf(&sources[k])
		}
	}
	for k := range sources {
		if sources[k].Rank != 0 {
			return -1 // ranks are known, and this is not one of them
		}
	}
	if number < 1 || number > len(sources) {
		return -1
	}
	return l.documentOf(&sources[number-1])
}

// brackets matches bracketed text at the beginning; if it is longer than 300 characters, it is not a mark.
var brackets = regexp.MustCompile(`^(?:\[([^\]]{0,300})\]|【([^】]{0,300})】|\(([^)]{0,300})\))`)

// addresses matches the addresses in a sentence.
var addresses = regexp.MustCompile(`https?://[^ \t\r\n)\]>"']+`)

// maxAddress is the maximum length of an address in bytes.
const maxAddress = 8 << 10

// marks returns the bracketed texts of a sentence, split at commas and semicolons, and the addresses in it.
func marks(text string) []string {
	var all []string
	for rest := text; ; {
		open := strings.IndexAny(rest, "[(【")
		if open < 0 {
			break
		}
		inside, size := bracketed(rest[open:])
		rest = rest[open+size:]
		for mark := range strings.FieldsFuncSeq(inside, func(r rune) bool { return r == ',' || r == ';' }) {
			mark = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(mark), "id:"))
			if mark != "" && !strings.HasPrefix(mark, "http") {
				all = append(all, mark)
			}
		}
	}
	for _, url := range addresses.FindAllString(text, -1) {
		if url = strings.TrimRight(url, ".,;:!?"); len(url) <= maxAddress {
			all = append(all, url)
		}
	}
	return all
}

// bracketed returns the text in the brackets that text begins with, and the length of the opening bracket. A number in
// round brackets is not a mark: (1984) is a year, or the number of a list item.
func bracketed(text string) (inside string, size int) {
	_, size = utf8.DecodeRuneInString(text)
	m := brackets.FindStringSubmatch(text)
	if m == nil {
		return "", size
	}
	if _, err := strconv.Atoi(strings.TrimSpace(m[3])); err == nil {
		return "", size
	}
	return m[1] + m[2] + m[3], size
}

// sentences splits an answer into sentences. A mark after a full stop, as in "It closed. [mill] Cranes live there.",
// belongs to the sentence before it, and ends that. Origin is as in linkMarks.
func (l *linker) sentences(text string, origin int) []Sentence {
	var all []Sentence
	for start, end := range prose.Sentences(text) {
		for from := start; ; {
			n := l.markEnd(text[from:end], origin)
			all = append(all, Sentence{Span: ibid.Span{Start: from, End: from + n}, Text: text[from : from+n]})
			if from += n + leadingSpace(text[from+n:end]); from == end {
				break
			}
		}
	}
	return all
}

// markEnd returns the end of the marks that follow the first full stop with marks in a sentence, or the sentence's end.
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
		stop, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text[:at], " \t\r\n\"'”’)*_"))
		if !strings.ContainsRune(".!?。！？…", stop) {
			at++
			continue
		}
		end := l.resolved(text[at:], origin)
		if end == 0 {
			at++
			continue
		}
		at += end
		for gap := leadingSpace(text[at:]); ; gap = leadingSpace(text[at:]) {
			if end = l.resolved(text[at+gap:], origin); end == 0 {
				break
			}
			at += gap + end
		}
		gap := leadingSpace(text[at:])
		if next, _ := utf8.DecodeRuneInString(text[at+gap:]); at == len(text) || gap > 0 && !unicode.IsLower(next) {
			return at // else the full stop is an abbreviation's, or the mark is a word of the sentence
		}
	}
}

// resolved returns the length of the mark that text begins with, or 0 if that names neither a source nor a step.
func (l *linker) resolved(text string, origin int) int {
	if text == "" || text[0] != '[' && !strings.HasPrefix(text, "【") {
		return 0
	}
	inside, size := bracketed(text)
	for _, mark := range marks(text[:size+len(inside)] + "]") {
		if document, step, _ := l.meaning(mark, origin); document >= 0 || step >= 0 {
			return 2*size + len(inside)
		}
	}
	return 0
}

// leadingSpace returns the length of the white space that text begins with.
func leadingSpace(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\r\n")) }
