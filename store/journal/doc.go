// Package journal keeps records on disk, in order, until somebody else has them: the durable queue between the moment
// an answer ends and the moment a store has it.
//
// A record is bytes. [Journal.Append] queues one and [Journal.Sync] returns when it is on disk; all who wait share one
// commit. A [Reader] gets the records in order, each only once it is durable, and [Journal.Release] says that
// everything up to one of them is kept elsewhere: it is deleted soon after. A process that dies between reading and
// releasing reads the records again: whoever takes them must not mind.
//
// # On disk
//
// A directory belongs to one process, which holds SQLite's exclusive lock on the file "lock". The records are rows of
// the SQLite database "journal.db", each with its [Position] and a CRC-32C of its bytes. The database is in WAL mode,
// a commit is synced before it counts (synchronous=FULL), and checkpoints run beside the commits. When much of the file
// is free, after an outage of the store, it is made shorter.
//
// # Damage
//
// A record whose checksum is wrong is skipped. When SQLite finds the file itself damaged, the journal puts it aside as
// "damaged-….db", copies every row that can still be read into a new file and goes on with that. Positions are
// consecutive, so how many records were lost is known and reported. After a failed commit nothing is said to be durable
// that was not already: the records are still in memory and written again.
package journal
