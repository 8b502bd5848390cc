// Package snapshot turns a document's bytes into its visible text: the one that quotes are looked for in, that offsets
// count in and that hashes are made of.
//
// [Extract] reads one document, [ReadDocuments] a file, which may hold several. [Text.Passages] cuts a text into pieces
// of a size that a claim can be checked against. [Find] looks for a quote in a text, and [Nearest] says what stands
// there instead; [Texts] remembers texts. A [Fetcher] gets documents from the network, safely; [WriteWARC] archives
// them.
//
// # Terms
//
//   - A document is some bytes with a media type: a page, a paper, a note.
//   - A snapshot is a document as it was read once: its octets, their hash, where they were found and when.
//   - A copy is a snapshot that was kept, so that its octets can be looked at again.
//   - A document's text is what a reader sees of it, in one line: see [TextProfile] for how it is made, exactly.
//   - A block is a part of the text that the document sets apart: a heading, a paragraph, an item of a list, a table's
//     cell.
//   - A quote is what somebody says that a text says, an excerpt one that a manifest records. A match is where a text
//     has it.
//   - A passage is a run of blocks, or of sentences of one, long enough to say something and short enough to be read.
//
// # Profile ibid-text/1
//
// The bytes are decoded, the visible text is taken out of them, and the text is normalised.
//
// HTML and XHTML are decoded as a byte order mark says, else as the charset of the media type, else as a meta element
// in the first 1024 bytes, else as windows-1252. They are parsed as the HTML standard says and read in the order of the
// document. Left out is what stands in head, script, style, template, noscript, iframe, object, svg, select and
// textarea, and in every element with the attribute hidden. A line break stands before and after each of these
// elements: address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption
// figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol option p pre search section summary
// table tbody td tfoot th thead tr ul. Nothing else is left out: no navigation is guessed, no script is run, no
// attribute is read.
//
// All other text (plain, Markdown, JSON, XML, source code) is taken as it stands, decoded as a byte order mark, the
// charset of the media type or an XML declaration says, else as UTF-8, and what is not valid UTF-8 as windows-1252.
//
// Normalising puts the text into Unicode's form NFC, drops characters of category Cf and U+FFFD, makes each run of
// white space one space and takes the spaces off both ends.
//
// # Profile ibid-pdf/1
//
// A PDF has no text but glyphs with places. Its text layer is read page by page: what stands on a line is joined, a
// word that is hyphenated at a line's end is joined again where its next line begins with a small letter, and lines are
// joined to paragraphs. What is written from the right is put in the order in which it is read. Then it is normalised
// as above. Other readers put the same pages together in another way, so this profile is advisory: good for finding a
// passage, no ground for comparing hashes between programs.
//
// # Fetching
//
// Addresses come from data, so anybody may have written them. A [Fetcher] connects to public addresses only: a
// connection is judged when its name has been resolved, so neither a name that resolves to something else each time nor
// a redirect leads into a network that is not public. It speaks http and https on ports 80 and 443, knows no proxy,
// keeps no cookies, sends no Referer, and never goes from https to http. What it reads is bounded in bytes as sent and
// as unpacked, and in time: for connecting, for the header, between two pieces of the body, and in all.
//
// It is polite: per host two requests at a time, 100 ms apart, one request for all who want the same, conditional ones
// where there is a copy, and no more than a server asks for by Retry-After. Scheduled work, which nobody waits for,
// goes last, takes at most half of the places, and honours robots.txt (RFC 9309): an answer of the 400s but 429 means
// that there is none, and a file that cannot be read forbids all.
//
// # What can be relied on
//
// Nothing panics and nothing hangs, whatever the bytes; [Limits] bounds what is read, [FetchLimits] what is
// fetched. Only a Fetcher does I/O.
package snapshot
