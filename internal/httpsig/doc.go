// Package httpsig signs HTTP messages and verifies their signatures (RFC 9421), and makes and checks Content-Digest
// (RFC 9530). It works on plain fields, not on the requests and responses of net/http, so that messages stored years
// ago can be verified like new ones.
//
// A [Message] is a request, or a response with the request that it answers. A [Component] is a part of a message that a
// signature covers, such as "content-type" or "@target-uri";req. The components and parameters of a signature are its
// [Params]; the text that is signed is the base. A message can have several signatures, each with its own label; one is
// a [Signature].
//
// Anything that is unreadable, unknown or ambiguous is refused: a component that the message does not have, an unknown
// parameter of a component, a component named twice, ;req without a request. Algorithms are Ed25519 and ECDSA with
// P-256 and SHA-256; the others of the RFC are refused. The caller decides whether a signature covers enough, is too
// old or comes from a trusted key: it has the parameters, and this package does not interpret Created and Expires.
package httpsig
