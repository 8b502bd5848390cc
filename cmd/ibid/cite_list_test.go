package main

import (
	"bytes"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/internal/testenv"
)

// Sources with nothing but an id share a key, so the second one was left out of the bibliography.
func TestListKeepsSourcesWithoutAWord(t *testing.T) {
	cite := func(ids ...string) *ibid.Answer {
		a := &ibid.Answer{Text: "Otters sleep."}
		for _, id := range ids {
			a.Sources = append(a.Sources, ibid.Source{ID: id, Kind: ibid.DocumentKind})
			a.Citations = append(a.Citations, ibid.Citation{Anchor: ibid.AnchorNone, Refs: []ibid.Ref{{Source: id}}})
		}
		return a
	}
	o := listOutput{world: world{out: &bytes.Buffer{}, err: &bytes.Buffer{}}, format: biblio.CSLJSON}
	for _, a := range []*ibid.Answer{cite("doc:0", "doc:1"), cite("doc:0")} {
		testenv.OK(t, o.write(&reading{answer: a}))
	}
	if got := len(o.entries); got != 3 {
		t.Errorf("%d entries, want 3", got)
	}
}
