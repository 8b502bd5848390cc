package trail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// value is one value of a document.
type value struct {
	raw  json.RawMessage
	line int // from 1
}

// input is the values of a document.
type input struct {
	all    []value
	issues []ibid.Issue
	lines  bool // one value a line, some of which were left out
}

// split cuts a document into its values. Where they are one a line, a bad line is reported and passed over: a program
// that died while it wrote one leaves it. NaN and Infinity, which are no JSON and which many programs write, are
// reported and null.
func split(b []byte) (*input, error) {
	if values, ok := decode(b); ok {
		return &input{all: values}, nil
	}
	text := withoutNaN(b)
	if values, ok := decode(text.fixed); ok {
		return &input{all: values, issues: text.issues()}, nil
	}
	return text.lines()
}

// decode returns the values of a document that is nothing but JSON.
func decode(b []byte) (values []value, ok bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	line, at := 1, 0
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return values, errors.Is(err, io.EOF)
		}
		end := int(d.InputOffset())
		begin := end - len(raw)
		line += bytes.Count(b[at:begin], []byte("\n"))
		values = append(values, value{raw, line})
		line += bytes.Count(raw, []byte("\n"))
		at = end
	}
}

// nearlyJSON is a document without the tokens of numbers that are none.
type nearlyJSON struct {
	original, fixed []byte
	tokens          []token
}

// token is a number that is none.
type token struct {
	at, fixedAt int // where it stood, and where null stands for it
	text        string
}

const null = "null"

// withoutNaN puts null in the place of NaN, Infinity and -Infinity, but for what stands in a string. A string ends with
// its line at the latest.
func withoutNaN(b []byte) *nearlyJSON {
	text := &nearlyJSON{original: b, fixed: b}
	if !bytes.Contains(b, []byte("NaN")) && !bytes.Contains(b, []byte("Infinity")) {
		return text
	}
	text.fixed = make([]byte, 0, len(b)+len(b)/16)
	quoted := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\n':
			quoted = false
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted && i+1 < len(b):
			text.fixed = append(text.fixed, c)
			i++
		case !quoted:
			if word := noNumber(b[i:]); word != "" {
				text.tokens = append(text.tokens, token{i, len(text.fixed), word})
				text.fixed = append(text.fixed, null...)
				i += len(word) - 1
				continue
			}
		}
		text.fixed = append(text.fixed, b[i])
	}
	return text
}

// noNumber returns the number that is none with which b begins; empty: it begins with something else.
func noNumber(b []byte) string {
	if b[0] != 'N' && b[0] != 'I' && b[0] != '-' {
		return ""
	}
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return word
		}
	}
	return ""
}

// maxTokens is how many numbers that are none are reported one by one.
const maxTokens = 100

// issues reports the numbers that are none.
func (n *nearlyJSON) issues() (issues []ibid.Issue) {
	for i, t := range n.tokens {
		detail := fmt.Sprintf("%s: %s is no number of JSON; it counts as null", place(n.original, t.at), t.text)
		if i == maxTokens {
			detail = fmt.Sprintf("%d more numbers are NaN or Infinity", len(n.tokens)-i)
		}
		issues = append(issues, ibid.Issue{Code: issueNumber, Detail: detail})
		if i == maxTokens {
			break
		}
	}
	return issues
}

// place returns line and column of an offset, both from 1. Columns count characters.
func place(b []byte, at int) string {
	at = min(max(0, at), len(b))
	line := bytes.LastIndexByte(b[:at], '\n') + 1
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(b[:at], []byte("\n")), 1+utf8.RuneCount(b[line:at]))
}

// lines reads a document with a value in each line.
func (n *nearlyJSON) lines() (*input, error) {
	d := &input{issues: n.issues(), lines: true}
	number := 0
	for line := range bytes.SplitSeq(n.fixed, []byte("\n")) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var raw json.RawMessage
		err := json.Unmarshal(line, &raw)
		switch {
		case err == nil && line[0] == '{':
			d.all = append(d.all, value{raw, number})
		case len(d.all) == 0:
			return nil, n.whyBad()
		case err == nil:
			return nil, malformed("line %d: %s, want a step", number, describe(raw))
		default:
			d.issues = append(
				d.issues,
				ibid.Issue{Code: issueBadJSON, Detail: fmt.Sprintf("line %d: %v; it was left out", number, err)},
			)
		}
	}
	return d, nil
}

// whyBad says what is wrong with a document that is no JSON.
func (n *nearlyJSON) whyBad() error {
	if b := n.original; bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return malformed("it is UTF-16, want UTF-8")
	} else if bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b) {
		return malformed("it is no text, want JSON")
	}
	var raw json.RawMessage
	err := json.Unmarshal(n.fixed, &raw)
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return malformed("%w", err)
	}
	at := int(syntax.Offset) - 1
	if strings.HasPrefix(err.Error(), "unexpected end") {
		at = len(bytes.TrimRight(n.fixed, " \t\r\n"))
	}
	for i := len(n.tokens) - 1; i >= 0; i-- {
		if t := &n.tokens[i]; t.fixedAt+len(null) <= at {
			at += t.at + len(t.text) - t.fixedAt - len(null)
			break
		}
	}
	return malformed("%s: %w", place(n.original, at), err)
}
