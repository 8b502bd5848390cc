package snapshot

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Near is the part of a text that is most similar to a quote. It explains why a quote was not found; it proves nothing.
type Near struct {
	Start int    `json:"start"` // code points of the text, half-open
	End   int    `json:"end"`
	Text  string `json:"text"`  // the text there
	Edits int    `json:"edits"` // code points to insert, delete or replace
	Diff  []Edit `json:"diff"`  // from the quote to the text
}

// Edit is a piece of a comparison.
type Edit struct {
	Kind EditKind `json:"kind"`
	Text string   `json:"text"`
}

// EditKind tells which side of a comparison has a piece.
type EditKind string

// The kinds of an [Edit].
const (
	EditSame  EditKind = "same"  // both have it
	EditQuote EditKind = "quote" // only the quote has it
	EditText  EditKind = "text"  // only the text has it
)

// Bounds of [Nearest].
const (
	MinNearest = 32   // minimum length of a quote in code points: anything is similar to a shorter one
	MaxNearest = 2048 // maximum length of a quote in code points: longer ones are not searched for
	nearShare  = 5    // one edit is allowed for this many code points of the quote
	// nearSteps bounds the time, to about half a second: this many code points of the text are compared with 64 of the
	// quote. The rest of the text is ignored; for a quote of 1000 code points, whatever follows the first eight
	// million.
	nearSteps = 1 << 27
)

// Nearest returns the part of a text that is most similar to a quote of [MinNearest] to [MaxNearest] code points, with
// at most one edit per five code points; if there are several, the first. It returns false if there is none. The quote
// is normalised first.
func Nearest(text, exact string) (*Near, bool) {
	quote := []rune(Normalize(exact))
	if len(quote) < MinNearest || len(quote) > MaxNearest {
		return nil, false
	}
	most := len(quote) / nearShare
	s := newSimilar(quote)
	runes, end, edits := 0, 0, most+1 // end is that of the most similar part, in bytes
	left := nearSteps / len(s.blocks)
	for at, r := range text {
		if runes++; runes > left {
			break
		}
		if d := s.next(r); d < edits {
			edits, end = d, at+utf8.RuneLen(r)
		}
	}
	if edits > most {
		return nil, false
	}
	from := end
	for range len(quote) + edits { // it cannot be longer
		_, n := utf8.DecodeLastRuneInString(text[:from])
		from -= n
	}
	diff, skipped := align(quote, []rune(text[from:end]))
	for range skipped {
		_, n := utf8.DecodeRuneInString(text[from:])
		from += n
	}
	start := utf8.RuneCountInString(text[:from])
	return &Near{
		Start: start,
		End:   start + utf8.RuneCountInString(text[from:end]),
		Text:  strings.Clone(text[from:end]),
		Edits: edits,
		Diff:  diff,
	}, true
}

// similar computes the distances between the parts of a text and a quote: Myers' bit vectors with 64 code points of the
// quote per word, as extended by Hyyrö.
type similar struct {
	blocks []bitBlock
	ascii  [utf8.RuneSelf][]uint64
	other  map[rune][]uint64
	none   []uint64
	last   uint64 // the bit of the quote's last code point in the last block
	edits  int
}

// bitBlock is a part of a column of the distance matrix: the cells that are one more, and one less, than the cell
// above.
type bitBlock struct{ more, less uint64 }

func newSimilar(quote []rune) *similar {
	n := (len(quote) + 63) / 64
	s := &similar{
		blocks: make([]bitBlock, n), other: map[rune][]uint64{}, none: make([]uint64, n),
		last: 1 << ((len(quote) - 1) % 64), edits: len(quote),
	}
	for i := range s.ascii {
		s.ascii[i] = s.none
	}
	for i := range s.blocks {
		s.blocks[i].more = ^uint64(0)
	}
	for i, r := range quote {
		bits := s.other[r]
		if bits == nil {
			bits = make([]uint64, n)
			s.other[r] = bits
		}
		bits[i/64] |= 1 << (i % 64)
		if r >= 0 && r < utf8.RuneSelf {
			s.ascii[r] = bits
		}
	}
	return s
}

// next reads a code point of the text and returns the distance of the quote to the most similar part that ends with it.
func (s *similar) next(r rune) int {
	equal := s.none
	if r < utf8.RuneSelf {
		equal = s.ascii[r]
	} else if bits, ok := s.other[r]; ok {
		equal = bits
	}
	var up, down uint64 // whether the cell above is one more or one less than its left neighbour
	for i := range s.blocks {
		b := &s.blocks[i]
		eq := equal[i]
		vertical := eq | b.less
		eq |= down
		horizontal := (((eq & b.more) + b.more) ^ b.more) | eq
		plus := b.less | ^(horizontal | b.more)
		minus := b.more & horizontal
		if i == len(s.blocks)-1 {
			if plus&s.last != 0 {
				s.edits++
			} else if minus&s.last != 0 {
				s.edits--
			}
		}
		nextUp, nextDown := plus>>63, minus>>63
		plus, minus = plus<<1|up, minus<<1|down
		up, down = nextUp, nextDown
		b.more = minus | ^(vertical | plus)
		b.less = plus & vertical
	}
	return s.edits
}

// align compares a quote with the end of a text, and returns the differences and the length of the text's beginning
// that is left out.
func align(quote, text []rune) (diff []Edit, skipped int) {
	const same, replace, onlyQuote, onlyText = 0, 1, 2, 3
	width := len(text) + 1
	how := make([]uint8, (len(quote)+1)*width)
	row := make([]int, width) // the first cell is zero: skipping the text's beginning is free
	for i, q := range quote {
		diagonal := row[0]
		row[0] = i + 1
		how[(i+1)*width] = onlyQuote
		for j, r := range text {
			best, kind := diagonal, uint8(same)
			if q != r {
				best, kind = diagonal+1, replace
			}
			diagonal = row[j+1]
			if row[j+1]+1 < best {
				best, kind = row[j+1]+1, onlyQuote
			}
			if row[j]+1 < best {
				best, kind = row[j]+1, onlyText
			}
			row[j+1] = best
			how[(i+1)*width+j+1] = kind
		}
	}
	d := differences{}
	i, j := len(quote), len(text)
	for i > 0 {
		switch how[i*width+j] {
		case same:
			i, j = i-1, j-1
			d.same(quote[i])
		case replace:
			i, j = i-1, j-1
			d.quote, d.text = append(d.quote, quote[i]), append(d.text, text[j])
		case onlyQuote:
			i--
			d.quote = append(d.quote, quote[i])
		case onlyText:
			j--
			d.text = append(d.text, text[j])
		}
	}
	d.end()
	slices.Reverse(d.list)
	return wholeGraphemes(d.list), j
}

// differences collects the pieces of a comparison from the end.
type differences struct {
	list              []Edit
	both, quote, text []rune // backwards
}

func (d *differences) same(r rune) {
	if len(d.quote)+len(d.text) > 0 {
		d.end()
	}
	d.both = append(d.both, r)
}

func (d *differences) end() {
	d.add(EditSame, &d.both)
	d.add(EditText, &d.text)
	d.add(EditQuote, &d.quote)
}

func (d *differences) add(kind EditKind, runes *[]rune) {
	if len(*runes) == 0 {
		return
	}
	slices.Reverse(*runes)
	d.list = append(d.list, Edit{kind, string(*runes)})
	*runes = (*runes)[:0]
}
