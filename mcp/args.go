package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// readArgs reads the arguments of a call. One that the tool does not have is an error: who misspells a limit must not
// do without it.
func readArgs(raw json.RawMessage, into any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, end := d.Token(); errors.Is(end, io.EOF) {
			return nil
		}
		err = errors.New("there is more than one value")
	}
	hint := "the tool's input schema says what it takes"
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if kind.Field == "" {
			return refuse("the arguments must be a JSON object, and not a JSON "+kind.Value, hint)
		}
		return refuse(fmt.Sprintf("%s: it must not be a JSON %s", cut(kind.Field), cut(kind.Value)), hint)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return refuse("there is no argument "+cut(name), hint)
	}
	return refuse("the arguments cannot be read: "+cut(strings.TrimPrefix(err.Error(), "json: ")), hint)
}

// text is an argument that is text, or an object whose JSON is the text: models send either.
type text string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		*t = text(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// choice returns the word that was chosen, which must be one of words; the first if none was.
func choice[T ~string](name, said string, words []T) (T, error) {
	if said == "" {
		return words[0], nil
	}
	if i := slices.Index(words, T(said)); i >= 0 {
		return words[i], nil
	}
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return "", refuse(fmt.Sprintf("%s: there is no %q", name, cut(said)), "it is one of "+strings.Join(list, ", "))
}

// number returns a whole number that was said, which must lie within bounds; def if it was not.
func number(name string, said *int, def, least, most int) (int, error) {
	if said == nil {
		return def, nil
	}
	if *said < least || *said > most {
		return 0, refuse(
			fmt.Sprintf("%s: %d is not a whole number from %d to %d", name, *said, least, most),
			fmt.Sprintf("without it, it is %d", def),
		)
	}
	return *said, nil
}

// share returns a threshold that was said; def if it was not.
func share(name string, said *float64, def float64) (float64, error) {
	if said == nil {
		return def, nil
	}
	if !(*said > 0 && *said <= 1) {
		return 0, refuse(
			fmt.Sprintf("%s: %v is not a number above 0 and up to 1", name, *said),
			fmt.Sprintf("without it, it is %v", def),
		)
	}
	return *said, nil
}

// shown says how an answer is to be shown.
type shown struct {
	Style string `json:"style"`
	Unit  string `json:"unit"`
	// Document says whether the answer document is wanted; nil: it is.
	Document *bool `json:"document"`
}

// showing is shown, checked.
type showing struct {
	style    ibid.Style
	unit     ibid.Unit
	document bool
}

func (s *shown) check() (*showing, error) {
	style, err := choice("style", s.Style, ibid.Styles())
	if err != nil {
		return nil, err
	}
	unit, err := choice("unit", s.Unit, ibid.Units())
	return &showing{style, unit, s.Document == nil || *s.Document}, err
}

// documentOf returns the answer document, without cited_text, which stands beside it; nil: it is not wanted.
func (s *showing) documentOf(a *ibid.Answer, id string) *ibid.Document {
	if !s.document {
		return nil
	}
	return a.Document(&ibid.DocumentOptions{Unit: s.unit, Style: s.style, Bare: true, AnswerID: id})
}
