package text

import (
	"regexp"
	"sync"
)

// Pattern returns a function that returns the regular expression expr, compiled when it is first called. Large ones
// that few answers need would otherwise cost every program that links them time at its start, and memory that each
// garbage collection reads.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
