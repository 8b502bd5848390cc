package manifest

import (
	"fmt"
	"strconv"
	"strings"
)

// Path returns where a manifest is served: that of an answer of the run with the public id pub, or of the run's end if
// answer is empty. revision counts from 1; a later one supersedes the one before.
//
// No two manifests have one path: in pub and answer every octet but ASCII letters, digits, - and _ is written as ~ and
// two hexadecimal digits, so that the dot before the number of a revision is the only one, and no name ends as a
// proof's does.
func Path(pub, answer string, revision int) string {
	path := "/runs/" + segment(pub) + "/cite"
	if answer != "" {
		path += "/" + segment(answer)
	}
	if revision > 1 {
		path += "." + strconv.Itoa(revision)
	}
	return path
}

// isManifestPath reports whether Path makes this path.
func isManifestPath(path string) bool {
	rest, isRun := strings.CutPrefix(path, "/runs/")
	pub, rest, _ := strings.Cut(rest, "/")
	rest, number, revised := strings.Cut(rest, ".")
	revision := 1
	if revised {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 2 {
			return false
		}
		revision = int(n)
	}
	what, answer, _ := strings.Cut(rest, "/")
	if !isRun || what != "cite" || pub == "" || len(path) > MaxOwnURL {
		return false
	}
	return path == Path(unescape(pub), unescape(answer), revision)
}

// segment writes a name as one segment of a path.
func segment(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if isMadeOf(name[i:i+1], "-_") {
			b.WriteByte(name[i])
		} else {
			fmt.Fprintf(&b, "~%02X", name[i])
		}
	}
	return b.String()
}

// unescape is the inverse of segment. What segment cannot have made comes out as something else than what was put in.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '~' && i+3 <= len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
