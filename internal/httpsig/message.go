package httpsig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dunglas/httpsfv"
)

// Message is what a signature covers: a request, which has a Method and a TargetURI, or a response, which has a Status.
// It is plain data and is never changed here. The names of fields are in the canonical form of [http.Header].
type Message struct {
	Status    int         // of a response; 0 for a request
	Header    http.Header // field lines as received
	Trailer   http.Header // field lines after the body, for components with ;tr
	Method    string      // of a request
	TargetURI string      // of a request: absolute, http or https, ASCII, without fragment and user information
	Request   *Message    // of a response: the request that it answers; if nil, components with ;req are refused
}

// value returns the value of a component in the base: RFC 9421 §2.1 and §2.2.
func (m *Message) value(c Component) (string, error) {
	if c.Request {
		switch {
		case m.Status == 0:
			return "", errors.New("a request answers no request")
		case m.Request == nil:
			return "", errors.New("the request is unknown")
		case m.Request.Status != 0:
			return "", errors.New("a response is given as the request")
		}
		c.Request = false
		return m.Request.value(c)
	}
	if !strings.HasPrefix(c.Name, "@") {
		return m.field(c)
	}
	if c.Name == "@status" {
		if m.Status < 100 || m.Status > 999 {
			return "", errors.New("the message is not a response")
		}
		return strconv.Itoa(m.Status), nil
	}
	if m.Status != 0 || !isToken(m.Method) {
		return "", errors.New("the message is not a request")
	}
	t, err := parseTarget(m.TargetURI)
	if err != nil {
		return "", err
	}
	switch c.Name {
	case "@method":
		return m.Method, nil
	case "@target-uri":
		return m.TargetURI, nil
	case "@authority":
		return t.authority, nil
	case "@scheme":
		return t.scheme, nil
	case "@path":
		return t.path, nil
	case "@query":
		return "?" + strings.TrimPrefix(t.query, "?"), nil
	case "@query-param":
		return t.param(c.QueryName)
	case "@request-target":
		// An origin server sees the origin form. The forms for proxies, and OPTIONS *, are unknown here.
		if m.Method == http.MethodConnect || m.Method == http.MethodOptions {
			return "", fmt.Errorf("the request target of %s is unknown", m.Method)
		}
		return t.path + t.query, nil
	}
	return "", errors.New("unknown component")
}

// target is a target URI in pieces, unchanged.
type target struct {
	scheme    string // lower case
	authority string // lower case, without the scheme's default port
	path      string // "/" if there is none
	query     string // with its question mark, or empty
}

func parseTarget(uri string) (*target, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, errors.New("the target URI is not a URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the target URI is neither http nor https")
	case u.Hostname() == "" || u.User != nil || strings.Contains(uri, "#"):
		return nil, errors.New("the target URI has no host, or user information or a fragment")
	case strings.ContainsFunc(uri, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r)
	}):
		return nil, errors.New("the target URI has characters that a URL cannot have")
	}
	rest := uri[strings.Index(uri, "//")+2:]
	end := len(rest)
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		end = i
	}
	path, query, asks := strings.Cut(rest[end:], "?")
	if asks {
		query = "?" + query
	}
	if path == "" {
		path = "/"
	}
	authority := strings.ToLower(rest[:end])
	defaultPort := ":80"
	if u.Scheme == "https" {
		defaultPort = ":443"
	}
	return &target{u.Scheme, strings.TrimSuffix(strings.TrimSuffix(authority, defaultPort), ":"), path, query}, nil
}

// param returns the value of the only query parameter with this name, which is encoded as in the base.
func (t *target) param(name string) (string, error) {
	var found []string
	for pair := range strings.SplitSeq(strings.TrimPrefix(t.query, "?"), "&") {
		if pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		k, err := recode(k)
		if err != nil {
			return "", err
		}
		if k == name {
			found = append(found, v)
		}
	}
	switch len(found) {
	case 0:
		return "", errors.New("there is no such query parameter")
	case 1:
		return recode(found[0])
	}
	return "", errors.New("there are several query parameters with this name")
}

// recode decodes a name or value of a query and encodes it by the rule of RFC 9421 §2.2.8: everything except letters,
// digits and the characters *-._ becomes percent-encoded octets, including the space.
func recode(s string) (string, error) {
	plain, err := url.QueryUnescape(s)
	if err != nil || !utf8.ValidString(plain) {
		return "", errors.New("the query cannot be decoded")
	}
	s = strings.ReplaceAll(url.QueryEscape(plain), "+", "%20")
	return strings.NewReplacer("%2A", "*", "~", "%7E").Replace(s), nil
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') &&
			!strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// Component names a part of a message that a signature covers: a field, in lower case, or a derived component, whose
// name begins with @. The parameters are those of RFC 9421.
type Component struct {
	Name      string
	SF        bool   // ;sf: the strict serialisation of a structured field whose type is known
	Key       string // ;key: one member of a dictionary field; empty means the whole field
	ByteSeq   bool   // ;bs: each field line as a byte sequence
	QueryName string // ;name: the parameter for @query-param, percent-encoded
	Trailer   bool   // ;tr: a field of the trailer
	Request   bool   // ;req: of the request that the response answers
}

// check refuses components that are unknown or contradictory.
func (c *Component) check() error {
	if !strings.HasPrefix(c.Name, "@") {
		switch {
		case !isToken(c.Name) || c.Name != strings.ToLower(c.Name):
			return errors.New("it is not the name of a field in lower case")
		case c.QueryName != "":
			return errors.New("a field has no name parameter")
		case c.ByteSeq && (c.SF || c.Key != ""):
			return errors.New("bs cannot be combined with sf or key")
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
		return errors.New("@query-param requires a name, and no other component allows it")
	}
	return nil
}

// flags returns the boolean parameters, in the order in which they are written.
func (c *Component) flags() []flag {
	return []flag{{"sf", &c.SF}, {"bs", &c.ByteSeq}, {"tr", &c.Trailer}, {"req", &c.Request}}
}

type flag struct {
	name string
	on   *bool
}

// set sets a parsed parameter, and returns false if it is unknown or its value has the wrong type.
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

// item returns the component as it is written; req comes last.
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

// covered is a component with its identifier in the base. Parameters keep their original order.
type covered struct {
	Component
	id string
}

// readItems reads the components of a signature and refuses one that occurs twice, whatever the order of its
// parameters.
func readItems(items []httpsfv.Item) ([]covered, error) {
	if len(items) > maxComponents {
		return nil, fmt.Errorf("it covers more than %d components", maxComponents)
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
				err = fmt.Errorf("parameter %s is unknown or has the wrong type", param)
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
		return "", errors.New("its value has characters other than printable ASCII")
	}
	return value, nil
}

// fold matches an obsolete line folding, which means one space: RFC 9112 §5.2. Any other line break is refused, as it
// would make the line look like two in the base.
var fold = regexp.MustCompile(`[ \t]*\r?\n[ \t]+`)

// fieldLines returns the lines of a field without folds and surrounding white space, or nil if there are none. More
// than maxField bytes are refused before they are processed.
func fieldLines(fields http.Header, name string) ([]string, error) {
	length := 0
	for _, line := range fields[http.CanonicalHeaderKey(name)] {
		if length += len(line); length > maxField {
			return nil, fmt.Errorf("it is longer than %d bytes", maxField)
		}
	}
	var lines []string
	for _, line := range fields[http.CanonicalHeaderKey(name)] {
		if strings.ContainsAny(line, "\r\n") {
			if line = fold.ReplaceAllLiteralString(line, " "); strings.ContainsAny(line, "\r\n") {
				return nil, errors.New("its value has a line break")
			}
		}
		lines = append(lines, strings.Trim(line, " \t"))
	}
	return lines, nil
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

// strict returns the strict serialisation of a field that is known to be structured. The type cannot be inferred from
// the value, so unknown fields are refused.
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
		return "", errors.New("its type of structured field is unknown")
	}
	if err != nil {
		return "", fmt.Errorf("it is not a structured field: %w", err)
	}
	return httpsfv.Marshal(v)
}

// structured has the types of fields from the column Structured Type of the IANA registry of field names.
var structured = map[string]string{
	"accept-signature": "dictionary", "cdn-cache-control": "dictionary", "content-digest": "dictionary",
	"priority": "dictionary", "repr-digest": "dictionary", "signature": "dictionary", "signature-input": "dictionary",
	"want-content-digest": "dictionary", "want-repr-digest": "dictionary",
	"accept-ch": "list", "accept-query": "list", "cache-groups": "list", "cache-status": "list",
	"client-cert-chain": "list", "proxy-status": "list",
	"client-cert": "item", "deprecation": "item", "origin-agent-cluster": "item",
}

// readDictionary reads a dictionary field whose members are used individually.
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

// parseDictionary parses a dictionary whose members are used individually. It accepts only the canonical spelling: RFC
// 9651 keeps the last of duplicate keys or parameters, and a reader that uses the first would see something other than
// what was signed.
func parseDictionary(lines []string) (*httpsfv.Dictionary, error) {
	text := strings.Join(lines, ", ")
	if len(text) > maxField {
		return nil, fmt.Errorf("it is longer than %d bytes", maxField)
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, fmt.Errorf("it is not a dictionary: %w", err)
	}
	again, err := httpsfv.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("it cannot be serialized: %w", err)
	}
	if again != text && withoutSpace(again) != withoutSpace(text) {
		return nil, errors.New(
			"it is not in canonical form: a key or parameter occurs twice, or a value has another spelling",
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
