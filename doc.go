// Package ibid converts the answers of all LLM providers into one exact form: the text, its sources, and which words
// rest on which source.
//
// [Decode] reads a response body or a recorded stream, [Stream] and [Decoder] read a response as it arrives, and [Live]
// displays it as it arrives. The result is an [Answer]. [Answer.Render] returns it as text with the citations in the
// right places, [Answer.Document] as JSON with offsets in the unit its reader needs. To decode responses as an HTTP
// client receives them, see package tee.
//
// # Terms
//
// Each term has one meaning throughout ibid:
//
//   - A source is something an answer draws on: a page, a file, a document, a tool's result. It appears once in an
//     answer.
//   - A ref points to a source, with the quoted words and their place in it.
//   - A citation states that a span of the answer rests on refs.
//   - A span is a half-open range of UTF-8 bytes of the answer's text, on rune boundaries. Every other unit exists only
//     at
//     the edges: in provider responses and in documents.
//   - What a span covers differs by provider: the claim itself, a visible link that represents the citation, the point
//     after the claim, or a block of text. The claim is the statement that the citation supports in any case.
//   - An anchor is how the span was found: where the provider said, elsewhere, or nowhere.
//   - An issue is something unusual in a response that could still be read.
//
// # Guarantees
//
// The text is byte for byte what the provider sent as visible text, except for leaked private markers and invalid
// UTF-8. No source is lost, not even one whose citation has no place. No score, title or date is invented. A damaged
// response yields what could be read and an error. No input causes a panic.
//
// # Compatibility
//
// Until version 1.0, names in this package may change. The JSON document is at version 1 and only gains members.
package ibid
