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

// Answer is a made-up answer, independent of a provider's format: some insert links, numbers or nothing into the text.
type Answer struct {
	Prompt   string   // the prompt that asks for it
	Keywords []string // words in other prompts that ask for it
	Query    string   // the search query
	Text     string
	Sources  []Source
	Claims   []Claim // in text order
}

// Source is a web page, or a file if it has an ID.
type Source struct {
	ID, URL, Title string
	Quote          string // the words that a claim cites, else the first quote
	Site           string // the host name of the original URL, even if URL is a copy
}

// Length returns the length of the quote, in code points.
func (s Source) Length() int { return utf8.RuneCountInString(s.Quote) }

// Tagged returns the URL with the tag of a provider that counts the visits it causes.
func (s Source) Tagged() string {
	if strings.Contains(s.URL, "?") {
		return s.URL + "&utm_source=openai"
	}
	return s.URL + "?utm_source=openai"
}

// Claim is a statement in the text, with its sources.
type Claim struct {
	Start, End int // byte offsets in Answer.Text
	Sources    []int
	Quotes     []string // one for each source
}

// Answers returns the answers, for tests to compare with. The caller may change them.
func Answers() []Answer { return mustRead(answerFiles) }

// choose returns the answer that a prompt asks for; if there is none, fallback, or any answer if fallback is nil.
func choose(answers []Answer, prompt string, fallback *Answer) *Answer {
	lower := strings.ToLower(prompt)
	for i := range answers {
		if slices.ContainsFunc(answers[i].Keywords, func(word string) bool { return strings.Contains(lower, word) }) {
			return &answers[i]
		}
	}
	if fallback != nil {
		return fallback
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(prompt)) // never fails
	return &answers[h.Sum32()%uint32(len(answers))]
}

// pad returns the answer with more text appended, which no source supports.
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

// mustRead reads the answers. They are part of the program, so an error in them is a bug.
func mustRead(files fs.FS) []Answer {
	names, _ := fs.Glob(files, "answers/*.txt") // fails only if the pattern is invalid
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

// readAnswer parses a file: lines of "name: value", an empty line, the text. A claim in the text is written
// {words|1,2}, with the numbers of the source lines. A source is "ID | URL | title | quote", without an ID for a web
// page. It may have several quotes, separated by " / ": 1.2 cites the second quote of source 1.
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
