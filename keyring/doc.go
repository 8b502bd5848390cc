// Package keyring manages signing keys and their history over the years: since when they sign, when they were retired,
// when they were revoked.
//
// A [Key] is the public half with its facts; its ID is the JWK thumbprint of RFC 7638 with SHA-256. A [Ring] holds the
// keys of one publisher: in a directory, with each private key in a file of its own or in an environment variable that
// the ring refers to by name; or in memory. A retired key signs no more, and what it signed before stays valid. A
// revoked key must not be trusted from a certain time on: whoever stole it could have signed since then. A directory of
// keys, as published, is a JWK Set.
package keyring
