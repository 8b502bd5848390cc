package snapshot

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// prescanned is how many bytes of a page are searched for a meta element that names a charset, as the HTML standard
// says.
const prescanned = 1024

// utf8Name is the name of UTF-8 as the encoding standard has it.
const utf8Name = "utf-8"

// decodeHTML returns a page as UTF-8, and the name of what it was.
func decodeHTML(b []byte, params map[string]string) ([]byte, string, error) {
	name, rest := byMark(b)
	if name == "" {
		name = known(params["charset"])
	}
	if name == "" {
		name = prescan(b[:min(len(b), prescanned)])
	}
	if name == "" && params == nil && utf8.Valid(b) {
		name = utf8Name // a file, for which nobody could say a charset
	}
	if name == "" {
		name = "windows-1252"
	}
	out, err := decodeAs(rest, name)
	return out, name, err
}

// decodeText returns a text that is no HTML as UTF-8, and the name of what it was.
func decodeText(b []byte, params map[string]string, xml bool) ([]byte, string, error) {
	name, rest := byMark(b)
	if name == "" {
		name = known(params["charset"])
	}
	if name == "" && xml {
		name = known(declared(b[:min(len(b), prescanned)]))
	}
	switch {
	case name != "":
	case utf8.Valid(rest):
		name = utf8Name
	default:
		name = "windows-1252"
	}
	out, err := decodeAs(rest, name)
	return out, name, err
}

// byMark returns what a byte order mark says, and what follows it.
func byMark(b []byte) (name string, rest []byte) {
	for _, m := range [...]struct{ mark, name string }{
		{"\xef\xbb\xbf", utf8Name}, {"\xfe\xff", "utf-16be"}, {"\xff\xfe", "utf-16le"},
	} {
		if bytes.HasPrefix(b, []byte(m.mark)) {
			return m.name, b[len(m.mark):]
		}
	}
	return "", b
}

// known returns the standard name of a charset; empty if there is none of that label.
func known(label string) string {
	_, name := charset.Lookup(label)
	return name
}

// prescan looks for a meta element that names a charset.
func prescan(b []byte) string {
	z := html.NewTokenizer(bytes.NewReader(b))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			if tag, more := z.TagName(); more && string(tag) == "meta" {
				if name := metaCharset(z); name != "" {
					return name
				}
			}
		default:
		}
	}
}

// metaCharset returns the charset that the attributes of a meta element name. UTF-16 cannot be true: the element was
// read as ASCII. It then means UTF-8, as the standard says.
func metaCharset(z *html.Tokenizer) string {
	var label, content string
	var pragma bool
	for more := true; more; {
		var key, val []byte
		key, val, more = z.TagAttr()
		switch string(key) {
		case "charset":
			label = string(val)
		case "content":
			content = string(val)
		case "http-equiv":
			pragma = strings.EqualFold(string(val), "content-type")
		}
	}
	if label == "" && pragma {
		label = afterCharset(content)
	}
	name := known(label)
	if strings.HasPrefix(name, "utf-16") {
		return utf8Name
	}
	return name
}

// afterCharset returns what stands after "charset=" in a media type.
func afterCharset(s string) string {
	i := strings.Index(strings.ToLower(s), "charset")
	if i < 0 {
		return ""
	}
	rest, ok := strings.CutPrefix(strings.TrimLeft(s[i+len("charset"):], " \t\r\n"), "=")
	if !ok {
		return ""
	}
	rest = strings.TrimLeft(rest, " \t\r\n\"'")
	if end := strings.IndexAny(rest, " \t\r\n;\"'"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// declared returns the encoding that an XML declaration names.
func declared(b []byte) string {
	head, _, ok := bytes.Cut(b, []byte("?>"))
	if !ok || !bytes.HasPrefix(head, []byte("<?xml")) {
		return ""
	}
	_, after, ok := strings.Cut(string(head), "encoding")
	if !ok {
		return ""
	}
	after = strings.TrimLeft(after, " \t\r\n=\"'")
	if end := strings.IndexAny(after, " \t\r\n\"'"); end >= 0 {
		after = after[:end]
	}
	return after
}

// decodeAs returns b as UTF-8. Bytes that mean nothing become U+FFFD.
func decodeAs(b []byte, name string) ([]byte, error) {
	e, _ := charset.Lookup(name)
	if e == nil || e == encoding.Nop || name == utf8Name {
		return b, nil
	}
	out, err := e.NewDecoder().Bytes(b)
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w: %w", name, ErrDamaged, err)
	}
	return out, nil
}

// splitType splits a media type into its name in lower case and its parameters. Nothing is invalid: what cannot be read
// is taken without parameters. The parameters are nil only where there is no media type at all.
func splitType(s string) (name string, params map[string]string) {
	if strings.TrimSpace(s) == "" {
		return "", nil
	}
	name, params, err := mime.ParseMediaType(s)
	if err != nil || name == "" {
		name, _, _ = strings.Cut(s, ";")
		name, params = strings.ToLower(strings.TrimSpace(name)), nil
	}
	if params == nil {
		params = map[string]string{}
	}
	return name, params
}
