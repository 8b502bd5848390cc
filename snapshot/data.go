package snapshot

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
)

// readData reads JSON, or a feed or another document in XML, for what it says: the values of its members or elements,
// each a block, and in them the text of HTML. It returns false if the text is neither; it is then taken unchanged.
func readData(s *stream, t *Text, text string) bool {
	d := dataReader{stream: s}
	switch {
	case t.MediaType == typeJSON || strings.HasSuffix(t.MediaType, "+json"):
		if d.json(text) != nil {
			*s = stream{}
			return false
		}
	case strings.HasSuffix(t.MediaType, "xml"):
		if d.xml(text) != nil {
			*s = stream{}
			return false
		}
		t.Title = d.title
	default:
		return false
	}
	return true
}

// dataReader writes the values of data to a stream.
type dataReader struct {
	*stream

	title string // the first one
}

// value writes a value, with the text of HTML in it.
func (d *dataReader) value(name, value string) {
	if strings.TrimSpace(value) == "" {
		return
	}
	begin := func() {
		d.beginBlock(Paragraph, 0, 0, false)
		if name != "" {
			d.raw = append(d.raw, name+": "...)
		}
	}
	at := strings.IndexByte(value, '<')
	if at < 0 || !strings.Contains(value[at:], ">") || guardHTML([]byte(value)) != nil {
		begin()
		d.raw = append(d.raw, html.UnescapeString(value)...)
		return
	}
	root, err := html.ParseWithOptions(strings.NewReader(value), html.ParseOptionEnableScripting(false))
	if err != nil {
		begin()
		d.raw = append(d.raw, value...)
		return
	}
	begin()
	w := htmlWalk{stream: *d.stream}
	w.walk(root)
	*d.stream = w.stream
}

// deepestData is how deep the values of data may be nested.
const deepestData = 512

var errNotData = errors.New("it is not valid")

// json reads a JSON document. A member's value is "name: value", its name last; white space of the document and the
// order of its members are as they are.
func (d *dataReader) json(text string) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	type level struct {
		object bool
		name   string
		isName bool // a member's name comes next
	}
	open := []level{{}}
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) && len(open) == 1 {
			return nil
		}
		if err != nil || len(open) > deepestData {
			return errNotData
		}
		top := &open[len(open)-1]
		if name, ok := tok.(string); ok && top.isName {
			top.name, top.isName = name, false
			continue
		}
		name := top.name
		top.isName = top.object
		switch v := tok.(type) {
		case json.Delim:
			switch v {
			case '{':
				open = append(open, level{object: true, isName: true})
			case '[':
				open = append(open, level{name: name})
			default:
				open = open[:len(open)-1]
			}
		case string:
			d.value(name, v)
		case json.Number:
			d.value(name, v.String())
		case bool:
			d.value(name, map[bool]string{true: "true", false: "false"}[v])
		}
	}
}

// xml reads a document in XML. An element that begins in the middle of text goes on in its line.
func (d *dataReader) xml(text string) error {
	dec := xml.NewDecoder(bytes.NewReader([]byte(text)))
	dec.Strict, dec.Entity = false, xml.HTMLEntity
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is decoded already
	var words strings.Builder
	flush := func() {
		d.value("", words.String())
		words.Reset()
	}
	inline, elements := []bool{}, 0 // of the open elements
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) && elements > 0 {
			flush()
			return nil
		}
		if err != nil || len(inline) > deepestData {
			return errNotData
		}
		switch v := tok.(type) {
		case xml.StartElement:
			elements++
			inline = append(inline, strings.TrimSpace(words.String()) != "")
		case xml.EndElement:
			if len(inline) == 0 {
				return errNotData
			}
			if v.Name.Local == "title" && d.title == "" {
				d.title = strings.TrimSpace(words.String())
			}
			if !inline[len(inline)-1] {
				flush()
			}
			inline = inline[:len(inline)-1]
		case xml.CharData:
			words.Write(v)
		}
	}
}
