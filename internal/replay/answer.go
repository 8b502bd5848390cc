package replay

import (
	"cmp"
	"embed"
	"fmt"
	"hash/fnv"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:embed answers/*.txt
var answerFiles embed.FS

// Answer is one answer of ours, before a provider's format changes it: some write links, numbers or nothing into the
// text.
type Answer struct {
	Prompt   string   // asks for it
	Keywords []string // so does any prompt with one of these
	Query    string   // what was searched for
	Text     string
	Sources  []Source
	Claims   []Claim // in the order of the text
}

// Source is a web page, or a file if it has an ID.
type Source struct {
	ID, URL, Title string
	Quote          string // its words: those of the claim that cites it, else the first
	Site           string // the host name of the URL, wherever copies of the page are
}

// Length returns the length of the quote, in code points.
func (s Source) Length() int { return utf8.RuneCountInString(s.Quote) }

// Tagged returns the URL as a provider writes it that counts the visits it causes.
func (s Source) Tagged() string {
	if strings.Contains(s.URL, "?") {
		return s.URL + "&utm_source=openai"
	}
	return s.URL + "?utm_source=openai"
}

// Claim is a statement of the text with the sources it has.
type Claim struct {
	Start, End int // bytes of Answer.Text
	Sources    []int
	Quotes     []string // of each of them
}

// Answers returns the answers: what tests can compare with. They are the caller's.
func Answers() []Answer { return mustRead(answerFiles) }

// choose returns the answer that a prompt asks for; of a prompt that has no answer, the one that says what otherwise
// does, if that is not nil.
func choose(answers []Answer, prompt string, otherwise *Answer) *Answer {
	lower := strings.ToLower(prompt)
	for i := range answers {
		if slices.ContainsFunc(answers[i].Keywords, func(word string) bool { return strings.Contains(lower, word) }) {
			return &answers[i]
		}
	}
	if otherwise != nil {
		return otherwise
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(prompt)) // never fails
	return &answers[h.Sum32()%uint32(len(answers))]
}

// pad returns the answer with more text, which no source supports, behind it.
func (a *Answer) pad(characters int) *Answer {
	missing := characters - utf8.RuneCountInString(a.Text)
	if missing <= 0 {
		return a
	}
	const filler = " Nobody has written about the rest of it yet."
	padded := *a
	padded.Text += strings.Repeat(filler, missing/len(filler)+1)[:missing]
	return &padded
}

// at returns the answer with its sources at other addresses.
func (a *Answer) at(addresses []string) *Answer {
	if len(addresses) == 0 {
		return a
	}
	moved := *a
	moved.Sources = slices.Clone(a.Sources)
	for i, address := range addresses[:min(len(addresses), len(moved.Sources))] {
		moved.Sources[i].URL = address
	}
	return &moved
}

// mustRead reads the answers. They are part of the program, so an error in them is one of ours.
func mustRead(files fs.FS) []Answer {
	names, _ := fs.Glob(files, "answers/*.txt") // it fails only by its pattern
	answers := make([]Answer, 0, len(names))
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		var answer Answer
		if err == nil {
			answer, err = readAnswer(string(data))
		}
		if err != nil {
			panic(fmt.Sprintf("replay: %s: %v", name, err))
		}
		answers = append(answers, answer)
	}
	return answers
}

// readAnswer reads a file: lines of "name: value", an empty line, the text. A claim stands in the text as {words|1,2},
// where the numbers are those of the source lines. A source is "ID | URL | title | quote", without an ID for a web
// page; it may have several quotes, with " / " between them: 1.2 cites the second one of source 1.
func readAnswer(file string) (Answer, error) {
	head, text, ok := strings.Cut(file, "\n\n")
	if !ok {
		return Answer{}, fmt.Errorf("it has no text")
	}
	var a Answer
	var quotes [][]string // of each source
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "prompt":
			a.Prompt = value
		case "keywords":
			a.Keywords = strings.Split(value, ", ")
		case "query":
			a.Query = value
		case "source":
			f := strings.Split(value, " | ")
			if len(f) != 4 {
				return Answer{}, fmt.Errorf("a source has four fields: %s", value)
			}
			_, address, _ := strings.Cut(f[1], "://")
			site, _, _ := strings.Cut(address, "/")
			all := strings.Split(f[3], " / ")
			quotes = append(quotes, all)
			a.Sources = append(a.Sources, Source{strings.TrimSpace(f[0]), f[1], f[2], all[0], site})
		default:
			return Answer{}, fmt.Errorf("unknown line %q", line)
		}
	}
	return a, a.readText(strings.TrimSuffix(text, "\n"), quotes)
}

func (a *Answer) readText(text string, quotes [][]string) error {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{")
		b.WriteString(before)
		if !ok {
			break
		}
		inside, after, _ := strings.Cut(rest, "}")
		words, numbers, _ := strings.Cut(inside, "|")
		claim := Claim{Start: b.Len(), End: b.Len() + len(words)}
		for number := range strings.SplitSeq(numbers, ",") {
			of, which, _ := strings.Cut(number, ".")
			n, err := strconv.Atoi(of)
			if err != nil || n < 1 || n > len(a.Sources) {
				return fmt.Errorf("no source %q of {%s}", number, inside)
			}
			k, err := strconv.Atoi(cmp.Or(which, "1"))
			if err != nil || k < 1 || k > len(quotes[n-1]) {
				return fmt.Errorf("no quote %q of {%s}", number, inside)
			}
			claim.Sources, claim.Quotes = append(claim.Sources, n-1), append(claim.Quotes, quotes[n-1][k-1])
		}
		a.Claims = append(a.Claims, claim)
		b.WriteString(words)
		text = after
	}
	a.Text = b.String()
	return nil
}
