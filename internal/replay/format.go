package replay

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

//go:embed wire/*.tmpl
var wireFiles embed.FS

// format is one provider's format, as templates:
//
//	body    a JSON document
//	stream  events: a line "@ NAME" (NAME is optional) and a JSON document each; "@done" is the word that ends some
//	        streams
//	error   the body of an error with the status .Status
//	broken  the event that reports an error in a stream
//
// The JSON may contain any white space; it is sent as one line.
type format struct {
	templates *template.Template
	crlf      bool // lines of a stream end in CR LF
}

// event is one event of a stream.
type event struct {
	name string
	data []byte
}

// mustParse parses the templates. They are part of the program, so an error in them is a bug.
func mustParse(files fs.FS) map[string]*format {
	names, _ := fs.Glob(files, "wire/*.tmpl") // fails only if the pattern is invalid
	formats := make(map[string]*format, len(names))
	for _, name := range names {
		base := strings.TrimSuffix(path.Base(name), ".tmpl")
		t := template.New(base).Funcs(template.FuncMap{"json": toJSON, "last": func(i, n int) bool { return i == n-1 }})
		formats[base] = &format{template.Must(t.ParseFS(files, name)), base == "gemini-generate"}
	}
	return formats
}

// document executes a template that yields one JSON document.
func (f *format) document(name string, r *reply) ([]byte, error) {
	var b, compact bytes.Buffer
	if err := f.templates.ExecuteTemplate(&b, name, r); err != nil {
		return nil, err
	}
	if err := json.Compact(&compact, b.Bytes()); err != nil {
		return nil, fmt.Errorf("making %s of %s: %w", name, f.templates.Name(), err)
	}
	return compact.Bytes(), nil
}

// events executes a template that yields the events of a stream.
func (f *format) events(name string, r *reply) ([]event, error) {
	var b bytes.Buffer
	if err := f.templates.ExecuteTemplate(&b, name, r); err != nil {
		return nil, err
	}
	var events []event
	for _, part := range strings.Split("\n"+b.String(), "\n@")[1:] {
		name, data, _ := strings.Cut(part, "\n")
		if name == "done" {
			events = append(events, event{data: []byte("[DONE]")})
			continue
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(data)); err != nil {
			return nil, fmt.Errorf("making event %s of %s: %w", name, f.templates.Name(), err)
		}
		events = append(events, event{strings.TrimSpace(name), compact.Bytes()})
	}
	return events, nil
}

// toJSON returns JSON as providers write it, without HTML escapes.
func toJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
