package testenv

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Cases reads a table of test cases from a file: one case per line, with columns quoted as in Go and comments after #.
// Each case has at least the given number of columns.
func Cases(tb testing.TB, path string, columns int) [][]string {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var all [][]string
	for line := range strings.Lines(string(b)) {
		var row []string
		rest := strings.TrimSpace(line)
		for rest != "" && rest[0] != '#' {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				tb.Fatalf("%s: %s: %v", path, rest, err)
			}
			column, err := strconv.Unquote(quoted)
			if err != nil {
				tb.Fatalf("%s: %s: %v", path, quoted, err)
			}
			row, rest = append(row, column), strings.TrimSpace(rest[len(quoted):])
		}
		if row != nil && len(row) < columns {
			tb.Fatalf("%s: %q has fewer than %d columns", path, row, columns)
		}
		if row != nil {
			all = append(all, row)
		}
	}
	if len(all) == 0 {
		tb.Fatalf("%s: no cases", path)
	}
	return all
}

// Table is [Cases] with each case in a struct: a field for each column in order, a string or any type decoded from
// JSON. Fields of missing trailing columns are zero.
func Table[T any](tb testing.TB, path string) []T {
	tb.Helper()
	var all []T
	for _, row := range Cases(tb, path, 1) {
		var c T
		v := reflect.ValueOf(&c).Elem()
		if len(row) > v.NumField() {
			tb.Fatalf("%s: %q has more than %d columns", path, row, v.NumField())
		}
		for i, column := range row {
			if f := v.Field(i); f.Kind() == reflect.String {
				f.SetString(column)
			} else if err := json.Unmarshal([]byte(column), f.Addr().Interface()); err != nil {
				tb.Fatalf("%s: %s: %v", path, column, err)
			}
		}
		all = append(all, c)
	}
	return all
}

// Must takes the results of a call that must not fail, and returns a function that returns the first result, or ends
// the test with the error: Must(f())(t).
func Must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		OK(tb, err)
		return v
	}
}

// OK ends the test if err is not nil.
func OK(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Until waits until a condition holds that another goroutine or server brings about without a signal.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			tb.Fatalf("it never happened: %s", what)
		}
	}
}

// Equal reports an error, without ending the test, if got differs from want. about names the value and may be empty.
func Equal(tb testing.TB, about, want, got any, opts ...cmp.Option) {
	tb.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", fmt.Sprint(about), diff)
	}
}
