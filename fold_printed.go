package ibid

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/wire"
)

// A model that was given nothing may still say what its marks refer to: by the definitions of footnotes that it wrote,
// or by a list under a heading such as "Sources:". Then these are the sources.

// usePrinted reads the marks of a whole text by the list that the model printed in it, unless they have another list or
// refer to none of its sources.
func (c *candidate) usePrinted() {
	if c.marks != nil || len(c.fold.sources.list) > c.fold.former {
		return
	}
	text := c.text.String()
	printed := text[c.marked:]
	if !c.fold.complete { // the last address may be cut off, and then it is another one
		printed = printed[:strings.LastIndexByte(printed, '\n')+1]
	}
	var sources []wire.Source
	var calls []called
	markers := wire.Markers{Names: true}
	for _, e := range printedSources(printed) {
		ref := wire.Ref{}
		if e.url != "" {
			ref.Source = c.fold.uniqueKey("printed:" + strconv.Itoa(len(sources)))
			sources = append(sources, wire.Source{Key: ref.Source, Kind: string(Web), Title: e.title, URL: e.url})
		}
		markers.Refs = append(markers.Refs, ref)
		calls = append(calls, called{label: e.label})
	}
	if len(sources) == 0 {
		return
	}
	list := newMarkList(&markers, calls, false)
	refers := func(i int) bool { return markers.Refs[i].Source != "" }
	probe := marks{markList: list, from: c.marked}
	probe.restart()
	for {
		found, ok := probe.next(text, true)
		if !ok {
			return
		}
		if slices.ContainsFunc(found.refs, refers) {
			break
		}
	}
	for i := range sources {
		c.fold.sources.add(&sources[i])
	}
	c.useMarks(list)
}

// printedSource is an entry of a list that a model printed. Without a URL it is no source that others can find, such as
// a footnote that explains something.
type printedSource struct{ label, title, url string }

// maxPrinted is how many entries of a printed list are read.
const maxPrinted = 1000

// printedSources returns the definitions of footnotes in a text, and the entries with a number or name of lists of
// sources.
func printedSources(text string) (list []printedSource) {
	if !strings.Contains(text, "://") {
		return nil
	}
	var fence markdown.Fence
	within := false
	for line := range strings.Lines(text) {
		if fence.Line(line) || len(list) == maxPrinted {
			continue
		}
		line = strings.TrimRight(line, "\r\n")
		m := entryMark().FindStringSubmatch(line)
		switch {
		case strings.TrimSpace(line) == "":
		case m != nil && (within || isDefinition(m[0])):
			label, rest := entryLabel(m), line[len(m[0]):]
			if label == "" {
				continue
			}
			e := printedSource{label: label}
			e.title, e.url = readPrinted(rest)
			list = append(list, e)
		case within && isEntry(line):
		default:
			within = isListHeading(line)
		}
	}
	return list
}

// readPrinted reads the title and the address of a source from an entry of a list. It returns no address if there is
// none, or if the entry is a sentence with an address in it.
func readPrinted(entry string) (title, url string) {
	at := strings.Index(entry, "https://")
	if i := strings.Index(entry, "http://"); at < 0 || i >= 0 && i < at {
		at = i
	}
	if at < 0 {
		return "", ""
	}
	before, after := entry[:at], entry[at:]
	end := strings.IndexAny(after, " \t\r\n<>\"|")
	if end < 0 {
		end = len(after)
	}
	url, after = after[:end], after[end:]
	if words, ok := strings.CutSuffix(before, "]("); ok { // [title](address)
		if i := strings.IndexByte(url, ')'); i >= 0 {
			url, after = url[:i], url[i+1:]+after
		}
		before = strings.Replace(words, "[", "", 1)
	}
	url = strings.TrimRight(url, ".,;:!?*_]")
	for strings.HasSuffix(url, ")") && strings.Count(url, ")") > strings.Count(url, "(") {
		url = strings.TrimRight(url[:len(url)-1], ".,;:!?*_]")
	}
	const (
		mostBefore = 40 // words
		mostAfter  = 8
		fewest     = 4 // of a sentence
	)
	before, after = printedTitle(before), printedTitle(after)
	words := strings.Fields(before)
	if len(words) > mostBefore || len(strings.Fields(after)) > mostAfter && before != "" {
		return "", ""
	}
	if n := len(words); n > 0 && leadsToAddress[strings.ToLower(strings.Trim(words[n-1], ".:"))] {
		if n >= fewest {
			return "", ""
		}
		before = ""
	}
	if before == "" && len(strings.Fields(after)) <= mostAfter {
		before = after
	}
	return before, url
}

// leadsToAddress are words that precede an address in a sentence.
var leadsToAddress = headings(`see|see also|at|from|in|on|via|under|visit|check|here|link|url|source|available|cf|siehe|
vgl|unter|von|auf|quelle|voir|sur|ver|en|vedi|zie|se|参见|见`)

// printedTitle removes markup and punctuation around a title.
func printedTitle(s string) string {
	s = strings.NewReplacer("**", "", "*", "", "`", "").Replace(s)
	return strings.Join(strings.Fields(strings.Trim(s, " \t\r\n.,;:()[]<>–—-|_\"“”")), " ")
}
