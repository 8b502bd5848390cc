package httpsig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Component names one thing that a signature covers: a field, in lower case, or a derived component, whose name begins
// with @. The parameters are those of RFC 9421.
type Component struct {
	Name      string
	SF        bool   // ;sf: the strict serialisation of a structured field whose type is known
	Key       string // ;key: one member of a dictionary field; empty: the whole field
	ByteSeq   bool   // ;bs: each field line as a byte sequence
	QueryName string // ;name: the parameter that @query-param means, percent-encoded
	Trailer   bool   // ;tr: a field of the trailer
	Request   bool   // ;req: of the request that the response answers
}

func (c *Component) derived() bool { return strings.HasPrefix(c.Name, "@") }

// check refuses components that are unknown or contradict themselves.
func (c *Component) check() error {
	if !c.derived() {
		switch {
		case !isToken(c.Name) || c.Name != strings.ToLower(c.Name):
			return errors.New("it is not the name of a field in lower case")
		case c.QueryName != "":
			return errors.New("a field takes no name")
		case c.ByteSeq && (c.SF || c.Key != ""):
			return errors.New("bs goes with neither sf nor key")
		}
		return nil
	}
	switch c.Name {
	case "@method", "@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query", "@query-param":
	case "@status":
		if c.Request {
			return errors.New("a request has no status")
		}
	default:
		return errors.New("unknown component")
	}
	switch {
	case c.SF || c.ByteSeq || c.Trailer || c.Key != "":
		return errors.New("it is not a field")
	case (c.Name == "@query-param") != (c.QueryName != ""):
		return errors.New("a name goes with @query-param and only with it")
	}
	return nil
}

// flags are the parameters that are there or not, in the order in which they are written.
func (c *Component) flags() []flag {
	return []flag{{"sf", &c.SF}, {"bs", &c.ByteSeq}, {"tr", &c.Trailer}, {"req", &c.Request}}
}

type flag struct {
	name string
	on   *bool
}

// set sets a parameter as it was parsed; false if it is unknown or its value is not of its type.
func (c *Component) set(param string, v any) bool {
	switch param {
	case "key":
		c.Key, _ = v.(string)
		return c.Key != ""
	case "name":
		c.QueryName, _ = v.(string)
		return c.QueryName != ""
	}
	for _, f := range c.flags() {
		if f.name == param {
			*f.on = v == true
			return *f.on
		}
	}
	return false
}

// item returns the component as it is written: req comes last.
func (c *Component) item() httpsfv.Item {
	item := httpsfv.NewItem(c.Name)
	for _, f := range c.flags() {
		if f.name == "req" {
			for _, text := range [][2]string{{"key", c.Key}, {"name", c.QueryName}} {
				if text[1] != "" {
					item.Params.Add(text[0], text[1])
				}
			}
		}
		if *f.on {
			item.Params.Add(f.name, true)
		}
	}
	return item
}

// covered is a component with its identifier in the base. Parameters keep the order in which they were sent.
type covered struct {
	Component
	id string
}

// readItems reads the components of a signature and refuses one that occurs twice, in whatever order its parameters
// are.
func readItems(items []httpsfv.Item) ([]covered, error) {
	if len(items) > MaxComponents {
		return nil, fmt.Errorf("it covers more than %d components", MaxComponents)
	}
	list := make([]covered, 0, len(items))
	seen := make(map[Component]bool, len(items))
	for _, item := range items {
		id, err := httpsfv.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("writing a component: %w", err)
		}
		name, ok := item.Value.(string)
		c := Component{Name: name}
		if !ok {
			err = errors.New("its name is not a string")
		}
		for _, param := range item.Params.Names() {
			if v, _ := item.Params.Get(param); err == nil && !c.set(param, v) {
				err = fmt.Errorf("parameter %s is unknown or not of its type", param)
			}
		}
		if err == nil {
			err = c.check()
		}
		if err == nil && seen[c] {
			err = errors.New("it occurs twice")
		}
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", id, err)
		}
		seen[c] = true
		list = append(list, covered{c, id})
	}
	return list, nil
}

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
	switch structured[name] {
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

// structured are the types of fields by the column Structured Type of the IANA registry of field names.
var structured = map[string]string{
	"accept-signature": "dictionary", "cdn-cache-control": "dictionary", "content-digest": "dictionary",
	"priority": "dictionary", "repr-digest": "dictionary", "signature": "dictionary", "signature-input": "dictionary",
	"want-content-digest": "dictionary", "want-repr-digest": "dictionary",
	"accept-ch": "list", "accept-query": "list", "cache-groups": "list", "cache-status": "list",
	"client-cert-chain": "list", "proxy-status": "list",
	"client-cert": "item", "deprecation": "item", "origin-agent-cluster": "item",
}

// readDictionary reads a field that is a dictionary of which single members are used.
func readDictionary(fields http.Header, name string) (*httpsfv.Dictionary, error) {
	lines, err := fieldLines(fields, name)
	var d *httpsfv.Dictionary
	if err == nil {
		d, err = parseDictionary(lines)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return d, nil
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
