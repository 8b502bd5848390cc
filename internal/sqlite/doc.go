// Package sqlite holds what the journal and the store both know about SQLite files: how to open one, what its errors
// mean, locks between processes, and copies of a file in use.
//
// # No other way in
//
// A POSIX lock belongs to a process and a file, and the kernel drops all of them when the process closes any descriptor
// of that file. SQLite knows that and delays closing its own descriptors. Any other code that opens and closes the file
// of an open database drops the locks of its connections: another process then believes to be alone, and deletes the
// log beside the file when it leaves. So nothing in this module may open a database file except through SQLite;
// [os.Stat] is harmless.
package sqlite
