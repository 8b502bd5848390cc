package manifest

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// form says what the value of a member must look like. Parse and the schema are made of the same forms, so what one of
// them refuses the other refuses, too; schema_test.go lists the exceptions.
type form struct {
	kind     kind
	min, max int    // length of a string, value of an integer, number of elements
	def      string // name among the definitions of the schema; empty: it stands where it is used
	pattern  string // of a string, for the schema; check is the same for Parse
	check    func(s string) bool
	says     string   // what check wants, in words
	words    []string // all that a string may be
	of       *form    // what an array has
	orOne    bool     // the only element of an array may stand there without brackets
	object   object   // an empty one
}

type kind string

const (
	kindAny     kind = "any"
	kindString  kind = "string"
	kindInteger kind = "integer"
	kindNumber  kind = "number"
	kindBool    kind = "boolean"
	kindArray   kind = "array"
	kindObject  kind = "object"
)

func anythingForm() *form { return &form{kind: kindAny} }

func booleanForm() *form { return &form{kind: kindBool} }

func shareForm() *form { return &form{kind: kindNumber, min: 0, max: 1} }

func naturalForm() *form { return &form{kind: kindInteger, min: 0, max: maxInt} }

func numberForm() *form { return &form{kind: kindInteger, min: 1, max: maxInt} }

func httpStatus() *form { return &form{kind: kindInteger, min: 100, max: 999} }

func nameForm() *form { return textForm(1, MaxName) }

func sourceRef() *form { return textForm(1, MaxURL) }

func aroundForm() *form { return textForm(0, MaxAround) }

func refForm() *form { return textForm(1, MaxRef) }

func refsForm() *form {
	f := listForm(1, MaxSteps, refForm())
	f.orOne = true
	return f
}

func textForm(least, most int) *form { return &form{kind: kindString, min: least, max: most} }

func wordsForm(words ...string) *form { return &form{kind: kindString, words: words} }

func listForm(least, most int, of *form) *form {
	return &form{kind: kindArray, min: least, max: most, of: of}
}

func recordForm(o object) *form { return &form{kind: kindObject, object: o} }

func codePoints() *form {
	f := listForm(2, 2, naturalForm())
	f.def = "range"
	return f
}

func versions() *form {
	return &form{
		kind: kindString, min: 3, max: 11, pattern: `^1\.[0-9]{1,9}$`, says: "a version, 1 and a dot and a number",
		check: func(s string) bool {
			rest, found := strings.CutPrefix(s, "1.")
			n, rest := digits(rest)
			return found && n > 0 && n <= 9 && rest == ""
		},
	}
}

func ids() *form {
	return &form{
		kind: kindString, def: "id", min: 1, max: MaxID, pattern: `^[A-Za-z0-9._~-]{1,128}$`, check: isID,
		says: "an id of letters, digits and ._~-",
	}
}

func isID(s string) bool { return s != "" && len(s) <= MaxID && isMadeOf(s, "._~-") }

// isMadeOf reports whether all of s is ASCII letters, digits and the other characters.
func isMadeOf(s, others string) bool {
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}

func agents() *form {
	return &form{
		kind: kindString, min: 1, max: MaxName, pattern: `^[a-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?$`,
		says: "a host in small letters, perhaps with a port and a path",
		check: func(s string) bool {
			host, path, _ := strings.Cut(s, "/")
			host, port, hasPort := strings.Cut(host, ":")
			n, rest := digits(port)
			return host != "" && isMadeOf(host, ".-") && strings.ToLower(host) == host &&
				(!hasPort || n > 0 && rest == "") && isMadeOf(path, "._~/-")
		},
	}
}

// webURLs is of what can be fetched: the manifest's own addresses.
func webURLs() *form {
	return &form{
		kind: kindString, min: 8, max: MaxOwnURL, pattern: `^https?://[^\x00-\x20\x7f]+$`, says: "an http or https URL",
		check: func(s string) bool {
			rest, web := strings.CutPrefix(s, "http")
			rest, slashes := strings.CutPrefix(strings.TrimPrefix(rest, "s"), "://")
			return web && slashes && rest != "" && !hasBlank(rest)
		},
	}
}

// anyURLs is of sources. What is not fetched (another scheme, a private address) is for the verifier to say, source by
// source; a manifest is not malformed because one of its sources is a file.
func anyURLs() *form {
	return &form{
		kind:    kindString,
		def:     "url",
		min:     3,
		max:     MaxURL,
		pattern: `^[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f]+$`,
		says:    "an absolute URL",
		check: func(s string) bool {
			scheme, rest, found := strings.Cut(s, ":")
			return found && scheme != "" && rest != "" && isMadeOf(scheme, "+.-") && isMadeOf(scheme[:1], "") &&
				(scheme[0] < '0' || scheme[0] > '9') && !hasBlank(rest)
		},
	}
}

// hasBlank reports whether s has a space or a control character of ASCII.
func hasBlank(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// times is of instants. The pattern leaves the length of months to Parse.
func times() *form {
	return &form{
		kind:    kindString,
		def:     "time",
		min:     20,
		max:     30,
		says:    "a time in UTC, as 2006-01-02T15:04:05Z",
		pattern: `^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z$`,
		check: func(s string) bool {
			_, err := Time(s).parse()
			return err == nil
		},
	}
}

// hashes is of sums by SHA-256. Parse also lets other algorithms through, for Problems to say that they are not
// supported.
func hashes() *form {
	return &form{
		kind: kindString, def: "hash", min: 3, max: MaxHash, pattern: `^sha256:[0-9a-f]{64}$`, check: isHash,
		says: "a hash, sha256: and 64 hexadecimal digits in small letters",
	}
}

// privateHashes is of sums that may have a key.
func privateHashes() *form {
	f := hashes()
	f.def, f.pattern = "private_hash", `^(hmac-)?sha256:[0-9a-f]{64}$`
	return f
}

func isHash(s string) bool {
	algorithm, sum, found := strings.Cut(s, ":")
	if algorithm == "sha256" || algorithm == "hmac-sha256" {
		return len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
	}
	return found && algorithm != "" && isMadeOf(algorithm, "-") && sum != "" && isMadeOf(sum, "+/=_-")
}

// refuses says what is wrong with a string, or nothing.
func (f *form) refuses(s string) string {
	if n := utf8.RuneCountInString(s); n < f.min && f.check == nil {
		return "it is shorter than " + plural(f.min, "character")
	} else if f.words == nil && n > f.max {
		return "it is longer than " + plural(f.max, "character")
	}
	switch {
	case f.words != nil && !slices.Contains(f.words, s):
		return "it should be one of " + strings.Join(f.words, ", ")
	case f.check != nil && !f.check(s):
		return "it should be " + f.says
	}
	return ""
}

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

// parse reads t. Package time alone would let through 1:02:03 and fractions after a comma.
func (t Time) parse() (time.Time, error) {
	const template = "0000-00-00T00:00:00"
	s := string(t)
	whole := len(s) > len(template)
	for i := 0; whole && i < len(template); i++ {
		if template[i] == '0' {
			whole = s[i] >= '0' && s[i] <= '9'
		} else {
			whole = s[i] == template[i]
		}
	}
	if whole && s[len(template)] == '.' {
		n, rest := digits(s[len(template)+1:])
		whole = n > 0 && n <= 9 && rest == "Z"
	} else if whole {
		whole = s[len(template):] == "Z"
	}
	if !whole {
		return time.Time{}, errTime
	}
	return time.Parse(time.RFC3339Nano, s)
}
