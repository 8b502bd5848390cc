// Package markdown reads markdown as language models write it. It knows structure only: nothing in it knows of
// citations, sources, words or sentences. Package prose and the root package decide those, on what is said here.
//
// There are two ways to read a text, and both mean the same by a code span, a link, a fence and a formula:
//
//		text that grows ─► Lexer, Fence, Blocks   forward only, within bounds; certain before the text is whole
//		a whole text    ─► Parse ─► Document      one goldmark parse: lines, blocks, solids, phrases
//		                              └─► Edits ─► HTML │ LaTeX
//
//	  - [Code], [Link], [Brackets] and the like return the length of the construct that a string begins with. Each
//	    looks ahead no further than a bound, so that hostile text stays cheap.
//	  - [Lexer] goes through a text once, as it arrives, and finds brackets outside of such constructs. [Fence]
//	    follows fenced code line by line. [Blocks] cuts off blocks that can be read without what follows. [FirstOpen]
//	    says where the first construct begins that is not closed yet.
//	  - [Document] is a parsed text. Its Lines say where inline content stands; its Solids are ranges into which
//	    nothing may be put; its Phrases are emphasis. [Document.HTML] and [Document.LaTeX] write it with [Edits] made:
//	    ranges taken out of the tree and marks put in as its nodes. Markdown output needs no writer: it is the source
//	    text.
//
// All offsets are bytes of the given text. No function panics, whatever the bytes.
package markdown
