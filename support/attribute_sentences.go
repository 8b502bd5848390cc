package support

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

// minContent is how many words that are not function words a sentence has if it says something.
const minContent = 2

// sentencesOf returns the sentences of an answer, and which of them nothing is looked for. Nil spans: they are not
// known yet.
func sentencesOf(a *ibid.Answer, spans []ibid.Span, citedToo bool) []SentenceSupport {
	if spans == nil {
		for start, end := range prose.Sentences(a.Text) {
			spans = append(spans, ibid.Span{Start: start, End: end})
		}
	}
	var all []SentenceSupport
	covered := newCover(a)
	looked := 0
	for _, span := range spans {
		s := SentenceSupport{Span: span}
		s.Claim = claimOf(a.Text, s.Span)
		s.Cited = covered.count(s.Span)
		s.Skipped = skipReason(a, &s)
		if s.Skipped == "" && s.Cited > 0 && !citedToo {
			s.Skipped = SkipCited
		}
		if s.Skipped == "" {
			if looked++; looked > MaxSentences {
				s.Skipped = SkipLimit
			}
		}
		all = append(all, s)
	}
	return all
}

// claimOf returns a sentence without its final mark.
func claimOf(text string, s ibid.Span) ibid.Span {
	words := strings.TrimRight(text[s.Start:s.End], ".!?。！？｡… \t\r\n")
	if words == "" {
		return s
	}
	return ibid.Span{Start: s.Start, End: s.Start + len(words)}
}

// skipReason says why a sentence is not attributed, whatever it cites; empty: it is.
func skipReason(a *ibid.Answer, s *SentenceSupport) SkipReason {
	words := a.Text[s.Span.Start:s.Span.End]
	switch {
	case !inAnswer(a, s.Span.Start):
		return SkipPart
	case strings.HasPrefix(words, "```"), strings.HasPrefix(words, "~~~"):
		return SkipCode
	case isHeading(a.Text, s.Span):
		return SkipHeading
	case strings.HasSuffix(strings.TrimRight(words, `"'”’)* `), "?"), strings.HasSuffix(words, "？"):
		return SkipQuestion
	case contentWords(shown(words)) < minContent:
		return SkipShort
	case isBoilerplate(words):
		return SkipBoilerplate
	}
	return ""
}

// inAnswer reports whether a place stands in a part of the answer that is one.
func inAnswer(a *ibid.Answer, at int) bool {
	i, _ := slices.BinarySearchFunc(a.Parts, at, func(p ibid.Part, at int) int {
		if p.End <= at {
			return -1
		}
		return 1
	})
	return i >= len(a.Parts) || a.Parts[i].Kind == ibid.AnswerPart
}

// isHeading reports whether a sentence is a heading: after # signs, a line by itself in bold, one that ends with a colon and
// introduces what follows, or in the first row of a table.
func isHeading(text string, s ibid.Span) bool {
	const indent = 16 // bytes before a heading's words on its line
	before := text[max(0, s.Start-indent):s.Start]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	if strings.HasPrefix(strings.TrimLeft(before, " >"), "#") {
		return true
	}
	words := strings.TrimSpace(text[s.Start:s.End])
	after := strings.TrimLeft(text[s.End:], " \t")
	alone := after == "" || after[0] == '\n' || after[0] == '\r'
	bare := strings.TrimRight(words, "*_ ")
	if strings.HasSuffix(bare, ":") || strings.HasSuffix(bare, "：") {
		return alone
	}
	bold := len(words) > 4 && strings.HasPrefix(words, "**") && strings.HasSuffix(words, "**") &&
		!strings.Contains(words[2:len(words)-2], "**")
	return alone && bold && !strings.ContainsAny(words[len(words)-3:], ".!") || isUnderlined(after) ||
		headsTable(text[s.End:])
}

// headsTable reports whether what follows the words of a row is its end, and the line of dashes below the head of a table.
func headsTable(after string) bool {
	const longest = 2000 // bytes of both
	_, rest, _ := strings.Cut(after[:min(len(after), longest)], "\n")
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimSpace(line)
	return strings.Contains(line, "|") && strings.Contains(line, "-") && strings.Trim(line, "|-: \t") == ""
}

// isUnderlined reports whether the next line makes the one before a heading.
func isUnderlined(after string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(after, "\r"), "\n")
	if !ok {
		return false
	}
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimSpace(line)
	return len(line) >= 3 && (strings.Trim(line, "=") == "" || strings.Trim(line, "-") == "")
}

// shown returns a text without its Markdown images and the addresses of its links, which are no words of a sentence.
func shown(words string) string {
	var b strings.Builder
	for {
		n := strings.Index(words, "](")
		if n < 0 {
			return b.String() + words
		}
		end := strings.IndexByte(words[n:], ')')
		if end < 0 {
			return b.String() + words
		}
		before := words[:n]
		if image := strings.LastIndex(before, "!["); image >= 0 && !strings.Contains(before[image:], "]") {
			before = before[:image]
		}
		b.WriteString(before)
		words = words[n+end+1:]
	}
}

// contentWords counts the words of a sentence that are not function words.
func contentWords(words string) int {
	table := english()
	n := 0
	r := reader{text: words}
	for t := (token{}); r.next(&t); {
		if table.weight(t.key) >= weightContent {
			n++
		}
	}
	return n
}

// isBoilerplate reports whether a sentence is about the answer itself, or talks to the reader.
func isBoilerplate(words string) bool {
	head := strings.Map(func(r rune) rune {
		if r == '’' {
			return '\''
		}
		return unicode.ToLower(r)
	}, firstBytes(strings.TrimLeft(words, "*_>-• "), 80))
	for _, opening := range [...]string{
		"i hope this", "hope this helps", "hope that helps", "let me know if", "feel free to", "please let me know", "if you have any",
		"if you need", "if you'd like", "if you would like", "would you like", "here is a ", "here is the ", "here is an ", "here's a ",
		"here's the ", "here's what", "here are ", "below is ", "below are ", "sure,", "sure!", "certainly", "of course,", "of course!",
		"great question", "i'm sorry", "i am sorry", "sorry,", "i apologize", "as an ai", "i'm an ai", "as a language model", "i cannot ",
		"i can't ", "i couldn't find", "i could not find", "i don't have", "i do not have", "based on the provided", "based on the documents",
		"according to the provided", "the provided documents do not", "the sources do not", "note that this answer", "thank you for",
	} {
		if strings.HasPrefix(head, opening) {
			return !strings.HasPrefix(opening, "based on") && !strings.HasPrefix(opening, "according") ||
				contentWords(words) <= 4
		}
	}
	return false
}

func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cover counts the citations of a sentence.
type cover struct{ starts, ends []int } // of what they stand for, each sorted

func newCover(a *ibid.Answer) *cover {
	c := &cover{}
	for i := range a.Citations {
		x := &a.Citations[i]
		if !x.Placed() {
			continue
		}
		span := x.Claim
		if span.Len() <= 0 {
			span = x.Span
		}
		c.starts, c.ends = append(c.starts, span.Start), append(c.ends, span.End)
	}
	slices.Sort(c.starts)
	slices.Sort(c.ends)
	return c
}

// count returns how many citations stand for words of a sentence, or right behind it: of those that begin before its end, all but those
// that end before it.
func (c *cover) count(s ibid.Span) int {
	begun, _ := slices.BinarySearch(c.starts, s.End+1)
	ended, _ := slices.BinarySearch(c.ends, s.Start+1)
	return begun - ended
}
