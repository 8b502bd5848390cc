package testenv

import "testing"

// Must takes the results of a call that must not fail, and returns a function that returns the first of them, or ends
// the test with the error: Must(f())(t).
func Must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		OK(tb, err)
		return v
	}
}

// OK ends the test with an error, if it is one.
func OK(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
