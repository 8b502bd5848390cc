package verify

import (
	"bytes"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid/internal/frame"
	"github.com/ibidhq/ibid/manifest"
)

// maxHeld is how many different places of a body are searched for the text of an answer.
const maxHeld = 10_000

// heldText returns the text that a manifest's output is bound to from a body of the publisher's own form, and where it
// is: a JSON document with the text as one of its strings, or a stream of events with parts of it in a member of each,
// or as their data. If the output says where, only that place counts. If the text is nowhere or in more than one place,
// at is "". If the output does not say where and there is other prose, which may be what readers take for the answer,
// beside is the first place of that.
func heldText(out *manifest.Output, r *Response) (text, at, beside string) {
	if out.TextHash == "" || !utf8.Valid(r.Body) {
		return "", "", ""
	}
	places := &placesOf{index: map[string]int{}}
	if !places.readBody(r) {
		return "", "", ""
	}
	found := 0
	for i := range places.texts {
		t := places.texts[i].String()
		if out.TextLength != nil && utf8.RuneCountInString(t) < *out.TextLength {
			beside = places.proseAt(i, beside)
			continue // normalising only shortens
		}
		if out.TextAt != "" && places.names[i] != place(out.TextEvent, out.TextAt) {
			continue
		}
		if normalWithHash(out, &t) != nil {
			found++
			text, at = t, places.names[i]
		} else {
			beside = places.proseAt(i, beside)
		}
	}
	switch {
	case found != 1:
		return "", "", ""
	case out.TextAt != "":
		beside = ""
	}
	return text, at, beside
}

// proseAt returns first or, if that is empty, place i if its text is prose: three words, or a script without spaces.
func (p *placesOf) proseAt(i int, first string) string {
	t := p.texts[i].String()
	if first != "" || len(strings.Fields(t)) < 3 && !strings.ContainsFunc(t, isUnspaced) {
		return first
	}
	return p.names[i]
}

func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// place names a JSON Pointer, in the data of events if they have a name.
func place(event, pointer string) string {
	if event == "" {
		return pointer
	}
	return pointer + " of " + event
}

// placesOf collects the strings of a body by where they are. In a stream those at the same place in its events are
// parts of one text.
type placesOf struct {
	index map[string]int
	names []string
	texts []*strings.Builder
}

func (p *placesOf) add(at, text string) bool {
	i, ok := p.index[at]
	if !ok {
		if i = len(p.texts); i == maxHeld {
			return false
		}
		p.index[at] = i
		p.names, p.texts = append(p.names, at), append(p.texts, &strings.Builder{})
	}
	p.texts[i].WriteString(text)
	return true
}

// readBody reads a JSON document, or a stream of events. It returns false if the body is neither, or ambiguous.
func (p *placesOf) readBody(r *Response) bool {
	body := r.Body
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		return isUnambiguous(body) && p.readJSON(body, "")
	}
	if !strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "text/event-stream") {
		return false
	}
	ok := true
	frames := frame.Splitter{Emit: func(f frame.Frame) {
		if !ok || f.Done || f.Err != nil {
			return
		}
		data := bytes.TrimLeft(f.Data, " ")
		if len(data) > 0 && (data[0] == '{' || data[0] == '[') {
			ok = isUnambiguous(f.Data) && p.readJSON(f.Data, string(f.Event))
			return
		}
		ok = p.add("the data of its "+strings.TrimSpace(string(f.Event)+" events"), string(f.Data))
	}}
	if _, err := frames.Write(body); err != nil {
		return false
	}
	frames.Close()
	return ok
}

// readJSON adds the strings of a JSON document by their JSON Pointers. Several documents that follow each other are
// none.
func (p *placesOf) readJSON(document []byte, event string) bool {
	d := jsontext.NewDecoder(bytes.NewReader(document), jsontext.AllowDuplicateNames(true))
	for {
		parent, length := d.StackIndex(d.StackDepth())
		token, err := d.ReadToken()
		if err != nil {
			return err == io.EOF //nolint:errorlint // what ReadToken returns at the end
		}
		if token.Kind() != '"' || parent == '{' && length%2 == 0 {
			continue
		}
		if !p.add(place(event, string(d.StackPointer())), token.String()) {
			return false
		}
	}
}
