package httpsig

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Message is what a signature covers: a request, which has a Method and a TargetURI, or a response, which has a Status.
// It is plain data; nothing here changes it. The names of fields are in the canonical form of [http.Header].
type Message struct {
	Status    int         // of a response; 0: a request
	Header    http.Header // field lines as received
	Trailer   http.Header // field lines after the body, for components with ;tr
	Method    string      // of a request
	TargetURI string      // of a request: absolute, http or https, ASCII, without fragment and user information
	Request   *Message    // of a response: the request that it answers; nil: components with ;req are refused
}

// value returns what stands in the base for a component: RFC 9421 §2.1 and §2.2.
func (m *Message) value(c Component) (string, error) {
	if c.Request {
		switch {
		case m.Status == 0:
			return "", errors.New("a request answers no request")
		case m.Request == nil:
			return "", errors.New("the request is not known")
		case m.Request.Status != 0:
			return "", errors.New("a response is given as the request")
		}
		c.Request = false
		return m.Request.value(c)
	}
	if !c.derived() {
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
		// An origin server sees the origin form. What a proxy is sent, and OPTIONS *, is not known here.
		if m.Method == http.MethodConnect || m.Method == http.MethodOptions {
			return "", fmt.Errorf("the request target of %s is not known", m.Method)
		}
		return t.path + t.query, nil
	}
	return "", errors.New("unknown component")
}

// target is a target URI in pieces, as they are written in it.
type target struct {
	scheme    string // lower case
	authority string // lower case, without the scheme's own port
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
	own := ":80"
	if u.Scheme == "https" {
		own = ":443"
	}
	return &target{u.Scheme, strings.TrimSuffix(strings.TrimSuffix(authority, own), ":"), path, query}, nil
}

// param returns the value of the one query parameter of this name, which is encoded as in the base.
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
	return "", errors.New("there are several query parameters of this name")
}

// recode decodes a name or value of a query and encodes it by the rule of RFC 9421 §2.2.8: all but letters, digits and
// the characters *-._ become octets with a percent sign, also the space.
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
