// Package testenv gives tests access to the machine: the module's own files, the shared recordings, and programs from
// outside Go.
//
// If something is missing, the test is skipped with one line on how to get it, so that `go test ./...` passes on a
// machine that has only Go. Where skips are not acceptable, as in continuous integration, IBID_REQUIRE turns them into
// failures: it is a comma-separated list of [Tools] and [SharedFiles]. IBID_LEFT_OUT names a file that gets a line for
// each skipped test.
//
// Only tests and bench may import it.
package testenv
