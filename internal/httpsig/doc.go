// Package httpsig signs HTTP messages and verifies their signatures (RFC 9421), and makes and checks Content-Digest
// (RFC 9530). It works on plain fields, not on requests and responses of net/http: what was stored years ago verifies
// as what has just arrived.
//
// A [Message] is a request, or a response with the request that it answers. A [Component] is one thing of a message
// that a signature covers, as "content-type" or "@target-uri";req. The components and the parameters of a signature are
// its [Params]; the text that is signed is the base. A message can have several signatures, each under a label of its
// own; one is a [Signature].
//
// What cannot be read, is unknown or could be understood in two ways is refused: a component that the message does not
// have, a parameter of a component that is unknown, a component named twice, ;req without a request. Algorithms are
// Ed25519 and ECDSA with P-256 and SHA-256; the others of the RFC are refused. Whether a signature covers enough, is
// too old and comes from a trusted key is for the caller to decide: the parameters are there, and nothing is done with
// Created and Expires.
package httpsig
