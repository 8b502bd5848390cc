package verify

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/frame"
	"github.com/ibidhq/ibid/internal/scan"
)

// said returns the one text that a response is: that of the answer document or of the provider's answer that it has,
// else the body as it stands. Nil: it has none, or readers may read different ones. A page is not read: what of it can
// be seen, only a browser knows.
func said(r *Response) *string {
	if isMarkup(r.Header.Get("Content-Type")) || !utf8.Valid(r.Body) {
		return nil
	}
	text, known := answerText(r.Body)
	if known {
		return text
	}
	whole := string(r.Body)
	return &whole
}

// isMarkup reports whether a media type is shown in another way than it is written.
func isMarkup(mediaType string) bool {
	name, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		name, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	}
	name = strings.TrimSpace(name)
	return name == "text/html" || name == "application/pdf" || strings.HasSuffix(name, "/xml") ||
		strings.HasSuffix(name, "+xml")
}

// answerText returns the text of the answer that a body is: an answer document, or a provider's response or stream;
// known is false where it is neither. Nil: there are several answers in it, or one that readers read in different ways.
func answerText(body []byte) (text *string, known bool) {
	if recognise(body) == KindDocument {
		var a ibid.Answer
		if !oneReading(body) || json.Unmarshal(body, &a) != nil || len(a.Alternatives) > 0 {
			return nil, true
		}
		return &a.Text, true
	}
	one, err := ibid.Decode(body, &ibid.DecodeOptions{One: true})
	if one.Format == ibid.Generic || one.Format == "" {
		return nil, false
	}
	all, allErr := ibid.Decode(body, nil) // and what stands behind its end
	if err != nil || allErr != nil || all.Text != one.Text || len(one.Alternatives)+len(all.Alternatives) > 0 ||
		!allOneReading(body) {
		return nil, true
	}
	return &one.Text, true
}

// allOneReading reports whether each document of a response is whole and has one reading, and nothing else follows it.
func allOneReading(body []byte) bool {
	all := true
	frames := frame.Splitter{Emit: func(f frame.Frame) { all = all && f.Err == nil && (f.Done || oneReading(f.Data)) }}
	_, _ = frames.Write(body)
	frames.Close()
	return all
}

// oneReading reports whether no object of a JSON document has two members of one name, in whatever case: some readers
// take the first of them, some the last, and some do not tell them apart.
func oneReading(document []byte) bool { return oneNamed(bytes.TrimSpace(document), maxReading) }

// maxReading is how deep a document may be whose reading counts: every level costs as much as the first.
const maxReading = 64

func oneNamed(v scan.Value, deep int) bool {
	switch {
	case deep == 0:
		return !v.IsObject() && !v.IsArray()
	case v.IsObject():
		names := map[string]bool{}
		for o := scan.Members(v); o.Next(); {
			name := strings.ToLower(strings.ToUpper(string(o.Key))) // as encoding/json folds
			if names[name] || !oneNamed(o.Val, deep-1) {
				return false
			}
			names[name] = true
		}
	case v.IsArray():
		for a := scan.Elements(v); a.Next(); {
			if !oneNamed(a.Val, deep-1) {
				return false
			}
		}
	}
	return true
}
