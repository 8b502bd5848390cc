package manifest

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// form says what a value must look like beyond its Go type. Parse and the schema are made of the same forms, so that
// what one of them refuses the other refuses, too; schema_test.go lists the exceptions.
type form struct {
	min, max int               // length of a string, value of a number, number of elements
	words    []string          // all that a string may be
	pattern  string            // of a string: a regular expression
	check    func(string) bool // of a string, for Parse: nil checks the pattern
	says     string            // what pattern or check wants, in words
	orOne    bool              // the only element of an array may stand there without its brackets
	def      string            // name among the definitions of the schema; empty: it is written where it is used
}

// forms are named by the form tags of the fields in manifest.go. A second name in a tag is the form of the elements.
var forms = map[string]*form{
	"version": matching(3, 11, `^1\.[0-9]{1,9}$`, "a version, 1 and a dot and a number"),
	"agent": matching(1, maxName, `^[a-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?$`,
		"a host in small letters, perhaps with a port and a path"),
	"id": matching(1, maxID, `^[A-Za-z0-9._~-]{1,128}$`, "an id of letters, digits and ._~-").named("id"),
	// the manifest's own addresses, which can be fetched
	"web": matching(8, maxOwnURL, `^https?://[^\x00-\x20\x7f]+$`, "an http or https URL"),
	// Addresses of sources. What is not fetched (another scheme, a private address) is for the verifier to say, source
	// by source; a manifest is not malformed because one of its sources is a file.
	"url": matching(3, MaxURL, `^[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f]+$`, "an absolute URL").named("url"),
	// The pattern leaves the length of months to Parse.
	"time": {
		min: 20, max: 30, pattern: timePattern.String(), says: "a time in UTC, as 2006-01-02T15:04:05Z", def: "time",
		check: func(s string) bool { return !Time(s).Time().IsZero() || strings.HasPrefix(s, "0001-01-01T00:00:00") },
	},
	// Sums by SHA-256. Parse lets other algorithms through, for Problems to say that they are not supported.
	"hash": {
		min: 3, max: maxHash, pattern: `^sha256:[0-9a-f]{64}$`, check: isHash, says: saysHash, def: "hash",
	},
	"private_hash": { // which may have a key
		min: 3, max: maxHash, pattern: `^(hmac-)?sha256:[0-9a-f]{64}$`, check: isHash, says: saysHash,
		def: "private_hash",
	},

	"name":       {min: 1, max: maxName},
	"tool":       {max: maxName},
	"title":      {max: MaxURL},
	"reference":  {min: 1, max: MaxURL}, // of a source: its URL or id
	"ref":        {min: 1, max: maxRef}, // of an output
	"text":       {min: 1, max: maxText},
	"exact":      {min: 1, max: maxExact},
	"around":     {max: maxAround},
	"reader":     {words: []string{ByPublisher, ByObserver}},
	"origin":     {words: []string{OriginProvider, OriginPublisher, OriginInferred}},
	"relation":   {words: []string{RelationSupports, RelationContradicts, RelationContext}},
	"confidence": {words: []string{ConfidenceHigh, ConfidenceMedium, ConfidenceLow, ConfidenceUnknown}},

	"natural": {max: maxInt},
	"number":  {min: 1, max: maxInt},
	"status":  {min: 100, max: 999},
	"score":   {max: 1},

	"sources":       {max: maxSources},
	"claims":        {max: maxClaims},
	"steps":         {max: maxSteps},
	"claim_sources": {min: 1, max: maxClaimSources},
	"refs":          {min: 1, max: maxSteps, orOne: true},
	"range":         {min: 2, max: 2, def: "range"},
}

var timePattern = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])` +
	`T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z$`)

const saysHash = "a hash, sha256: and 64 hexadecimal digits in small letters"

func matching(least, most int, pattern, says string) *form {
	return &form{
		min: least, max: most, pattern: pattern, check: regexp.MustCompile(pattern).MatchString, says: says,
	}
}

func (f *form) named(def string) *form {
	f.def = def
	return f
}

// refuses says what is wrong with a string, or nothing.
func (f *form) refuses(s string) string {
	n := utf8.RuneCountInString(s)
	switch {
	case f.words != nil && !slices.Contains(f.words, s):
		return "it should be one of " + strings.Join(f.words, ", ")
	case f.words != nil:
	case n < f.min && f.check == nil:
		return "it is shorter than " + plural(f.min, "character")
	case n > f.max:
		return "it is longer than " + plural(f.max, "character")
	case f.check != nil && !f.check(s):
		return "it should be " + f.says
	}
	return ""
}

// otherHash is a sum by an algorithm that this version does not have.
var otherHash = regexp.MustCompile(`^[A-Za-z0-9-]+:[A-Za-z0-9+/=_-]+$`)

func isHash(s string) bool {
	algorithm, sum, _ := strings.Cut(s, ":")
	if algorithm == "sha256" || algorithm == "hmac-sha256" {
		return len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
	}
	return otherHash.MatchString(s)
}

func isDigest(s string) bool { return strings.HasPrefix(s, "sha256:") && isHash(s) }

// isMadeOf reports whether all of s is ASCII letters, digits and the other characters.
func isMadeOf(s, others string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(others, r)
	})
}

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

// member is a field of one of the types in manifest.go that is a member in JSON.
type member struct {
	name     string
	required bool
	index    int   // of the field
	form     *form // of the value
	of       *form // of the elements of an array
}

// members are those of each type, in the order in which people read them. The field Extra has the others.
var members = membersOf(Manifest{}, Output{}, Source{}, Claim{}, ClaimSource{}, Excerpt{}, Step{})

func membersOf(structs ...any) map[reflect.Type][]member {
	all := map[reflect.Type][]member{}
	for _, s := range structs {
		t := reflect.TypeOf(s)
		for i := range t.NumField() {
			name, option, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			m := member{name: name, required: option == "", index: i, form: &form{}, of: &form{}}
			if tag := t.Field(i).Tag.Get("form"); tag != "" {
				of, elements, _ := strings.Cut(tag, ",")
				if m.form = forms[of]; m.form == nil || elements != "" && forms[elements] == nil {
					panic(fmt.Sprintf("%s.%s: there is no form %q", t, t.Field(i).Name, tag))
				}
				if elements != "" {
					m.of = forms[elements]
				}
			}
			all[t] = append(all[t], m)
		}
	}
	return all
}

// kindOf returns the type of JSON that a Go type is; empty: any.
func kindOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == rawType:
		return ""
	case t.Kind() == reflect.Struct:
		return "object"
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return "array"
	case t.Kind() == reflect.Int:
		return "integer"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Bool:
		return "boolean"
	}
	return "string"
}
