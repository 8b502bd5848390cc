// Package journal keeps records on disk, in order, until they are stored elsewhere: the durable queue between the end
// of an answer and its arrival in a store.
//
// A record is bytes. [Journal.Append] queues one and [Journal.Sync] returns when it is on disk; concurrent callers
// share one commit. A [Reader] returns the records in order, each only once it is durable. [Journal.Release] declares
// everything up to a record as stored elsewhere, and it is deleted soon after. A process that dies between reading and
// releasing reads the records again, so consumers must tolerate duplicates.
//
// # On disk
//
// A directory belongs to one process, which holds SQLite's exclusive lock on the file "lock". The records are rows of
// the SQLite database "journal.db", each with its [Position] and a CRC-32C of its bytes. The database is in WAL mode, a
// commit is synced before it counts (synchronous=FULL), and checkpoints run concurrently with commits. When much of the
// file is free, after an outage of the store, it is shrunk.
//
// # Damage
//
// A record whose checksum is wrong is skipped. When SQLite finds the file itself damaged, the journal renames it to
// "damaged-….db", copies every row that can still be read into a new file and continues with that. Positions are
// consecutive, so the number of lost records is known and reported. A failed commit makes nothing durable: its records
// stay in memory and are written again.
package journal
