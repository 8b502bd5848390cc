package snapshot

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// view is a text to search in: a whole text, or the pieces of one that are not set apart.
type view struct {
	text    string
	blocks  []Block // of text; nil if unknown
	pieces  []piece // of another text; nil if text is the whole
	of      string  // the whole text
	reduced [2]func() *reduction
}

// piece is a part of a text in a view of it.
type piece struct{ at, origin int } // where it begins in the view, and in the text

func newView(text string, blocks []Block, pieces []piece, comma bool) *view {
	v := &view{text: text, blocks: blocks, pieces: pieces, of: text}
	for i := range v.reduced {
		v.reduced[i] = sync.OnceValue(func() *reduction {
			o := reduceOptions{fold: i == 1, comma: comma}
			if blocks != nil {
				o.borders = v.begins
			}
			return reduce(text, o)
		})
	}
	return v
}

// flow returns the view of the text without the blocks that are set apart, or nil if there are none.
func (t *Text) flow(comma bool) *view {
	marked := t.hasMarkup()
	if !marked && !slices.ContainsFunc(t.Blocks, func(b Block) bool { return b.Apart }) {
		return nil
	}
	var out strings.Builder
	var blocks []Block
	var pieces []piece
	for _, b := range t.Blocks {
		if b.Apart {
			continue
		}
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		start, at := out.Len(), b.Span.Start
		if marked {
			for _, place := range sourceMarkup.FindAllStringIndex(t.Content[b.Span.Start:b.Span.End], -1) {
				pieces = append(pieces, piece{out.Len(), at})
				out.WriteString(t.Content[at : b.Span.Start+place[0]])
				at = b.Span.Start + place[1]
			}
		}
		pieces = append(pieces, piece{out.Len(), at})
		out.WriteString(t.Content[at:b.Span.End])
		b.Span = ibid.Span{Start: start, End: out.Len()}
		blocks = append(blocks, b)
	}
	v := newView(out.String(), blocks, pieces, comma)
	v.of = t.Content
	return v
}

// sourceMarkup matches what the source of a page has beside its words: the brackets and destinations of links and
// images in Markdown, links, templates and references in wikitext, notes in reStructuredText, times of subtitles.
var sourceMarkup = regexp.MustCompile(`!\[[^\[\]\n]*\]\([^()\s]*(?: "[^"\n]*")?\)|` +
	`\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?: "[^"\n]*")?\)|<ref[^<>]*(?:/>|>[^<]*</ref>)|` +
	`\[\[(?:[^\[\]|\n]*\|)?|\]\]|\{\{(?:[^{}|\n]*\|)?|\}\}|\[#?\w{1,12}\]_|\[|` +
	`(?:\b\d+ )?(?:\d+:)?\d\d:\d\d[.,]\d{3} --> (?:\d+:)?\d\d:\d\d[.,]\d{3}\b`)

// hasMarkup reports whether a text is the source of a page, which readers see without its markup.
func (t *Text) hasMarkup() bool {
	switch t.MediaType {
	case typeMarkdown, typePlain, "text/x-wiki", "text/x-rst", "text/vtt", "application/x-subrip":
		return t.Profile != TextProfile1 && sourceMarkup.MatchString(t.Content)
	}
	return false
}

// blockAt returns the index of the block that has an offset, or the one before it; -1 if there is none.
func (v *view) blockAt(at int) int {
	i, found := slices.BinarySearchFunc(v.blocks, at, func(b Block, at int) int { return b.Span.Start - at })
	if !found {
		i--
	}
	return i
}

// begins reports whether a block begins at an offset.
func (v *view) begins(at int) bool {
	i := v.blockAt(at)
	return i >= 0 && v.blocks[i].Span.Start == at
}

// origin returns the offset in the whole text of one in the view, of a place that ends there if end is set.
func (v *view) origin(at int, end bool) int {
	if v.pieces == nil {
		return at
	}
	i, found := slices.BinarySearchFunc(v.pieces, at, func(p piece, at int) int { return p.at - at })
	if !found || end && i > 0 {
		i--
	}
	return v.pieces[i].origin + at - v.pieces[i].at
}

// place returns the place of a hit in the whole text, in code points.
func (v *view) place(h hit) Match {
	from, to := v.origin(h.start, false), v.origin(h.end, true)
	start := utf8.RuneCountInString(v.of[:from])
	return Match{Start: start, End: start + utf8.RuneCountInString(v.of[from:to])}
}

// needle is a reduced quote.
type needle struct {
	out    []byte
	folded bool
	shout  bool // the quote is in capitals; otherwise a folded needle finds only capitals
}

// needles returns the forms in which a quote is searched for: as it is; with digits after a space as another number;
// with its first letter in the other case; and in any case, if the quote or the text is in capitals.
func needles(quote string, comma bool) []needle {
	plain := reduce(quote, reduceOptions{comma: comma})
	if len(plain.out) == 0 {
		return nil
	}
	list := []needle{{out: plain.out}}
	if apart := reduce(quote, reduceOptions{comma: comma, apart: true}); !bytes.Equal(apart.out, plain.out) {
		list = append(list, needle{out: apart.out})
	}
	if first, n := utf8.DecodeRune(plain.out); unicode.IsLetter(first) {
		other := unicode.ToLower(first)
		if other == first {
			other = unicode.ToUpper(first)
		}
		if other != first {
			list = append(list, needle{out: utf8.AppendRune(nil, other)})
			last := &list[len(list)-1]
			last.out = append(last.out, plain.out[n:]...)
		}
	}
	if countWords(quote) >= shoutWords {
		list = append(list, needle{
			out: reduce(quote, reduceOptions{comma: comma, fold: true}).out, folded: true, shout: isShout(quote),
		})
	}
	return list
}

// shoutWords is how many words in capitals are taken for a heading in capitals rather than for names and units.
const shoutWords = 4

// isShout reports whether all letters of a text are capitals.
func isShout(s string) bool {
	return !strings.ContainsFunc(s, unicode.IsLower) && strings.ContainsFunc(s, unicode.IsUpper)
}

// hits calls yield with the hits of a needle in text[from:to], in order.
func (v *view) hits(n *needle, from, to int, yield func(h hit) bool) {
	r := v.reduced[0]()
	if n.folded {
		r = v.reduced[1]()
	}
	at, end := 0, len(r.out)
	if from > 0 {
		at = r.before(from)
	}
	if to < len(v.text) {
		end = r.before(to)
	}
	for at < end {
		i := bytes.Index(r.out[at:end], n.out)
		if i < 0 {
			return
		}
		start := at + i
		at = start + len(n.out)
		h := r.span(start, at)
		if n.folded && !n.shout && !isShout(v.text[h.start:h.end]) {
			continue
		}
		if !yield(h) {
			return
		}
	}
}

// reformatted searches for a quote in another form.
func (f *finder) reformatted(quote string, comma bool) (Match, bool) {
	for _, n := range needles(quote, comma) {
		b := best{finder: f}
		f.hits(&n, 0, len(f.text), func(h hit) bool {
			if f.isWhole(h, quote) && !f.isAsked(h, quote) {
				b.add(h)
			}
			return true
		})
		if m, ok := b.match(MatchReformatted); ok {
			m.Text = quote
			return m, true
		}
	}
	return Match{}, false
}

// isAsked reports whether the text asks what the quote states.
func (f *finder) isAsked(h hit, quote string) bool {
	next, _ := utf8.DecodeRuneInString(f.text[h.end:])
	last, _ := utf8.DecodeLastRuneInString(quote)
	return isQuestion(next) && (last == '.' || last == '!' || last == '。' || last == '！')
}

// decimalCommas are the languages whose decimal sign is a comma.
var decimalCommas = wordSet("de fr es it pt nl da sv nb nn no fi pl cs sk hu ro ru uk el tr hr sl sr bg lt lv et is id")

// language returns the primary subtag of a language tag, in lower case.
func language(tag string) string {
	tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
	tag, _, _ = strings.Cut(tag, "_")
	return tag
}

// titles returns the title of a text, its parts (the name of the site may be one), and its headings.
func titles(t *Text) []string {
	var all []string
	add := func(title string) {
		if title = strings.TrimSpace(title); title != "" && !slices.Contains(all, title) {
			all = append(all, title)
		}
	}
	const most = 200
	for _, b := range t.Blocks {
		if b.Kind == Heading && b.Span.Len() <= maxHeading && len(all) < most {
			add(t.Content[b.Span.Start:b.Span.End])
		}
	}
	add(Normalize(t.Title))
	for _, part := range strings.FieldsFunc(Normalize(t.Title), func(r rune) bool {
		return strings.ContainsRune("|–—·•»", r)
	}) {
		add(part)
	}
	return all
}

// setFurniture sets the blocks of a PDF apart that are the furniture of its pages: their numbers, and the lines at the
// top and the bottom that repeat the title or those of another page.
func (t *Text) setFurniture() {
	edges := map[string]int{} // in how many places a line is at an edge of a page
	name := func(b *Block) string {
		return strings.Join(strings.FieldsFunc(strings.ToLower(t.Content[b.Span.Start:b.Span.End]), func(r rune) bool {
			return !unicode.IsLetter(r)
		}), " ")
	}
	const longest = 120
	isEdge := func(i int) bool {
		return i == 0 || i == len(t.Blocks)-1 || t.Blocks[i-1].Page != t.Blocks[i].Page ||
			t.Blocks[i+1].Page != t.Blocks[i].Page
	}
	edge := func(i int) bool { // the last or first two blocks of a page
		return isEdge(i) || i > 0 && isEdge(i-1) || i < len(t.Blocks)-1 && isEdge(i+1)
	}
	for i := range t.Blocks {
		if b := &t.Blocks[i]; edge(i) && b.Span.Len() <= longest {
			edges[name(b)]++
		}
	}
	title := strings.ToLower(t.Title)
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if !edge(i) || b.Span.Len() > longest {
			continue
		}
		words := name(b)
		b.Apart = words == "" || b.Page > 1 && (edges[words] > 1 || title != "" && words == title)
	}
}
