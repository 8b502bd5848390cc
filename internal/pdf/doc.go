// Package pdf reads the text layer of PDF files: bytes in, paragraphs with their pages out.
//
// A PDF has no text, only glyphs with places. Glyphs on a line are joined, a word hyphenated at the end of a line is
// joined, lines are joined to paragraphs, and right-to-left text is put into reading order. Large text is treated as a
// heading.
//
// The file is read without its cross-reference table: all objects are found by scanning it, and of two with the same
// number the later counts. So a damaged or malicious table has no effect. Work, memory and time are counted and
// bounded; nothing panics, whatever the bytes. A program can have each file read in a process of its own: see
// [Isolate].
package pdf
