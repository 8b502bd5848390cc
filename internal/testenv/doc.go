// Package testenv answers tests that ask what the machine has: the module's own files, the shared recordings, programs
// from outside Go.
//
// What is absent is skipped with one line that says how to get it, so that `go test ./...` passes on a machine that has
// nothing but Go. Where a skipped test would be a hole, as in continuous integration, IBID_REQUIRE turns the skip into
// a failure: it is a comma-separated list of [Tools] and [SharedFiles]. IBID_LEFT_OUT names a file that gets a line for
// each test that is skipped.
//
// Only tests and bench may import it.
package testenv
