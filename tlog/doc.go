// Package tlog implements a transparency log of manifests: an append-only Merkle tree with a signed state, so that
// anyone can detect whether a manifest was back-dated, replaced or removed.
//
// # Terms
//
//   - A leaf is one entry of the log: the SHA-256 of a manifest's octets and nothing else, so that the log reveals no
//     URLs. Its index is its position, from 0. A leaf occurs once.
//   - The tree is the Merkle tree of RFC 6962 over the leaves; its root is one hash that represents all of them. The
//     hash of a leaf is SHA-256 of a zero octet and the leaf.
//   - A checkpoint is the log's origin (its name), the tree's size and its root, signed with the log's Ed25519 key:
//     a signed note as in c2sp.org/tlog-checkpoint. It is verified with a verifier key (vkey).
//   - A tile is up to 256 adjacent hashes of one level, an entry bundle up to 256 leaves, as served by
//     c2sp.org/tlog-tiles. Proofs are made of nothing else.
//   - An inclusion proof shows that a leaf is in the tree of a checkpoint; in the form c2sp.org/tlog-proof@v1 it
//     includes the checkpoint and needs no network. Two checkpoints are consistent if the leaves of the smaller tree
//     are the first of the larger one.
//   - A store ([Tiles]) keeps leaves, hashes and the last signed checkpoint.
//
// # Guarantees
//
// Leaves, hashes and the new checkpoint are written in one transaction of the store, after the tree was compared with
// the previous checkpoint. So several processes may write to one log, and a log never signs two checkpoints that
// contradict each other, even if the database is restored to an earlier state: a copy of the last checkpoint in a file
// beside it reveals that. A mismatch is an [ErrInconsistent], and the log signs nothing more. A log that has lost
// leaves for good cannot be repaired: start another one, with another origin and another file.
//
// A [Log] is one's own, to write to. A [Monitor] watches anyone's log over HTTP; [VerifyProof] and [VerifyConsistency]
// trust nothing but the verifier key.
package tlog
