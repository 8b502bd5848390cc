// Package pdf reads the text layer of PDF files: bytes in, paragraphs with their pages out.
//
// A PDF has no text but glyphs with places. What stands on a line is joined, a word that is hyphenated at a line's end
// is joined again, lines are joined to paragraphs, and what is written from the right is put in the order in which it
// is read. What is large is taken for a heading.
//
// The file is read without its cross-reference table: all objects are found by going through it, and of two with one
// number the later counts. So a damaged table, or one that was made to mislead, does nothing. Work, memory and time are
// counted and bounded; nothing panics, whatever the bytes.
package pdf
