// Package prose finds graphemes, words and sentences in the text of an answer or a source. Decoding, rendering
// and what checks claims share it.
//
// Text is plain or markdown as language models write it. All offsets are bytes of the given string. No function panics,
// whatever the bytes: an offset before the text means its start, one behind the text its end, and an offset inside a
// rune is moved to the rune's edge. Where the text is valid UTF-8 every offset returned stands on a rune boundary.
//
// The terms:
//
//   - A grapheme is what a reader takes for one character: an extended grapheme cluster of UAX 29.
//   - A word is a word segment of UAX 29 that has a letter or a digit in it: "don't", "3.14", "U.S.A", one ideograph.
//     Scripts that need a dictionary to find words (Thai, Lao, Khmer, Burmese) are cut between graphemes.
//   - A block is a run of lines that reads as one: a paragraph, one list item, heading, quoted line or table row.
//   - A sentence lies in one block and ends with a terminator, with the closing quotes and brackets and the citation
//     marks that follow it, or with its block.
//   - A statement is a sentence up to the point where a citation stands, without the citation marks before that point.
//
// Sentence boundaries are those of UAX 29 with these differences. A terminator ends a sentence only where white space,
// the end of the block or an ideographic script follows (or a capital, after a question or exclamation mark), so
// addresses, versions and file names stay whole. Abbreviations, initials and German ordinals do not end one unless the
// next word clearly opens one. Question and exclamation marks do not end one before a lower-case word; full stops do
// before a number. An ellipsis is a terminator. A line break ends one only where a block ends. Nothing is cut inside a
// link, a code span or a fenced code block.
//
// Sentences takes time linear in the text. Functions that take an offset look at most [Window] bytes to either side of
// it, so that any number of calls over one text stays linear too. Nothing allocates.
package prose
