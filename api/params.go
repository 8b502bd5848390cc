package api

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
)

// How many items a page of a list has: unless told otherwise, and at most.
const (
	defaultLimit = 20
	maxLimit     = 100
)

const (
	// maxQuery is how long a query string can be, in bytes.
	maxQuery = 16 << 10
	// maxID is how long an id can be, in bytes. There are none longer.
	maxID = 512
)

// asJSON is the value of as that means the answer document.
const asJSON = "json"

// params are the query parameters of a request.
type params map[string]string

// readParams reads a query string. A parameter that the endpoint does not have is an error and not left alone: who
// misspells a filter must not get everything.
func readParams(query string, known []string) (params, error) {
	if len(query) > maxQuery {
		return nil, badRequest(
			fmt.Sprintf("the query string has more than %d bytes", maxQuery), "leave out what is not needed",
		)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, badRequest("the query string is not properly encoded", "curl --get --data-urlencode encodes")
	}
	p := params{}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, badRequest(
				fmt.Sprintf("there is no query parameter %q here", cut(name)),
				"there is "+cmp.Or(strings.Join(known, ", "), "none"),
			)
		case len(all) > 1:
			return nil, badRequest(name+": it is given more than once", "give it once: "+name+"=…")
		case !isClean(all[0]):
			return nil, badRequest(
				name+": it holds control characters, or bytes that are not UTF-8",
				"curl --get --data-urlencode encodes",
			)
		}
		p[name] = all[0]
	}
	return p, nil
}

// cut shortens what a client sent to what can be repeated to it.
func cut(s string) string {
	const most = 40
	s = strings.ToValidUTF8(s, "\ufffd")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// isClean reports whether s can be looked for at all: databases keep neither NUL nor what is no text.
func isClean(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func badRequest(detail, hint string) error {
	return &gateway.Problem{Status: http.StatusBadRequest, Code: gateway.CodeBadRequest, Detail: detail, Hint: hint}
}

// choice returns the parameter's value, which must be one of words; the first one if it is not given.
func (p params) choice(name string, words []string) (string, error) {
	value := p[name]
	switch {
	case value == "":
		return words[0], nil
	case slices.Contains(words, value):
		return value, nil
	}
	return "", badRequest(
		fmt.Sprintf("%s: there is no %q", name, cut(value)),
		"it is one of "+strings.Join(words, ", "),
	)
}

// number returns the parameter's value as a whole number from least to most; def if it is not given.
func (p params) number(name string, def, least, most int64) (int64, error) {
	value, given := p[name]
	if !given {
		return def, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > most {
		return 0, badRequest(fmt.Sprintf("%s: %q is not a whole number from %d to %d", name, cut(value), least, most),
			fmt.Sprintf("%s=%d is what it is without the parameter", name, def))
	}
	return n, nil
}

// share returns the parameter's value as a number from 0 to 1; def if it is not given.
func (p params) share(name string, def float64) (float64, error) {
	value, given := p[name]
	if !given {
		return def, nil
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f >= 0 && f <= 1) { // so that NaN is none
		return 0, badRequest(fmt.Sprintf("%s: %q is not a number from 0 to 1", name, cut(value)),
			fmt.Sprintf("%s=%v is what it is without the parameter", name, def))
	}
	return f, nil
}

// query returns what the parameters ask of a list.
func (p params) query() (*store.Query, error) { return p.page(defaultLimit) }

// page returns what the parameters ask of a list whose pages have limit items unless told otherwise.
func (p params) page(limit int64) (*store.Query, error) {
	limit, err := p.number("limit", limit, 1, maxLimit)
	if err != nil {
		return nil, err
	}
	return &store.Query{
		Text:         p["q"],
		Source:       p["source"],
		Conversation: p["conversation"],
		Run:          p["run"],
		Verification: p["verification"],
		Cursor:       p["cursor"],
		Limit:        int(limit),
	}, nil
}

// document returns how answer documents are wanted. The unit is empty if it is not said.
func (p params) document() (ibid.DocumentOptions, error) {
	unit, err := p.choice("unit", words(ibid.Units()))
	if err != nil {
		return ibid.DocumentOptions{}, err
	}
	if p["unit"] == "" {
		unit = ""
	}
	style, err := p.choice("style", words(ibid.Styles()))
	return ibid.DocumentOptions{Unit: ibid.Unit(unit), Style: ibid.Style(style)}, err
}

// form returns what an answer is wanted as: JSON unless told otherwise. What only changes JSON is refused for other
// forms.
func (p params) form() (string, error) {
	form, err := p.choice("as", forms())
	if err != nil || form == asJSON {
		return form, err
	}
	switch {
	case p["style"] != "":
		return "", badRequest("style: it belongs to as=json", "leave out one of them")
	case p["unit"] != "" && form != string(export.OpenAI) && form != string(export.LangChain):
		return "", badRequest("unit: it belongs to as=json, and to as=openai and as=langchain", "leave out one of them")
	}
	return form, nil
}

func forms() []string {
	return slices.Concat([]string{asJSON}, words(ibid.Styles()), words(biblio.Formats()), words(export.Formats()))
}

// words returns names as they stand in a query.
func words[T ~string](names []T) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = string(name)
	}
	return all
}

// pathID returns the id in the path. What cannot be one is not found, like any id that is not there.
func (r *request) pathID() (string, error) {
	id := r.PathValue("id")
	if id == "" || len(id) > maxID || !isClean(id) {
		return "", store.ErrNotFound
	}
	return id, nil
}
