package ibid

import (
	"bytes"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/wire"
)

// Models are taught marks and tags that the program around them should have taken out of the text, and sometimes did
// not. None is for readers: complete ones are cut from the text and reported, and become citations if what they name is
// known. What only resembles them, or is in code, stays. Reasoning in the text becomes an activity.

// leak is the form of a mark or tag: a beginning, bytes that may follow, and an end.
type leak struct {
	kind   leakKind
	prefix string
	inside string // bytes that may be between; empty means all
	end    string
}

// leakKind is what is done with a leak besides cutting it.
type leakKind uint8

const (
	otherLeak leakKind = iota
	fileLeak           // it has the id of a file
	openLeak           // the words that follow, up to a closeLeak, are cited
	closeLeak
	listLeak     // it has numbers of what the model was given
	openListLeak // likewise; the words that follow, up to a closeLeak, are cited
)

const (
	numberBytes = "0123456789"
	wordBytes   = numberBytes + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"
)

var leaks = [...]leak{
	{fileLeak, "<|file-", wordBytes, "|>"},                    // the id of a file that was searched
	{openLeak, `<cite index="`, numberBytes + "-:, ", `">`},   // Claude
	{openLeak, `<cite index=\"`, numberBytes + "-:, ", `\">`}, // the same in JSON
	{closeLeak, `</cite>`, "", ""},                            //
	{otherLeak, "<grok:render", "", "</grok:render>"},         // Grok
	{otherLeak, "{render_inline_citation", "", "}"},           //
	{otherLeak, "[cite_start]", "", ""},                       // Gemini
	{otherLeak, "[cite_end]", "", ""},                         //
	{otherLeak, "[cite: ", numberBytes + ", -", "]"},          //
	{listLeak, fromZero, numberBytes, "$$"},                   // RAGFlow
	{listLeak, "<ref>", numberBytes + ", []", "</ref>"},       // several programs
	{openListLeak, "<co: ", numberBytes + ", ", ">"},          // Cohere
	{closeLeak, "</co: ", numberBytes + ", ", ">"},            //
	{otherLeak, `\ue200`, "", `\ue201`},                       // ChatGPT, its private characters spelled out
}

// fromZero begins RAGFlow's marks, whose numbers count from 0 in a list without numbers of its own.
const fromZero = "##"

// maxLeak is the maximum length of a leak in bytes. Known ones are far shorter.
const maxLeak = 1000

// match returns the length of the leak at the beginning of s, 0 if there is none. Partial means that more text may
// complete it.
func (l *leak) match(s []byte) (n int, partial bool) {
	if len(s) < len(l.prefix) {
		return 0, strings.HasPrefix(l.prefix, string(s))
	}
	if !bytes.HasPrefix(s, []byte(l.prefix)) {
		return 0, false
	}
	i := len(l.prefix)
	for i < min(len(s), maxLeak) && !bytes.HasPrefix(s[i:], []byte(l.end)) &&
		(l.inside == "" || strings.IndexByte(l.inside, s[i]) >= 0) {
		i++
	}
	switch rest := s[i:]; {
	case bytes.HasPrefix(rest, []byte(l.end)):
		return i + len(l.end), false
	default:
		return 0, i < maxLeak && len(rest) < len(l.end) && strings.HasPrefix(l.end, string(rest))
	}
}

// citeturn is how ChatGPT's marks begin once a layer below has dropped their private characters.
const citeturn = "citeturn"

// matchTurns returns the length of citeturn0search3turn1view0 at the beginning of s. It has no end mark.
func matchTurns(s []byte) (n int, partial bool) {
	if len(s) < len(citeturn) {
		return 0, strings.HasPrefix(citeturn, string(s))
	}
	if !bytes.HasPrefix(s, []byte(citeturn)) {
		return 0, false
	}
	i := len("cite")
	for {
		rest := s[i:]
		if len(rest) < len("turn") {
			return n, strings.HasPrefix("turn", string(rest))
		}
		if !bytes.HasPrefix(rest, []byte("turn")) {
			return n, false
		}
		k := len("turn")
		for _, run := range [...]func(byte) bool{isDigit, isLower, isDigit} {
			from := k
			for k < len(rest) && k < maxLeak && run(rest[k]) {
				k++
			}
			if k == len(rest) {
				return n, true
			}
			if k == from {
				return n, false
			}
		}
		i += k
		if n = i; i > maxLeak {
			return n, false
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// thoughtTags are the tags around the reasoning that some models write into their text.
var thoughtTags = [...]string{"think", "thinking", "thought", "reasoning"}

// leakBytes are the bytes that leaks and tags of thoughts begin with, and the one letter that citeturn has once: most
// texts have none of these, or few.
var leakBytes = [256]bool{'<': true, '[': true, '{': true, '\\': true, '#': true, turnByte: true}

// turnByte is that letter, and turnLetter is where it is.
const (
	turnByte   = 'u'
	turnLetter = len("citet")
)

// leakStart returns where in s the first leak or tag begins, or may begin if more text follows; -1 if there is none.
func leakStart(s []byte) int {
	const short = 64 // up to which a loop is faster than a search for each byte
	if len(s) > short && bytes.IndexByte(s, '<') < 0 && bytes.IndexByte(s, '[') < 0 && bytes.IndexByte(s, '{') < 0 &&
		bytes.IndexByte(s, '\\') < 0 && bytes.IndexByte(s, '#') < 0 {
		return turnStart(s)
	}
	for i, b := range s {
		switch {
		case !leakBytes[b]:
		case b == turnByte:
			if isTurn(s, i) {
				return i - turnLetter
			}
		case mayLeak(s[i:]):
			return i
		}
	}
	return turnEnd(s)
}

// turnStart is leakStart for citeturn alone.
func turnStart(s []byte) int {
	for at := 0; ; at++ {
		n := bytes.IndexByte(s[at:], turnByte)
		if n < 0 {
			return turnEnd(s)
		}
		if at += n; isTurn(s, at) {
			return at - turnLetter
		}
	}
}

// isTurn reports whether the letter at i is that of citeturn.
func isTurn(s []byte, i int) bool {
	return i >= turnLetter && bytes.HasPrefix(s[i-turnLetter:], []byte(citeturn))
}

// turnEnd returns where in s a beginning of citeturn begins that ends with s, or -1.
func turnEnd(s []byte) int {
	if len(s) == 0 || !turnBytes[s[len(s)-1]] {
		return -1
	}
	for n := range min(len(s), len(citeturn)-1) {
		if s[len(s)-1] != citeturn[n] {
			continue
		}
		if from := len(s) - n - 1; string(s[from:]) == citeturn[:n+1] && !endsInLetter(s[:from]) {
			return from
		}
	}
	return -1
}

// turnBytes are the bytes that the beginnings of citeturn end with.
var turnBytes = [256]bool{'c': true, 'i': true, 't': true, 'e': true, turnByte: true, 'r': true}

func endsInLetter(s []byte) bool {
	return len(s) > 0 && (s[len(s)-1] >= utf8.RuneSelf || isASCIIAlnum(rune(s[len(s)-1])))
}

// mayLeak reports whether a leak or a tag of a thought is at the beginning of s, as far as s goes.
func mayLeak(s []byte) bool {
	for i := range leaks {
		if n, partial := leaks[i].match(s); n > 0 || partial {
			return true
		}
	}
	name, _, partial := thoughtTag(s)
	return name != "" || partial
}

// thoughtTag returns the name of the tag at the beginning of s, with its length.
func thoughtTag(s []byte) (name string, n int, partial bool) {
	if len(s) == 0 || s[0] != '<' {
		return "", 0, false
	}
	for _, name := range thoughtTags {
		for _, tag := range [...]string{"<" + name + ">", "</" + name + ">"} {
			switch {
			case len(s) < len(tag):
				partial = partial || tag[:len(s)] == string(s)
			case string(s[:len(tag)]) == tag:
				return name, len(tag), false
			}
		}
	}
	return "", 0, partial
}

// leaking is the state of a candidate about leaks.
type leaking struct {
	thought  string // the tag of the thought that the text is in; empty if in none
	thoughts int    // thoughts so far
	skip     bool   // white space after a thought is cut with it
	code     codeState
	open     []leakedCite // tags that are not closed
	found    []leakedCite // marks and tags that may be resolved
}

// leaks returns the state of a candidate whose text may have leaks.
func (c *candidate) leaks() *leaking {
	if c.leaking == nil {
		c.leaking = &leaking{}
	}
	return c.leaking
}

// leakedCite is a place in a part, in bytes of the text as it was sent, that a leak cites something for.
type leakedCite struct {
	part       wire.Part
	start, end int
	names      string
	kind       leakKind
}

// leakText handles the leak at the beginning of s, and returns how much of s is done. It returns 0 if more text is
// needed to decide.
func (c *candidate) leakText(s []byte) int {
	if name, n, partial := thoughtTag(s); n > 0 || partial {
		if n == 0 {
			return 0
		}
		if c.thoughtText(name, s[1] == '/') {
			c.extendCut(s[:n])
			return n
		}
		c.append(s[:1])
		return 1
	}
	if n, partial := matchTurns(s); n > 0 || partial {
		switch {
		case partial:
			return 0
		case endsInLetter([]byte(c.text.String())):
			c.append(s[:n])
			return n
		}
		c.cutLeak(&leak{}, s[:n])
		return n
	}
	for i := range leaks {
		l := &leaks[i]
		n, partial := l.match(s)
		if partial {
			return 0
		}
		if n == 0 || l.kind == closeLeak && len(c.leaks().open) == 0 {
			continue
		}
		if c.inCode() {
			break
		}
		c.cutLeak(l, s[:n])
		return n
	}
	c.append(s[:1])
	return 1
}

// cutLeak cuts a leak from the text.
func (c *candidate) cutLeak(l *leak, s []byte) {
	part := &c.parts[len(c.parts)-1]
	at := c.sent(part)
	c.addCut(cut{at: c.text.Len(), from: part.from, text: string(s)})
	c.fold.issue("leaked-markup", string(s))
	names := string(s[len(l.prefix) : len(s)-len(l.end)])
	switch k := c.leaks(); l.kind {
	case fileLeak:
		c.addLeaked(leakedCite{part.key, at, at, "file-" + names, l.kind})
	case listLeak:
		if names = strings.Trim(names, "[] "); l.prefix == fromZero {
			names = fromZero + names
		}
		c.addLeaked(leakedCite{part.key, at, at, names, l.kind})
	case openLeak, openListLeak:
		if len(k.open) < c.fold.limits.Items && c.fold.keep(entrySize+len(s)) {
			k.open = append(k.open, leakedCite{part.key, at + len(s), 0, names, l.kind})
		}
	case closeLeak:
		open := k.open[len(k.open)-1]
		if k.open = k.open[:len(k.open)-1]; open.part == part.key {
			open.end = at
			c.addLeaked(open)
		}
	case otherLeak:
	}
}

// sent returns how many bytes of a part, the last one, came so far, with those that were cut.
func (c *candidate) sent(part *foldPart) int {
	n := c.text.Len() - part.from
	first := sort.Search(len(c.cuts), func(i int) bool { return c.cuts[i].from >= part.from })
	if first < len(c.cuts) {
		last := &c.cuts[len(c.cuts)-1]
		n += last.before[wire.Bytes] + last.size[wire.Bytes] - c.cuts[first].before[wire.Bytes]
	}
	return n
}

// addLeaked adds a leak that may be resolved, now or once all sources are known.
func (c *candidate) addLeaked(l leakedCite) {
	k := c.leaks()
	if len(k.found) < c.fold.limits.Citations && !c.resolveLeak(&l) && c.fold.keep(entrySize+len(l.names)) {
		k.found = append(k.found, l)
	}
}

// resolveLeaks resolves what is left, now that all sources are known.
func (c *candidate) resolveLeaks() {
	k := c.leaking
	if k == nil {
		return
	}
	for i := range k.found {
		c.resolveLeak(&k.found[i])
	}
	k.found = nil
}

// resolveLeak turns a leak into a citation if what it names is known.
func (c *candidate) resolveLeak(l *leakedCite) bool {
	if l.kind == listLeak || l.kind == openListLeak {
		return c.resolveNumbers(l)
	}
	var refs []wire.Ref
	for _, key := range c.leakKeys(l) {
		if _, ok := c.fold.sources.keys[key]; !ok {
			return false
		}
		if !slices.ContainsFunc(refs, func(r wire.Ref) bool { return r.Source == key }) {
			refs = append(refs, wire.Ref{Source: key})
		}
	}
	return c.citeLeak(l, refs)
}

// citeLeak adds the citation that a leak was.
func (c *candidate) citeLeak(l *leakedCite, refs []wire.Ref) bool {
	if len(refs) == 0 {
		return false
	}
	cite := wire.Cite{Part: l.part, Unit: wire.Bytes, Start: l.start, End: l.end, Origin: wire.OriginMarker, Refs: refs}
	if l.start == l.end {
		cite.Covers = wire.Point
	}
	c.addCite(&cite)
	return true
}

// resolveNumbers resolves a leak by the list that marks refer to.
func (c *candidate) resolveNumbers(l *leakedCite) bool {
	c.useGiven()
	if c.marks == nil || c.marks.given() && c.fold.cited {
		return false
	}
	names, counts := strings.CutPrefix(l.names, fromZero)
	if counts && c.marks.numbers == nil {
		names = strconv.Itoa(number(names) + 1)
	}
	sense, ok := c.marks.read(names)
	var refs []wire.Ref
	for _, i := range sense.refs {
		refs = append(refs, c.marks.Refs[i])
	}
	if !ok || len(refs) == 0 {
		return false
	}
	if c.marks.given() {
		c.fold.addGiven()
	}
	return c.citeLeak(l, refs)
}

// leakKeys returns the keys of the sources that a leak names: the id of a file, or the positions of documents in the
// request and of sentences in them, as in 0-2,1-1. Positions mean nothing if the model was given both documents and
// search results, or searched the web.
func (c *candidate) leakKeys(l *leakedCite) []string {
	if l.kind == fileLeak {
		return []string{c.fold.uniqueKey(l.names)}
	}
	prefix := ""
	for key := range c.fold.sources.keys {
		head, _, ok := strings.Cut(strings.TrimPrefix(key, c.fold.keyPrefix), ":")
		if !ok || head != "doc" && head != "sr" || prefix != "" && head != prefix {
			return nil
		}
		prefix = head
	}
	var keys []string
	for item := range strings.SplitSeq(l.names, ",") {
		position, _, _ := strings.Cut(strings.TrimSpace(item), "-")
		if keys = append(keys, c.fold.uniqueKey(prefix+":"+position)); len(keys) > c.fold.limits.Items {
			return nil
		}
	}
	return keys
}

// thoughtText handles the tag of a thought, and reports whether it is one: the first thought is what its part begins
// with, and its opening tag may be missing, since some servers put it into the prompt.
func (c *candidate) thoughtText(name string, closing bool) bool {
	k := c.leaks()
	part := len(c.parts) - 1
	text := c.text.String()[c.parts[part].from:]
	switch {
	case closing && name != thoughtTags[0], c.inCode():
		return false
	case closing:
		c.makeThought(part)
		k.skip = true
		k.thoughts++
		return true
	}
	blank := strings.TrimSpace(text) == ""
	if !blank && (k.thoughts == 0 || !strings.HasSuffix(strings.TrimRight(text, " \t"), "\n")) {
		return false
	}
	k.thought = name
	return true
}

// makeThought turns the text of the last part so far into reasoning.
func (c *candidate) makeThought(i int) {
	part := &c.parts[i]
	text := c.text.String()[part.from:]
	if text == "" {
		return
	}
	for k := range c.cites {
		if cite := &c.cites[k]; cite.Origin == wire.OriginMarker && cite.Part.Message == part.key.Message &&
			cite.span.Start >= part.from {
			c.withdraw(cite.Key)
		}
	}
	c.addReasoning(part.key, []byte(text))
	thought := sizeOfText(text)
	for _, k := range c.cuts {
		if k.from == part.from {
			for u := range thought {
				thought[u] += k.size[u]
			}
		}
	}
	c.replacePart(i, "", []cut{{size: thought}})
}

// thoughtPiece adds the beginning of s to the thought that the text is in, and returns how much of s is done; the rest
// may be the beginning of its end.
func (c *candidate) thoughtPiece(s []byte) int {
	k := c.leaks()
	end := "</" + k.thought + ">"
	key := c.parts[len(c.parts)-1].key
	if n := bytes.Index(s, []byte(end)); n >= 0 {
		if n > 0 {
			c.addReasoning(key, s[:n])
		}
		c.extendCut(s[:n+len(end)])
		k.thought, k.skip = "", true
		k.thoughts++
		return n + len(end)
	}
	n := len(s)
	for i := min(len(end)-1, len(s)); i > 0; i-- {
		if strings.HasPrefix(end, string(s[len(s)-i:])) {
			n -= i
			break
		}
	}
	if n > 0 {
		c.addReasoning(key, s[:n])
		c.extendCut(s[:n])
	}
	return n
}

// beginsThought reports whether a part that begins with s begins with a thought whose opening tag is missing.
func beginsThought(s []byte) bool {
	end := bytes.Index(s, []byte("</"+thoughtTags[0]+">"))
	if end < 0 || bytes.HasPrefix(bytes.TrimSpace(s), []byte("<"+thoughtTags[0]+">")) {
		return false
	}
	var code codeState
	code.advance(string(s[:end]))
	return !code.in()
}

// extendCut cuts s from the text, as one cut with what was cut at the same place before.
func (c *candidate) extendCut(s []byte) {
	part := &c.parts[len(c.parts)-1]
	size := sizeOfText(string(s))
	if n := len(c.cuts); n > 0 && c.cuts[n-1].at == c.text.Len() && c.cuts[n-1].from == part.from &&
		c.cuts[n-1].text == "" {
		for u := range size {
			c.cuts[n-1].size[u] += size[u]
		}
		return
	}
	c.addCut(cut{at: c.text.Len(), from: part.from, size: size})
}

// sizeOfText returns the length of a text by [wire.Unit].
func sizeOfText(s string) (size [3]int) {
	o := NewOffsets(s)
	_, points := o.In(CodePoint, Span{0, len(s)})
	_, utf16 := o.In(UTF16, Span{0, len(s)})
	return [3]int{wire.Bytes: len(s), wire.CodePoints: points, wire.UTF16: utf16}
}

// inCode reports whether the text so far ends in code, which may show leaks and tags.
func (c *candidate) inCode() bool {
	code := &c.leaks().code
	code.advance(c.text.String())
	return code.in()
}

// codeState tells whether a growing markdown text ends in code. It reads the text once.
type codeState struct {
	at    int
	fence string // what began the fenced block, or empty
	json  bool   // the fenced block is all of the answer so far, and JSON: a structured output, which shows no tags
	run   int    // length of the run of backticks that began a code span, or 0
}

func (k *codeState) in() bool { return k.fence != "" && !k.json || k.run > 0 }

func (k *codeState) advance(text string) {
	for k.at < len(text) {
		rest := text[k.at:]
		n := strings.IndexAny(rest, "`~\n")
		if n < 0 {
			k.at = len(text)
			return
		}
		k.at += n
		rest = rest[n:]
		if rest[0] == '\n' {
			if k.at++; k.fence == "" && strings.HasPrefix(text[k.at:], "\n") {
				k.run = 0
			}
			continue
		}
		run := len(rest) - len(strings.TrimLeft(rest, rest[:1]))
		line := strings.LastIndexByte(text[max(0, k.at-4):k.at], '\n') + max(0, k.at-4) + 1
		if k.at < 4 && !strings.Contains(text[:k.at], "\n") {
			line = 0
		}
		fenced := run >= 3 && strings.Trim(text[line:k.at], " ") == "" && k.at-line <= 3
		switch {
		case fenced && k.fence == "" && k.run == 0:
			k.fence = rest[:run]
			info, _, _ := strings.Cut(rest[run:], "\n")
			k.json = strings.TrimSpace(text[:k.at]) == "" && strings.EqualFold(strings.TrimSpace(info), "json")
		case fenced && k.fence != "" && rest[0] == k.fence[0] && run >= len(k.fence):
			k.fence = ""
		case k.fence != "" || rest[0] == '~':
		case k.run == 0:
			k.run = run
		case k.run == run:
			k.run = 0
		}
		k.at += run
	}
}
