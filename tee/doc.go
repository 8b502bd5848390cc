// Package tee decodes a provider's response while it is passed on to the caller, without changing a byte of it.
//
// A [Transport] is used as the transport of an [http.Client]: the program keeps its provider's SDK, receives its
// responses as before, and gets each answer additionally as an [ibid.Answer]. A [Body] does the same for one response
// body, for a gateway.
//
// # When bytes are passed on
//
// Bytes are passed on as they arrive, except the end mark (see [ibid.Decoder.End]): from its first byte on, nothing is
// passed on until Done (OnAnswer) has returned, unless that byte had been passed on already. So whoever has seen the
// end of an answer can rely on what Done did with it. The end of the body is not reported earlier either. The rules in
// full:
//
//   - The bytes of an event stream before the end mark are passed on at once, the rest after Done.
//   - A JSON body is useless without its last byte: the read that contains it is passed on as a whole, after Done. So
//     is the last read of a body that ends by its length ([Options.Length]), and a read that returns the end of the
//     body.
//   - An error that ends a response is an end mark.
//   - An end mark that only the end of the input confirms is held until the next bytes arrive from upstream, and still
//     longer if these are not a document.
//   - What follows an end mark is passed on without being decoded.
//   - An end mark that is split across reads is held from the read that completes it.
//   - Of a compressed body, only the last read is held, if it is known to be the last. A copy is decompressed and
//     decoded inside Read.
//
// # Failures
//
// The tee never harms the stream. After a panic of the decoder or of OnEvent, and for a body over the limit, decoding
// stops: the bytes are still passed on, and when the body ends, Done receives what was known and a [PanicError] or
// [ErrLimit]. A panic of Done is the caller's own: it propagates out of Read or Close with the data that Read had read,
// and the body passes on the rest.
package tee
