package httpsig

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// disagreement is a way in which the two implementations may differ.
type disagreement struct {
	name   string
	weTake bool                // we verify what they reject, not the other way round
	word   string              // in the error of the one that rejects
	when   func(*message) bool // a further condition; nil if there is none
	why    string              // why our result is right
}

// disagreements returns all ways in which the two may differ. One that does not occur fails the test.
func disagreements() []disagreement {
	return append(weRefuse(), weTake()...)
}

// weRefuse lists what they verify and we reject, mostly messages that two readers could understand in two ways.
func weRefuse() []disagreement {
	return []disagreement{
		{
			"key, parameter or label twice, or a value spelt otherwise", false, "not in canonical form", nil,
			"RFC 9651 keeps the last of two; a reader that keeps the first would see other things than were signed",
		},
		{"component twice", false, "it occurs twice", nil, "RFC 9421 §2: each component identifier MUST occur only once"},
		{
			"method that is no token", false, "the message is not a request", func(m *message) bool { return strings.ContainsAny(m.method, " \n") },
			"RFC 9110 §9.1; a line break in it would make two lines of the base out of one",
		},
		{
			"status without three digits", false, "the message is not a response", func(m *message) bool { return m.status < 100 || m.status > 999 },
			"RFC 9110 §15: a status code is of three digits",
		},
		{
			"user information or fragment", false, "user information or a fragment", func(m *message) bool { return strings.ContainsAny(m.uri, "#@") },
			"RFC 9110 §7.1: a target URI has no fragment, and §4.2.4 disapproves user information",
		},
		{
			"no host", false, "no host", func(m *message) bool { u, _ := url.Parse(m.uri); return u.Host == "" },
			"they take no host for an empty one; the authority of an https URI is never empty: RFC 9110 §4.2.2",
		},
		{"neither http nor https", false, "neither http nor https", nil, "there is no HTTP at other URIs; they take none for http"},
		{"characters that a URL cannot have", false, "characters that a URL cannot have", nil, "they percent-encode them first, which the signer may have done otherwise"},
		{
			"scheme in upper case", false, "signature of this message", func(m *message) bool { return strings.HasPrefix(m.uri, "HTTPS:") },
			"they write the target URI anew; it is signed as it is written",
		},
		{"field's parameter on what is no field", false, "it is not a field", nil, "RFC 9421 §2.2 gives derived components only req, and @query-param a name; they pass over the rest"},
		{"name on what is no query parameter", false, "a field has no name parameter", nil, "RFC 9421 §2.1 knows no name; they look for a query parameter"},
		{"bs with sf or key", false, "bs cannot be combined", nil, "RFC 9421 §2.5: it MUST be an error; they pass over bs"},
		{"sf of an unknown type", false, "type of structured field is unknown", nil, "RFC 9421 §2.1.1: an error where the type is not known; they take every field for a dictionary"},
		{"flag that is false", false, "is unknown or has the wrong type", nil, "RFC 9421 §2.1: the flags are true or absent; ?0 looks set to whoever tests for its presence"},
		{"parameter that is not of its type", false, "has the wrong type", nil, "RFC 9421 §2.3; they look at the type only of what a policy asks for"},
		{"algorithm of another key", false, "the signature's algorithm is", nil, "RFC 9421 §3.2: it must be the key's; they compare it only if told which are allowed"},
		{"signature's value with parameters", false, "byte sequence without parameters", nil, "RFC 9421 §4.2 gives it none, and they are not signed"},
		{"value that is not ASCII", false, "other than printable ASCII", nil, "RFC 9421 §2.5: the base is of ASCII characters"},
		{"line break in a value", false, "has a line break", nil, "RFC 9421 §2.1: it would make two lines of the base out of one"},
		{"request target of CONNECT and OPTIONS", false, "the request target of", nil, "RFC 9112 §3.2: it need not be the path, and what it was is not known"},
		{"query that is not UTF-8", false, "cannot be decoded", nil, "decoded as the URL standard does it would be another: U+FFFD"},
	}
}

// weTake lists what we verify and they reject.
func weTake() []disagreement {
	const failed = "signature verification failed"
	return []disagreement{
		{
			"authority in upper case or with its own port", true, failed,
			func(m *message) bool {
				u, _ := url.Parse(m.uri)
				return m.covers(`"@authority"`) && (strings.ToLower(u.Host) != u.Host || u.Port() == "443")
			},
			"RFC 9421 §2.2.3: it is normalised; they take Host as it is",
		},
		{
			"no path", true, failed,
			func(m *message) bool { u, _ := url.Parse(m.uri); return m.covers(`"@path"`) && u.Path == "" },
			"RFC 9421 §2.2.6: an empty path is a slash",
		},
		{
			"encoded path in the request target", true, failed,
			func(m *message) bool {
				u, _ := url.Parse(m.uri)
				return m.covers(`"@request-target"`) && u.Path != u.EscapedPath()
			},
			"they decode it; RFC 9421 §2.2.5: as it is sent",
		},
		{
			"scheme in upper case, signed as it is", true, failed, func(m *message) bool { return strings.HasPrefix(m.uri, "HTTPS:") },
			"they write the target URI anew; it is signed as it is written",
		},
		{
			"star and tilde in query parameters", true, failed,
			func(m *message) bool {
				return m.covers(`"@query-param";name="tilde"`) || m.covers(`"@query-param";name="star"`)
			},
			"RFC 9421 §2.2.8 means the form encoding of the URL standard, which keeps * and encodes ~",
		},
		{
			"query that net/url refuses", true, "cannot parse query", nil,
			"a query is signed as it is; only query parameters need decoding",
		},
		{
			"folded line, or white space around one", true, "signature: ",
			func(m *message) bool { return m.tidied().verifyTheirs() == nil },
			"RFC 9421 §2.1 and §2.1.3: a fold is one space, white space around a line is removed, a tab too, and also for bs",
		},
		{
			"folded Content-Digest, or a tab before it", true, "digest: ",
			func(m *message) bool { return m.tidied().digestTheirs() == nil },
			"RFC 9110 §5.5: neither is part of the value",
		},
		{"sf of a list", true, "could not unmarshal", nil, "RFC 9421 §2.1.1: by the field's type; they take every field for a dictionary"},
	}
}

// covers reports whether a component that begins with prefix is covered.
func (m *message) covers(prefix string) bool {
	return slices.ContainsFunc(m.components, func(c string) bool { return strings.HasPrefix(strings.TrimSpace(c), prefix) })
}

// tidied returns the message without folds and without white space around field lines.
func (m *message) tidied() *message {
	m = m.clone()
	fold := regexp.MustCompile("[ \t]*\r?\n[ \t]+")
	for _, fields := range []map[string][]string{m.header, m.trailer, m.request} {
		for _, lines := range fields {
			for i := range lines {
				lines[i] = strings.TrimSpace(fold.ReplaceAllString(lines[i], " "))
			}
		}
	}
	return m
}
