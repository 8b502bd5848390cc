package ibid

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/wire"
)

// ReadDocuments reads the documents that were given to a model, for [DecodeOptions].Documents. raw is a JSON array
// whose elements are strings, flat objects with members such as title, url and text, or objects of an id and data,
// which is a string or such an object. null is the same as an empty array.
//
// The content of a document is its text, else its snippet, else its content, else all of it as JSON. One that names no
// id has an empty [Source.ID]: it takes the one its format gives by position. Raw is the element.
//
// The error says what is wrong with which element, counted from 0.
func ReadDocuments(raw []byte) ([]Source, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return nil, errors.New("documents: no bytes")
	}
	found, err := wire.ReadDocuments(scan.Value(raw))
	if err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	docs := make([]Source, 0, len(found))
	for i := range found {
		s := newSource(&found[i])
		s.ID = validText(found[i].ID)
		docs = append(docs, s)
	}
	return docs, nil
}
