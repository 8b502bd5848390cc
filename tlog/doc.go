// Package tlog is a transparency log of manifests: a Merkle tree that only grows, whose state is signed, so that
// anybody can find out whether a manifest was back-dated, exchanged or taken out.
//
// # Terms
//
//   - A leaf is one entry of the log: the SHA-256 of a manifest's octets and nothing else, so that the log gives
//     away no URL. Its index is its place, from 0 on. A leaf occurs once.
//   - The tree is the Merkle tree of RFC 6962 over the leaves; its root is one hash that stands for all of them. The
//     hash of a leaf is SHA-256 of a zero octet and the leaf.
//   - A checkpoint is the log's origin (its name), the tree's size and its root, signed with the log's Ed25519 key:
//     a signed note as c2sp.org/tlog-checkpoint has it. A verifier key (vkey) is what checks it.
//   - A tile is up to 256 neighbouring hashes of one level, an entry bundle up to 256 leaves, as c2sp.org/tlog-tiles
//     serves them. They are all that the proofs are made of.
//   - An inclusion proof says that a leaf is in the tree of a checkpoint; in the form c2sp.org/tlog-proof@v1 it has
//     the checkpoint with it and needs no network. Two checkpoints are consistent if the leaves of the smaller tree
//     are the first of the larger one.
//   - A store ([Tiles]) keeps leaves, hashes and the checkpoint signed last.
//
// # What can be relied on
//
// Leaves, hashes and the new checkpoint are written in one transaction of the store, after the tree was compared with
// the checkpoint before. So several processes may write to one log, and no two checkpoints that a log signs contradict
// each other, even where the database was put back to an earlier state: a copy of the last checkpoint in a file beside
// it tells. What does not fit is an [ErrInconsistent], and the log signs nothing more. A log that lost leaves for good
// is not to be mended: begin another one, with another origin and another file.
//
// A [Log] is ours, to write to. A [Monitor] watches anybody's, over what HTTP serves; [VerifyProof] and
// [VerifyConsistency] believe nothing but the verifier key.
package tlog
