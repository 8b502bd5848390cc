package snapshot

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
)

// panicked begins what is said of a reader that failed in a way that it should not.
const panicked = "its reader panicked"

// Extract returns the visible text of a document. What it is comes from the media type, unless that says nothing, and
// from the bytes, the name and the address. A document without any visible text is no error: its Content is empty.
//
// The error wraps one of this package's errors and says what was wrong: bytes that are no text say what they look like.
func Extract(b []byte, o *TextOptions) (t *Text, err error) {
	defer func() {
		if why := recover(); why != nil { // a page or a file may be made for it, and nobody's program should end by it
			t, err = nil, fmt.Errorf("reading the document: %w: %s: %v", ErrDamaged, panicked, why)
		}
	}()
	if o == nil {
		o = &TextOptions{}
	}
	if most := cmp.Or(o.Bytes, MaxBytes); len(b) > most {
		return nil, fmt.Errorf("reading the document: %w: it has %d bytes, the limit is %d", ErrTooLarge, len(b), most)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, fmt.Errorf("reading the document: %w", ErrEmpty)
	}
	said, params := splitType(o.MediaType)
	mediaType := recognise(b, said, o)
	t = &Text{Profile: TextProfile, MediaType: mediaType}
	if mediaType == typePDF {
		t.Profile = PDFProfile
		if err := readPDF(t, b, o); err != nil {
			return nil, fmt.Errorf("reading the PDF: %w", err)
		}
		return t, nil
	}
	if what := binary(b); what != "" {
		return nil, fmt.Errorf("reading the document: %w: it looks like %s", ErrUnsupported, what)
	}
	if !isText(mediaType) {
		return nil, fmt.Errorf("reading the document: %w: its type is %q", ErrUnsupported, mediaType)
	}
	if mediaType == typeHTML || mediaType == typeXHTML {
		if err := readHTML(t, b, params); err != nil {
			return nil, fmt.Errorf("reading the page: %w", err)
		}
		return t, nil
	}
	if err := readPlain(t, b, params); err != nil {
		return nil, err
	}
	return t, nil
}

// isText reports whether documents of a media type are text. What cannot be known is taken for text: its bytes were
// looked at.
func isText(mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, "/")
	switch kind {
	case "image", "audio", "video", "font", "model", "multipart":
		return strings.HasSuffix(mediaType, "+xml")
	}
	return true
}
