package support

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// answerText returns the text of a response, or "" if it has none.
func answerText(body []byte) string {
	a, err := ibid.Decode(body, &ibid.DecodeOptions{Format: "openai-chat", One: true})
	if err != nil || a.Error != nil {
		return ""
	}
	return a.Text
}

// readRulings reads the model's answer. It accepts only objects of the requested form, with an identifier of ours that
// occurs once, and one of the three labels.
func readRulings(text, mark string, batch []*question) {
	byID := map[string]*question{}
	for i, q := range batch {
		q.answer = ruling{Label: Unjudged, Detail: "the model gave no verdict for this claim"}
		byID[claimID(mark, i)] = q
	}
	verdicts, err := parseVerdicts(bareJSON(text))
	if err != nil {
		for _, q := range batch {
			q.answer.Detail = "the model's answer does not have the requested form"
		}
		return
	}
	seen := map[string]bool{}
	for _, s := range verdicts {
		q := byID[s.id]
		if q == nil {
			continue
		}
		if seen[s.id] {
			q.answer = ruling{Label: Unjudged, Detail: "the model gave two verdicts for this claim"}
			continue
		}
		seen[s.id] = true
		if label := Label(s.verdict); isJudged(label) {
			q.answer = ruling{Label: label, Quotes: s.quotes}
		} else {
			q.answer = ruling{Label: Unjudged, Detail: "the model's label is not one of the three"}
		}
	}
}

// modelVerdict is one element of a model's answer.
type modelVerdict struct {
	id, verdict string
	quotes      []string
}

// parseVerdicts parses {"verdicts":[{"id","quotes","verdict"}]}, with nothing before or after it. It ignores other
// members.
func parseVerdicts(text string) ([]modelVerdict, error) {
	var all []modelVerdict
	err := eachChild([]byte(text), '{', func(name string, list []byte) error {
		if name != "verdicts" {
			return nil
		}
		return eachChild(list, '[', func(_ string, object []byte) error {
			var s modelVerdict
			err := s.read(object)
			all = append(all, s)
			return err
		})
	})
	return all, err
}

// read parses one element. Small models write one quote as a string.
func (s *modelVerdict) read(object []byte) error {
	labelled := false
	return eachChild(object, '{', func(name string, value []byte) error {
		switch name {
		case "id":
			return json.Unmarshal(value, &s.id)
		case "quotes", "quote":
			if value[0] != '"' {
				return json.Unmarshal(value, &s.quotes)
			}
			s.quotes = make([]string, 1)
			return json.Unmarshal(value, &s.quotes[0])
		case "verdict":
			if labelled {
				return errors.New("there are two verdicts")
			}
			labelled = true
			return json.Unmarshal(value, &s.verdict)
		}
		return nil
	})
}

// eachChild calls f with the members of a JSON object, or the elements of an array, that begins with open: the name and
// the bytes. Nothing may follow the value.
func eachChild(value []byte, open json.Delim, f func(name string, child []byte) error) error {
	d := json.NewDecoder(bytes.NewReader(value))
	if t, err := d.Token(); err != nil || t != open {
		return fmt.Errorf("it does not begin with %s", open)
	}
	for d.More() {
		name := ""
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return err
			}
			name, _ = t.(string) // a name is always a string
		}
		var child json.RawMessage
		if err := d.Decode(&child); err != nil {
			return err
		}
		if err := f(name, child); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one value")
	}
	return nil
}

// bareJSON strips what models put around JSON: thoughts, and a code fence.
func bareJSON(text string) string {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "<think>") {
		if _, after, ok := strings.Cut(text, "</think>"); ok {
			text = strings.TrimSpace(after)
		}
	}
	if strings.HasPrefix(text, "```") {
		_, text, _ = strings.Cut(text, "\n")
		text = strings.TrimSpace(strings.TrimSuffix(text, "```"))
	}
	return text
}

// yesOrNo reads the answer of a model that answers only Yes or No.
func yesOrNo(text string) ruling {
	switch strings.ToLower(strings.TrimRight(strings.TrimSpace(text), ".!")) {
	case "yes":
		return ruling{Label: Supported, Whole: true}
	case "no":
		return ruling{Label: Unsupported}
	}
	return ruling{Label: Unjudged, Detail: "the model answered neither Yes nor No"}
}

// straight are the plain forms of quotation marks and dashes, which models write instead of those that they copy.
var straight = map[rune]rune{
	'‘': '\'', '’': '\'', '‚': '\'', '“': '"', '”': '"', '„': '"', '‐': '-', '‑': '-', '–': '-', '—': '-',
}

// findQuote finds a quote in a passage; any run of white space equals any other, and so do the shapes of quotation
// marks and dashes.
func findQuote(passage, quote string) (ibid.Span, bool) {
	want, _ := flatten(strings.TrimSpace(quote))
	flat, places := flatten(passage)
	at := bytes.Index(flat, want)
	if at < 0 || len(want) == 0 {
		return ibid.Span{}, false
	}
	return ibid.Span{Start: places[at].Start, End: places[at+len(want)-1].End}, true
}

// flatten returns a text as quotes are compared, and for each of its bytes the place of its character in text.
func flatten(text string) (flat []byte, places []ibid.Span) {
	flat, places = make([]byte, 0, len(text)), make([]ibid.Span, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		was := len(flat)
		switch plain := straight[r]; {
		case unicode.IsSpace(r):
			if was > 0 && flat[was-1] != ' ' {
				flat = append(flat, ' ')
			}
		case plain != 0:
			flat = utf8.AppendRune(flat, plain)
		default:
			flat = append(flat, text[i:i+n]...) // also bytes that are not UTF-8
		}
		for range flat[was:] {
			places = append(places, ibid.Span{Start: i, End: i + n})
		}
		i += n
	}
	return flat, places
}
