// Package snapshot turns a document's bytes into its visible text, in which quotes are searched for, which offsets
// refer to, and which is hashed.
//
// [Extract] reads one document, [ReadDocuments] a file, which may hold several. [Text.Passages] cuts a text into pieces
// of a size that a claim can be checked against. [Find] searches for a quote in a text, and [Nearest] finds the most
// similar passage instead; [Texts] caches texts. A [Fetcher] gets documents from the network, safely; [WriteWARC]
// archives them.
//
// # Terms
//
//   - A document is bytes with a media type: a page, a paper, a note.
//   - A snapshot is a document as it was read once: its octets, their hash, its address and the time.
//   - A copy is a snapshot that was kept, so that its octets can be read again.
//   - A document's text is what a reader sees of it, in one line: see [TextProfile] for the exact definition.
//   - A block is a part of the text that the document sets apart: a heading, a paragraph, a list item, a table cell.
//   - A quote is what a text is said to contain; an excerpt is a quote that a manifest records. A match is the place of
//     a quote in a text.
//   - A passage is a run of blocks, or of sentences of one, long enough to be meaningful and short enough to be read.
//
// # Profile ibid-text/2
//
// The bytes are decoded, the visible text is extracted, and the text is normalised.
//
// HTML and XHTML are decoded as a byte order mark, the media type or a meta element says, unless the bytes show that it
// is UTF-8, or is not. They are parsed according to the HTML standard and read in document order, as a reader sees
// them: scripts, hidden words, icons, buttons, deleted text, the readings of ruby and the marks of notes are left out,
// and a raised number stays one (10⁶). What stands beside the words, such as an advertisement or a caption, is in
// blocks that are [Block.Apart]. JSON and XML are read for their values, and other text is taken unchanged. All rules
// are in docs/attribution-v1.md, §4. [TextOptions.Profile] selects ibid-text/1, the text of earlier versions.
//
// Normalising converts the text to Unicode's form NFC, drops characters of category Cf and U+FFFD, replaces each run of
// white space by one space and removes spaces at both ends.
//
// # Profile ibid-pdf/1
//
// A PDF has no text, only glyphs with places. Its text layer is read page by page: glyphs on a line are joined, a word
// hyphenated at the end of a line is joined if the next line begins with a lower-case letter, and lines are joined to
// paragraphs. Right-to-left text is put into reading order. Then it is normalised as above. Other readers assemble the
// same pages differently, so this profile is advisory: good for finding a passage, but no basis for comparing hashes
// between programs.
//
// # Fetching
//
// Addresses come from untrusted data. A [Fetcher] connects to public addresses only: each connection is checked after
// its name has been resolved, so neither a name that resolves differently each time nor a redirect leads into a network
// that is not public. It speaks http and https on ports 80 and 443, uses no proxy, keeps no cookies, sends no Referer,
// and never goes from https to http. What it reads is bounded in bytes as sent and as decoded, and in time: for
// connecting, for the header, between two pieces of the body, and in total.
//
// It is polite: per host there are two requests at a time, 100 ms apart, one request for all callers that want the same
// document, conditional requests where there is a copy, and no request before the time that a server gives in
// Retry-After. Scheduled work, which nobody waits for, goes last, takes at most half of the places, and honours
// robots.txt (RFC 9309): a status in the 400s other than 429 means that there is none, and if the file cannot be read,
// nothing is allowed.
//
// # Guarantees
//
// Nothing panics and nothing hangs, whatever the bytes; [Limits] bounds what is read, [FetchLimits] what is fetched.
// Only a Fetcher does I/O.
package snapshot
