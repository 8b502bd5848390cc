package httpx

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxQuery is the largest length of a query string, in bytes.
	maxQuery = 16 << 10
	// maxID is the largest length of an id, in bytes. No id is longer.
	maxID = 512
	// maxPage is the largest number of items on a page of a list.
	maxPage = 100
	// maxSaid is how many characters of a client's input are repeated to it.
	maxSaid = 40
)

// Param is a query parameter. Its Kind defaults to Text.
type Param struct {
	Name    string
	Doc     string // description for the API documentation
	Kind    Kind
	Default string   // the default value
	Words   []string // the values of a [Word]
	Min     int64    // for an [Int]
	Max     int64
}

// Kind is the type of a parameter.
type Kind int

// The kinds of parameters.
const (
	Text  Kind = iota // any text without control characters
	Word              // one of Words; empty means the default
	Int               // a whole number from Min to Max
	Share             // a number from 0 to 1
)

// The functions that return parameters take a name, or "name: description".

// named returns p with the name and description in name.
func named(name string, p Param) Param {
	p.Name, p.Doc, _ = strings.Cut(name, ": ")
	return p
}

// Texts returns parameters of any text.
func Texts(names ...string) []Param {
	all := make([]Param, len(names))
	for i, name := range names {
		all[i] = named(name, Param{})
	}
	return all
}

// AnyOf returns a parameter that is one of words, without a default.
func AnyOf(name string, words ...string) Param {
	return named(name, Param{Kind: Word, Words: words})
}

// OneOf returns a parameter that is one of words, by default the first.
func OneOf(name string, words ...string) Param {
	return named(name, Param{Kind: Word, Words: words, Default: words[0]})
}

// Number returns a parameter that is a whole number from least to most.
func Number(name string, normal, least, most int64) Param {
	return named(name, Param{Kind: Int, Default: strconv.FormatInt(normal, 10), Min: least, Max: most})
}

// PageParams returns the parameters of a list: cursor, and limit with its default.
func PageParams(normal int64) []Param {
	return append(
		Texts("cursor: next_cursor of the page before; without it, the first page"),
		Number("limit: how many items a page has at most", normal, 1, maxPage),
	)
}

// Params are the query parameters of a request.
type Params struct {
	known []Param
	given map[string]string
}

// ReadParams parses a query string. An unknown parameter is an error and not ignored: a misspelt filter must not return
// everything.
func ReadParams(query string, known []Param) (Params, error) {
	p := Params{known, map[string]string{}}
	if len(query) > maxQuery {
		return p, BadRequest(
			fmt.Sprintf("the query string has more than %d bytes", maxQuery), "omit what is not needed")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, BadRequest("the query string is not properly encoded", "curl --get --data-urlencode encodes")
	}
	for name, all := range values {
		at := slices.IndexFunc(known, func(k Param) bool { return k.Name == name })
		if at < 0 {
			names := make([]string, len(known))
			for i := range known {
				names[i] = known[i].Name
			}
			return p, BadRequest(fmt.Sprintf("there is no query parameter %q here", Said(name)),
				"there is "+cmp.Or(strings.Join(names, ", "), "none"))
		}
		if len(all) > 1 {
			return p, BadRequest(name+": it appears more than once", "give it once: "+name+"=…")
		}
		if err := known[at].check(all[0]); err != nil {
			return p, err
		}
		p.given[name] = all[0]
	}
	return p, nil
}

// check returns the problem with a value of the parameter, or nil.
func (k *Param) check(value string) error {
	detail, hint := "", fmt.Sprintf("%s=%s is what it is without the parameter", k.Name, k.Default)
	switch n, err := strconv.ParseInt(value, 10, 64); {
	case !IsClean(value):
		detail, hint = "it holds control characters, or bytes that are not UTF-8", "curl --get --data-urlencode encodes"
	case k.Kind == Word && value != "" && !slices.Contains(k.Words, value):
		detail, hint = fmt.Sprintf("there is no %q", Said(value)), "it is one of "+strings.Join(k.Words, ", ")
	case k.Kind == Int && (err != nil || n < k.Min || n > k.Max):
		detail = fmt.Sprintf("%q is not a whole number from %d to %d", Said(value), k.Min, k.Max)
	case k.Kind == Share:
		if f, err := strconv.ParseFloat(value, 64); err != nil || !(f >= 0 && f <= 1) { // rejects NaN
			detail = fmt.Sprintf("%q is not a number from 0 to 1", Said(value))
		}
	}
	if detail != "" {
		return BadRequest(k.Name+": "+detail, hint)
	}
	return nil
}

// Has reports whether a parameter was given and is not empty.
func (p Params) Has(name string) bool { return p.given[name] != "" }

// Get returns a parameter, or its default if it was not given.
func (p Params) Get(name string) string {
	if value := p.given[name]; value != "" {
		return value
	}
	for i := range p.known {
		if p.known[i].Name == name {
			return p.known[i].Default
		}
	}
	return ""
}

// Int returns a parameter as a whole number.
func (p Params) Int(name string) int {
	n, _ := strconv.Atoi(p.Get(name)) // checked by ReadParams
	return n
}

// Float returns a parameter as a number.
func (p Params) Float(name string) float64 {
	f, _ := strconv.ParseFloat(p.Get(name), 64) // checked by ReadParams
	return f
}

// Given returns the given parameters. The map must not be changed.
func (p Params) Given() map[string]string { return p.given }

// Query returns the store's query for a list: cursor, limit, and filters.
func (p Params) Query() *store.Query {
	return &store.Query{
		Text: p.Get("q"), Source: p.Get("source"), Conversation: p.Get("conversation"), Run: p.Get("run"),
		Verification: p.Get("verification"), Cursor: p.Get("cursor"), Limit: p.Int("limit"),
	}
}

// PathID returns the {id} of the path. A value that cannot be an id is not found, like any unknown id.
func (r *Request) PathID() (string, error) {
	if id := r.PathValue("id"); IsID(id) {
		return id, nil
	}
	return "", store.ErrNotFound
}

// IsID reports whether s can be an id.
func IsID(s string) bool { return s != "" && len(s) <= maxID && IsClean(s) }

// IsClean reports whether s is valid UTF-8 without control characters, which databases cannot all store.
func IsClean(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Said shortens a client's input so that it can be repeated to it.
func Said(s string) string {
	if s = strings.ToValidUTF8(s, "\ufffd"); utf8.RuneCountInString(s) <= maxSaid {
		return s
	}
	return text.Runes(s, maxSaid) + "…"
}

// BadRequest returns the problem of an invalid request.
func BadRequest(detail, hint string) *gateway.Problem {
	return gateway.NewProblem(gateway.CodeBadRequest, detail, hint)
}
