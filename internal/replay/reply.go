package replay

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// reply is one response, as used by the templates in wire/.
type reply struct {
	*Answer
	ID      string // without the provider's prefix
	Model   string
	Created int64  // Unix seconds
	Tool    string // the tool to call instead of answering
	Status  int    // HTTP status of an error
	State   string // state of the response, for formats that include it
	req     *request
	chunk   int
	seq     *int
}

// As returns the reply in another state.
func (r *reply) As(state string) *reply {
	other := *r
	other.State = state
	return &other
}

// Next counts the events of a stream from 0.
func (r *reply) Next() int {
	*r.seq++
	return *r.seq - 1
}

// Asked reports whether the request contains a string.
func (r *reply) Asked(what string) bool { return bytes.Contains(r.req.body, []byte(what)) }

// SearchStates are the successive states of a search.
func (r *reply) SearchStates() []string { return []string{"in_progress", "searching", "completed"} }

// Files reports whether the sources are files.
func (r *reply) Files() bool { return len(r.Sources) > 0 && r.Sources[0].ID != "" }

// Searched reports whether the provider itself searched.
func (r *reply) Searched() bool {
	return len(r.Sources) > 0 && r.Tool == "" && !r.Given() && !r.Found()
}

// Results reports whether the request contains results of tools, for formats that cite nothing else.
func (r *reply) Results() bool { return r.req.afterTool }

// Given reports whether the request contains documents to cite, as Anthropic's do. They are taken to be the sources.
func (r *reply) Given() bool { return r.Asked(`"document"`) }

// Found reports whether the request contains search results to cite, as Anthropic's do. The sources are then those.
func (r *reply) Found() bool { return len(r.req.found) > 0 }

// QueryJSON returns the arguments of the search as JSON in a string.
func (r *reply) QueryJSON() (string, error) { return toJSON(map[string]string{"query": r.Query}) }

// TokensIn and TokensOut approximate a tokenizer's counts.
func (r *reply) TokensIn() int  { return 1 + len(r.req.prompt)/4 }
func (r *reply) TokensOut() int { return 1 + len(r.Text)/4 }

// Tokens is their sum.
func (r *reply) Tokens() int { return r.TokensIn() + r.TokensOut() }

// Chunks splits a text into the pieces of single events.
func (r *reply) Chunks(text string) []string {
	var chunks []string
	for text != "" {
		end := 0
		for range r.chunk {
			_, n := utf8.DecodeRuneInString(text[end:])
			end += n
		}
		chunks = append(chunks, text[:end])
		text = text[end:]
	}
	return chunks
}

// cite is a citation in a format's terms.
type cite struct {
	N          int // from 0
	Start, End int // in the view's unit
	Bytes      [2]int
	Text       string // the cited span
	Claim      string
	Numbers    []int // indexes of the sources
	Sources    []Source
}

// Source returns the first source.
func (c *cite) Source() Source { return c.Sources[0] }

// Number returns its number, from 0.
func (c *cite) Number() int { return c.Numbers[0] }

// Each returns a citation for each source.
func (c *cite) Each() []*cite {
	each := make([]*cite, len(c.Sources))
	for i := range c.Sources {
		one := *c
		one.Sources, one.Numbers = c.Sources[i:i+1], c.Numbers[i:i+1]
		each[i] = &one
	}
	return each
}

// step is one event of a stream: a piece of text, or a citation whose text is complete.
type step struct {
	Text  string
	Cite  *cite
	Whole string // the text up to here
	place int
}

// At returns the index of the step among the contents of its message, where the text between two citations is one
// content, and so is each source of a citation, of which i is the number.
func (s *step) At(i int) int { return s.place + i }

// view is an answer's text with its citations, as a provider writes it.
type view struct {
	Text  string
	Cites []*cite
	reply *reply
}

// Bytes and Characters return the unchanged text and its claims, with offsets in UTF-8 bytes or code points.
func (r *reply) Bytes() *view      { return r.plain(func(s string) int { return len(s) }) }
func (r *reply) Characters() *view { return r.plain(utf8.RuneCountInString) }

func (r *reply) plain(count func(string) int) *view {
	v := &view{Text: r.Text, reply: r}
	for _, claim := range r.Claims {
		v.add(count, claim.Start, claim.End, claim.Sources, claim.Quotes, r.Text[claim.Start:claim.End])
	}
	return v
}

// Points has one citation for each source of a claim, at the claim's end, in code points.
func (r *reply) Points() *view {
	v := &view{Text: r.Text, reply: r}
	for _, claim := range r.Claims {
		for i := range claim.Sources {
			words := r.Text[claim.Start:claim.End]
			v.add(utf8.RuneCountInString, claim.End, claim.End, claim.Sources[i:i+1], claim.Quotes[i:i+1], words)
		}
	}
	return v
}

// Links appends each source of a claim as a link, which is the cited span, in code points.
func (r *reply) Links() *view {
	var b strings.Builder
	type link struct {
		start, end, source int
		quote, claim       string
	}
	var links []link
	at := 0
	for _, claim := range r.Claims {
		b.WriteString(r.Text[at:claim.End])
		at = claim.End
		for i, n := range claim.Sources {
			b.WriteByte(' ')
			start := b.Len()
			b.WriteString("([" + r.Sources[n].Site + "](" + r.Sources[n].Tagged() + "))")
			links = append(links, link{start, b.Len(), n, claim.Quotes[i], r.Text[claim.Start:claim.End]})
		}
	}
	b.WriteString(r.Text[at:])
	v := &view{Text: b.String(), reply: r}
	for _, l := range links {
		v.add(utf8.RuneCountInString, l.start, l.end, []int{l.source}, []string{l.quote}, l.claim)
	}
	return v
}

// Marks appends the numbers of the sources to each claim, without offsets.
func (r *reply) Marks() *view {
	var b strings.Builder
	at := 0
	for _, claim := range r.Claims {
		b.WriteString(r.Text[at:claim.End])
		at = claim.End
		for _, n := range claim.Sources {
			b.WriteString("[" + string(rune('1'+n)) + "]")
		}
	}
	b.WriteString(r.Text[at:])
	return &view{Text: b.String(), reply: r}
}

func (v *view) add(count func(string) int, start, end int, numbers []int, quotes []string, claim string) {
	c := &cite{
		N: len(v.Cites), Start: count(v.Text[:start]), End: count(v.Text[:end]), Bytes: [2]int{start, end},
		Text: v.Text[start:end], Claim: claim, Numbers: numbers,
	}
	for i, n := range numbers {
		source := v.reply.Sources[n]
		source.Quote = quotes[i]
		c.Sources = append(c.Sources, source)
	}
	v.Cites = append(v.Cites, c)
}

// Steps returns the text in pieces, each citation directly after the end of its text.
func (v *view) Steps() []*step {
	var steps []*step
	at, place := 0, 0
	text := func(to int) {
		if to == at {
			return
		}
		for _, chunk := range v.reply.Chunks(v.Text[at:to]) {
			at += len(chunk)
			steps = append(steps, &step{Text: chunk, Whole: v.Text[:at], place: place})
		}
		place++
	}
	for _, c := range v.Cites {
		text(c.Bytes[1])
		steps = append(steps, &step{Cite: c, place: place})
		place += len(c.Sources)
	}
	text(len(v.Text))
	return steps
}

// block is a run of text with the same sources, or none.
type block struct {
	N      int
	Text   string
	Cite   *cite
	Chunks []string
}

// Blocks splits the text where the sources change. The first block has number from.
func (v *view) Blocks(from int) []block {
	var blocks []block
	at := 0
	add := func(to int, c *cite) {
		if to > at {
			text := v.Text[at:to]
			blocks = append(blocks, block{from + len(blocks), text, c, v.reply.Chunks(text)})
			at = to
		}
	}
	for _, c := range v.Cites {
		add(c.Bytes[0], nil)
		add(c.Bytes[1], c)
	}
	add(len(v.Text), nil)
	return blocks
}
