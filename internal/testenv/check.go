package testenv

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// OK ends the test if there is an error.
func OK(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Must returns what gives a value that was made without an error, and ends the test if there is one:
//
//	b := testenv.Must(os.ReadFile(name))(t)
func Must[T any](v T, err error) func(tb testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		OK(tb, err)
		return v
	}
}

// Equal fails the test, which goes on, if got differs from want. About says what of; empty: that is clear.
func Equal(tb testing.TB, about, want, got any, opts ...cmp.Option) {
	tb.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", fmt.Sprint(about), diff)
	}
}
