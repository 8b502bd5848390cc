package snapshot

import "github.com/ibidhq/ibid"

// Passage is a piece of a text: whole blocks, or whole sentences of one. Passages lie side by side and cover the text
// but for the white space between them.
type Passage struct {
	Span    ibid.Span // in the text it was cut from
	Heading string    // under which it stands, at most MaxHeading bytes of it; empty: none
	Page    int       // it begins on, from 1; 0: there are none
	Index   int       // from 0
	// Breaks are the places in the text where its blocks begin, but the first, and of a long block its sentences: what
	// stands before one and behind it is not one sentence. A text cut by the function Passages has line breaks of its
	// own, so there are none.
	Breaks []int
}

// PassageOptions says how long passages are. Nil and the zero value mean the default.
type PassageOptions struct {
	Size int // bytes that a passage has at most; 0: PassageSize
}

// MaxHeading is how many bytes of a heading a passage says at most, cut between words: a heading may be as long as its
// document, and each passage below it is read with it.
const MaxHeading = 200

// PassageSize is how many bytes a passage has at most unless its options say another number.
const PassageSize = 1000
