// Package journal keeps records on disk, in order, until somebody else has them: the durable queue between the moment
// an answer ends and the moment a store has it.
//
// A record is bytes. [Journal.Append] queues one and [Journal.Sync] returns when it is on disk; all who wait share one
// write and one fdatasync. A [Reader] gets the records in order, each only once it is durable, and [Journal.Release]
// says that everything up to one of them is kept elsewhere: what is released is not read again after a restart, and its
// space is freed. A process that dies between reading and releasing reads the records again: whoever takes them must
// not mind.
//
// # On disk
//
// A directory belongs to one process, which holds a lock on the file "lock". Records are in segments, files that are
// written once from front to back, named by the number of the segment, the [Position] of its first record and a random
// salt. A record is a header of 24 bytes and its payload. The header, little-endian:
//
//	magic         4 bytes  "\xf1ibJ"
//	length        4 bytes  of the payload
//	position      8 bytes
//	payload sum   4 bytes  CRC-32C, salted
//	header sum    4 bytes  CRC-32C of the 20 bytes before, salted
//
// The salt is why bytes in a payload are never taken for a record, whoever wrote them. Zeros after the last record are
// space that was set aside. The file "checkpoint" has the position up to which everything is released.
//
// # Damage
//
// What a dying process left half written at the end of the last segment is cut off by [Open]. A damaged record
// elsewhere is skipped by looking for the next whole one; positions are consecutive, so how many were lost is known and
// reported. After a failed write or sync nothing is said to be durable that was not already: the records still in
// memory are written again, to a new segment.
package journal
