// Package markdown parses markdown as language models write it. It deals only with structure, not with citations,
// sources, words or sentences, which package prose and the root package add.
//
// There are two ways to read a text, which agree on what a code span, a link, a fence and a formula are:
//
//		growing text ─► Lexer, Fence, Blocks      forward only, with bounds; certain before the text is complete
//		whole text   ─► Parse ─► Document         one goldmark parse: lines, blocks, solids, phrases
//		                              └─► Edits ─► HTML │ LaTeX
//
//	  - [Code], [Link], [Brackets] and similar functions return the length of the construct at the start of a string.
//	    Each has a limited lookahead, which bounds the cost for hostile text.
//	  - [Lexer] reads a text once, as it arrives, and finds brackets outside such constructs. [Fence] tracks fenced
//	    code line by line. [Blocks] separates blocks that can be parsed without what follows. [FirstOpen] finds the
//	    first construct that is not closed yet.
//	  - [Document] is a parsed text. Its Lines are the inline content; its Solids are ranges into which nothing may be
//	    inserted; its Phrases are emphasis. [Document.HTML] and [Document.LaTeX] write it with [Edits] applied: ranges
//	    removed from the tree and marks inserted as nodes. Markdown output needs no writer: it is the source text.
//
// All offsets are bytes of the given text. No input causes a panic.
package markdown
