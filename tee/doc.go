// Package tee decodes a provider's response while it passes to the one who asked, without changing a byte of it.
//
// A [Transport] is set as the transport of an [http.Client]: a program keeps its provider's SDK, gets its answers as
// before, and each once more as an [ibid.Answer]. A [Body] is the same around one response body, for a gateway.
//
// # What passes when
//
// Bytes are handed out as they come, but for the end mark (see [ibid.Decoder.End]): no byte from its first one on, as
// far as it was not handed out before, is handed out until Done (OnAnswer) has returned. So who has seen the end of an
// answer can rely on whatever Done did with it. Nor is the end of the body told before. The rules in full:
//
//   - Of an event stream the bytes before the end mark are handed out at once, and the rest after Done.
//   - A JSON body is nothing without its last byte: the read that has it is handed out in one piece, after Done. So is
//     the last read of a body whose end mark is its length ([Options.Length]), or a read that comes with the end of the
//     body.
//   - An error that ends a response is an end mark.
//   - An end mark that only the end of the input confirms is held until the next bytes come from upstream, and goes on
//     being held while these are no document.
//   - What comes behind an end mark passes without being decoded.
//   - An end mark that comes in several reads is held from the read on that completes it.
//   - Of a compressed body nothing is held but the last read, where that is known for it. A copy is decompressed and
//     decoded inside
//     Read.
//
// # What goes wrong
//
// The tee never harms the stream. A panic of the decoder, or of OnEvent, and a body over the limit switch the decoding
// off; the bytes pass on, and Done is told what was known and a [PanicError] or [ErrLimit] when the body ends. A panic
// of Done is the caller's own: it leaves Read or Close as it is, with what that Read had read, and the body passes on
// what is left.
package tee
