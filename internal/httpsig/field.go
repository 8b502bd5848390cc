package httpsig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// field returns the value of a component that is a field: RFC 9421 §2.1.
func (m *Message) field(c Component) (string, error) {
	fields := m.Header
	if c.Trailer {
		fields = m.Trailer
	}
	lines, err := fieldLines(fields, c.Name)
	switch {
	case err != nil:
		return "", err
	case lines == nil:
		return "", errors.New("the message does not have it")
	case c.ByteSeq:
		for i, line := range lines {
			lines[i] = ":" + base64.StdEncoding.EncodeToString([]byte(line)) + ":"
		}
	case c.Key != "":
		return member(lines, c.Key)
	case c.SF:
		return strict(lines, c.Name)
	}
	value := strings.Join(lines, ", ")
	if strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r >= 0x7f) }) {
		return "", errors.New("its value is not of printable ASCII characters")
	}
	return value, nil
}

// fieldLines returns the lines of a field without folds and surrounding white space; nil if there are none. More than
// MaxField bytes are refused before anything looks at them.
func fieldLines(fields http.Header, name string) ([]string, error) {
	length := 0
	for _, line := range fields[http.CanonicalHeaderKey(name)] {
		if length += len(line); length > MaxField {
			return nil, fmt.Errorf("it is longer than %d bytes", MaxField)
		}
	}
	var lines []string
	for _, line := range fields[http.CanonicalHeaderKey(name)] {
		line, err := unfold(line)
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.Trim(line, " \t"))
	}
	return lines, nil
}

// unfold replaces each obsolete line folding by one space: RFC 9112 §5.2. A line break that is none is refused: it
// would make the signer's line look like two in the base.
func unfold(line string) (string, error) {
	if !strings.ContainsAny(line, "\r\n") {
		return line, nil
	}
	var b strings.Builder
	for {
		first, rest, folded := strings.Cut(line, "\n")
		if folded {
			first = strings.TrimRight(strings.TrimSuffix(first, "\r"), " \t")
		}
		line = strings.TrimLeft(rest, " \t")
		if strings.Contains(first, "\r") || folded && len(line) == len(rest) {
			return "", errors.New("its value has a line break")
		}
		b.WriteString(first)
		if !folded {
			return b.String(), nil
		}
		b.WriteByte(' ')
	}
}

// member returns the strict serialisation of one member of a dictionary field.
func member(lines []string, key string) (string, error) {
	d, err := parseDictionary(lines)
	if err != nil {
		return "", err
	}
	switch v, _ := d.Get(key); v := v.(type) {
	case httpsfv.Item:
		return httpsfv.Marshal(v)
	case httpsfv.InnerList:
		return httpsfv.Marshal(v)
	}
	return "", errors.New("the field has no such member")
}

// strict returns the strict serialisation of a field that is known to be structured. What type a field has cannot be
// seen from its value, so that fields that are not known are refused.
func strict(lines []string, name string) (string, error) {
	var v httpsfv.StructuredFieldValue
	var err error
	switch structuredType(name) {
	case "dictionary":
		v, err = httpsfv.UnmarshalDictionary(lines)
	case "list":
		v, err = httpsfv.UnmarshalList(lines)
	case "item":
		v, err = httpsfv.UnmarshalItem(lines)
	default:
		return "", errors.New("what type of structured field it is is not known")
	}
	if err != nil {
		return "", fmt.Errorf("it is not a structured field: %w", err)
	}
	return httpsfv.Marshal(v)
}

// structuredType returns the type of a field by the column Structured Type of the IANA registry of field names; empty
// if it is not known here.
func structuredType(name string) string {
	switch name {
	case "accept-signature", "cdn-cache-control", "content-digest", "priority", "repr-digest", "signature",
		"signature-input", "want-content-digest", "want-repr-digest":
		return "dictionary"
	case "accept-ch", "accept-query", "cache-groups", "cache-status", "client-cert-chain", "proxy-status":
		return "list"
	case "client-cert", "deprecation", "origin-agent-cluster":
		return "item"
	}
	return ""
}

// parseDictionary parses a dictionary of which single members are used. It takes only what has one spelling: of a key
// or a parameter that occurs twice RFC 9651 keeps the last, and who reads the first would see something else than was
// signed.
func parseDictionary(lines []string) (*httpsfv.Dictionary, error) {
	text := strings.Join(lines, ", ")
	if len(text) > MaxField {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxField)
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, fmt.Errorf("it is not a dictionary: %w", err)
	}
	again, err := httpsfv.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("it cannot be written again: %w", err)
	}
	if again != text && withoutSpace(again) != withoutSpace(text) {
		return nil, errors.New(
			"it is not written in the one way: a key or parameter occurs twice, or a value is spelt otherwise",
		)
	}
	return d, nil
}

// withoutSpace returns a structured field without the white space outside its strings.
func withoutSpace(s string) string {
	var b strings.Builder
	quoted, escaped := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = quoted
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t'):
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
