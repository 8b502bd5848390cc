// Package prose finds graphemes, words and sentences in the text of an answer or a source, for decoding, rendering and
// checking claims.
//
// Text is plain or markdown as language models write it. All offsets are bytes of the given string. No input causes a
// panic: an offset before the text means its start, one beyond the text its end, and one inside a rune is moved to the
// edge of the rune. If the text is valid UTF-8, every returned offset is on a rune boundary.
//
// The terms:
//
//   - A grapheme is what a reader considers one character: an extended grapheme cluster of UAX 29.
//   - A word is a word segment of UAX 29 that contains a letter or a digit: "don't", "3.14", "U.S.A", one ideograph.
//     Scripts that need a dictionary to find words (Thai, Lao, Khmer, Burmese) are divided into graphemes.
//   - A block is a run of lines that belong together: a paragraph, a list item, heading, quoted line or table row.
//   - A sentence lies within a block. It ends with a terminator and the closing quotes, brackets and citation marks
//     that follow it, or with its block.
//   - A statement is a sentence up to the place of a citation, without the citation marks before it.
//
// Sentence boundaries are those of UAX 29 with these differences. A terminator ends a sentence only before white space,
// the end of the block or an ideographic script (or before a capital, after a question or exclamation mark), so URLs,
// versions and file names stay whole. Abbreviations, initials and German ordinals do not end a sentence unless the next
// word clearly begins one. Question and exclamation marks do not end a sentence before a lower-case word; full stops do
// before a number. An ellipsis is a terminator. A line break ends a sentence only at the end of a block. Sentences do
// not end inside a link, a code span or a fenced code block.
//
// Sentences takes time linear in the text. Functions that take an offset examine at most [Window] bytes to either side
// of it, so that calls across a text are linear too. Nothing allocates.
package prose
