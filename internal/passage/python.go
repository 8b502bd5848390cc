package passage

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/scan"
)

// pythonJSON converts a Python literal to JSON: what str() and repr() make of lists, dictionaries, tuples and of
// objects such as LangChain's Document(page_content='…', metadata={…}), alone or as "page_content='…' metadata={…}".
// Tools that return a list often send this to the model.
func pythonJSON(s string) (scan.Value, bool) {
	if !strings.ContainsAny(s, `'"`) {
		return nil, false
	}
	p := &python{s: s}
	if p.space(); p.assignment() {
		p.arguments(0, 0)
	} else if len(s) > 0 && (strings.IndexByte("[{(", s[0]) >= 0 || p.call()) {
		p.value(0)
	} else {
		return nil, false
	}
	if p.space(); p.bad || p.i < len(s) || !json.Valid(p.out) {
		return nil, false
	}
	return p.out, true
}

// maxPython is how deep a literal may be nested.
const maxPython = 64

// python is a literal that is being converted. After the first fault it is bad, and nothing more is read.
type python struct {
	s   string
	i   int
	out []byte
	bad bool
}

func (p *python) fail() { p.bad, p.i = true, len(p.s) }

func (p *python) space() {
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.i]) >= 0 {
		p.i++
	}
}

func (p *python) at(c byte) bool { return p.i < len(p.s) && p.s[p.i] == c }

// name returns the identifier at i, which may be empty.
func (p *python) name() string {
	end := p.i
	for end < len(p.s) && (p.s[end] == '_' || p.s[end] == '.' || p.s[end] >= '0' && p.s[end] <= '9' ||
		p.s[end]|0x20 >= 'a' && p.s[end]|0x20 <= 'z') {
		end++
	}
	return p.s[p.i:end]
}

// call reports whether an object follows: Name(.
func (p *python) call() bool {
	name := p.name()
	return name != "" && strings.HasPrefix(p.s[p.i+len(name):], "(")
}

// assignment reports whether name= follows.
func (p *python) assignment() bool {
	name := p.name()
	return name != "" && (name[0] > '9') && strings.HasPrefix(p.s[p.i+len(name):], "=")
}

func (p *python) value(depth int) {
	p.space()
	if depth > maxPython || p.i >= len(p.s) {
		p.fail()
		return
	}
	switch c := p.s[p.i]; {
	case c == '[':
		p.list(']', depth)
	case c == '(':
		p.list(')', depth)
	case c == '{':
		p.dict(depth)
	case c == '\'' || c == '"':
		p.string()
	case p.call():
		p.i += len(p.name()) + 1
		p.arguments(')', depth)
	default:
		p.atom()
	}
}

func (p *python) list(end byte, depth int) {
	p.i++
	p.out = append(p.out, '[')
	for first := true; !p.bad; first = false {
		if p.space(); p.at(end) {
			p.i++
			break
		}
		if !first {
			p.out = append(p.out, ',')
		}
		p.value(depth + 1)
		if p.space(); p.at(',') {
			p.i++
		} else if !p.at(end) {
			p.fail()
		}
	}
	p.out = append(p.out, ']')
}

func (p *python) dict(depth int) {
	p.i++
	p.out = append(p.out, '{')
	for first := true; !p.bad; first = false {
		if p.space(); p.at('}') {
			p.i++
			break
		}
		if !first {
			p.out = append(p.out, ',')
		}
		if p.at('\'') || p.at('"') {
			p.string()
		} else {
			key := p.name()
			p.i += len(key)
			p.out = strconv.AppendQuote(p.out, key)
			if key == "" {
				p.fail()
			}
		}
		if p.space(); !p.at(':') {
			p.fail()
			break
		}
		p.i++
		p.out = append(p.out, ':')
		p.value(depth + 1)
		if p.space(); p.at(',') {
			p.i++
		} else if !p.at('}') {
			p.fail()
		}
	}
	p.out = append(p.out, '}')
}

// arguments reads name=value pairs up to end, or up to the end of the text if that is 0.
func (p *python) arguments(end byte, depth int) {
	p.out = append(p.out, '{')
	for first := true; !p.bad; first = false {
		p.space()
		if end != 0 && p.at(end) {
			p.i++
			break
		} else if end == 0 && p.i == len(p.s) {
			break
		}
		if !first {
			p.out = append(p.out, ',')
		}
		if !p.assignment() {
			p.fail()
			break
		}
		name := p.name()
		p.i += len(name) + 1
		p.out = append(strconv.AppendQuote(p.out, name), ':')
		p.value(depth + 1)
		if p.space(); p.at(',') {
			p.i++
		}
	}
	p.out = append(p.out, '}')
}

// atom reads a number or a constant.
func (p *python) atom() {
	end := p.i
	for end < len(p.s) && strings.IndexByte(",]}): \t\r\n", p.s[end]) < 0 {
		end++
	}
	word := p.s[p.i:end]
	p.i = end
	switch word {
	case "None", "nan", "inf", "-inf", "null":
		p.out = append(p.out, "null"...)
	case "True", "true":
		p.out = append(p.out, "true"...)
	case "False", "false":
		p.out = append(p.out, "false"...)
	default:
		if !json.Valid([]byte(word)) {
			p.fail()
		}
		p.out = append(p.out, word...)
	}
}

// string reads a string, with Python's escapes.
func (p *python) string() {
	quote := p.s[p.i]
	var b []byte
	for p.i++; p.i < len(p.s) && p.s[p.i] != quote; {
		if p.s[p.i] != '\\' {
			b = append(b, p.s[p.i])
			p.i++
			continue
		}
		r, size := pythonEscape(p.s[p.i:])
		b = utf8.AppendRune(b, r)
		p.i += size
	}
	if p.i >= len(p.s) {
		p.fail()
		return
	}
	p.i++
	text, err := json.Marshal(string(b))
	if err != nil {
		p.fail()
	}
	p.out = append(p.out, text...)
}

// pythonEscape returns the character of an escape and its length.
func pythonEscape(s string) (r rune, size int) {
	if len(s) < 2 {
		return '\\', 1
	}
	digits := 0
	switch s[1] {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case '\\', '\'', '"':
		return rune(s[1]), 2
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits > 0 && len(s) >= 2+digits {
		if n, err := strconv.ParseUint(s[2:2+digits], 16, 32); err == nil && n <= utf8.MaxRune {
			return rune(n), 2 + digits
		}
	}
	return '\\', 1
}
