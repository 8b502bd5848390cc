// Package keyring keeps signing keys and what is to be known about them over the years: since when they sign, when they
// were retired, when they were revoked.
//
// A [Key] is the public half with its facts; its ID is the JWK thumbprint of RFC 7638 with SHA-256. A [Ring] is the
// keys of one publisher: in a directory, with each private key in a file of its own or in an environment variable that
// the ring only names; or in memory. A retired key signs no more, and what it signed before stays good. A revoked key
// is not to be believed from a moment on: whoever stole it could have signed since then. A directory of keys, as
// published, is a JWK Set.
package keyring
