package biblio

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// cslItem is an item of the CSL 1.0.2 data schema, as far as sources fill it.
type cslItem struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Title     string    `json:"title,omitempty"`
	Author    []cslName `json:"author,omitempty"`
	Container string    `json:"container-title,omitempty"`
	Publisher string    `json:"publisher,omitempty"`
	Genre     string    `json:"genre,omitempty"`
	Issued    *cslDate  `json:"issued,omitempty"`
	Page      string    `json:"page,omitempty"`
	DOI       string    `json:"DOI,omitempty"`
	URL       string    `json:"URL,omitempty"`
	Accessed  *cslDate  `json:"accessed,omitempty"`
}

type cslName struct {
	Family   string `json:"family,omitempty"`
	Given    string `json:"given,omitempty"`
	Particle string `json:"non-dropping-particle,omitempty"`
	Suffix   string `json:"suffix,omitempty"`
	Literal  string `json:"literal,omitempty"`
}

type cslDate struct {
	Parts [][]int `json:"date-parts"`
}

func marshalCSL(items []item) ([]byte, error) {
	all := make([]cslItem, len(items))
	for i := range items {
		all[i] = items[i].csl()
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // addresses stay legible
	enc.SetIndent("", "  ")
	err := enc.Encode(all)
	return out.Bytes(), err
}

func (it *item) csl() cslItem {
	c := cslItem{
		ID:       it.key,
		Type:     it.cslType(),
		Title:    it.title,
		Genre:    it.genre,
		Issued:   it.issued.csl(),
		DOI:      it.doi,
		URL:      it.url,
		Accessed: it.accessed.csl(),
	}
	if it.class == webpage {
		c.Container = it.site
	} else {
		c.Publisher = it.site
	}
	if it.pages != nil {
		c.Page = fmt.Sprintf("%d-%d", it.pages[0], it.pages[1])
	}
	for _, n := range it.names {
		c.Author = append(
			c.Author,
			cslName{Family: n.family, Given: n.given, Particle: n.particle, Suffix: n.suffix, Literal: n.whole},
		)
	}
	return c
}

func (it *item) cslType() string {
	switch it.class {
	case webpage:
		return "webpage"
	case dataset:
		return "dataset"
	case document:
	}
	return "document"
}

func (d date) csl() *cslDate {
	if !d.known() {
		return nil
	}
	return &cslDate{Parts: [][]int{d.parts()}}
}
