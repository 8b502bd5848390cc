package testenv

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

// Equal fails the test, which goes on, if got differs from want. About says what of; empty: that is clear.
func Equal(tb testing.TB, about, want, got any, opts ...cmp.Option) {
	tb.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", fmt.Sprint(about), diff)
	}
}
