// Package ibid turns what any LLM provider answers into one exact form: the text, the sources it draws on, and which
// words rest on which source.
//
// [Decode] reads a response body or a recorded stream, [Stream] and [Decoder] read one while it arrives, [Live] shows
// it while it arrives. The result is an [Answer]. [Answer.Render] gives it back as text with its citations in the right
// places, [Answer.Document] as JSON with offsets in the unit the reader counts in. To read what an HTTP client gets
// while it gets it, see package tee.
//
// # Terms
//
// One word means one thing in all of ibid:
//
//   - A source is something an answer draws on: a page, a file, a document, a tool's result. It appears once.
//   - A ref points to a source, with the words and the place in it.
//   - A citation says that a span of the answer rests on refs.
//   - A span is a half-open range of UTF-8 bytes of the answer's text, on rune boundaries. Every other unit exists only
//     at
//     the edges: in provider responses and in documents.
//   - What a span covers differs by provider: the claim itself, a visible link that stands for the citation, the point
//     after the claim, or a block of text. The claim is what the citation stands for in any case.
//   - An anchor says how the span was found: where the provider said, elsewhere, or nowhere.
//   - An issue is something odd that was read all the same.
//
// # What can be relied on
//
// Text is byte for byte what the provider sent as visible text, but for leaked private markers and bytes that are not
// UTF-8. No source is lost, not even one whose citation has no place. No score, title or date is invented. A damaged
// response gives what could be read and an error. Nothing panics, whatever the input.
//
// # Compatibility
//
// Until version 1.0 names of this package may change; the JSON document is at version 1 and only gains members.
package ibid
