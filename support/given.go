package support

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/snapshot"
)

// GivenText is a text that a caller gives, such as a source or a passage. In JSON it is a string, or an object with a
// text and what it is called, under any of the names that searches and retrievers use.
type GivenText struct {
	ID, Title, URL string // empty if not given
	Text           string
	Language       string // BCP 47; empty if not given

	given bool // there is a text, which may be empty
}

// GivenForm describes to callers what a [GivenText] is in JSON.
const GivenForm = `a string, or an object {"text", "title", "url", "id"}`

// UnmarshalJSON implements [json.Unmarshaler]. An object without a text is not an error: see [GivenTexts.Check].
func (g *GivenText) UnmarshalJSON(data []byte) error {
	*g = GivenText{}
	switch data[0] {
	case '"':
		g.given = true
		return json.Unmarshal(data, &g.Text)
	case '{':
	default:
		return fmt.Errorf("must not be a JSON %s: want %s", jsonKind(data), GivenForm)
	}
	p, _ := passage.ReadObject(data)
	*g = GivenText{ID: p.ID, Title: p.Title, URL: p.URL, Text: p.Text, given: p.Text != ""}
	var exact struct { // spaces at its ends count in offsets
		Text, Language any
	}
	if json.Unmarshal(data, &exact) == nil {
		g.Language, _ = exact.Language.(string)
		if words, ok := exact.Text.(string); ok {
			g.Text, g.given = words, true
		}
	}
	return nil
}

// Documents returns the texts as sources to attribute sentences to. If none has an id, they get doc:1, doc:2 and so on.
func (list GivenTexts) Documents() []Document {
	named := slices.ContainsFunc(list, func(g GivenText) bool { return g.ID != "" })
	docs := make([]Document, len(list))
	for i := range list {
		g := &list[i]
		docs[i] = Document{
			Source: ibid.Source{ID: g.ID, Kind: ibid.DocumentKind, Title: g.Title, URL: g.URL}, Text: g.Text,
		}
		if g.URL != "" {
			docs[i].Source.Kind = ibid.Web
		}
		if !named {
			docs[i].Source.ID = fmt.Sprintf("doc:%d", i+1)
		}
	}
	return docs
}

// name returns what evidence in the text is said to be from: its id, else its URL, else its title.
func (g *GivenText) name(number int) string {
	for _, name := range []string{g.ID, g.URL, g.Title} {
		if name != "" {
			return name
		}
	}
	return fmt.Sprintf("doc:%d", number)
}

// MaxGivenTexts limits the texts of one list in JSON.
const MaxGivenTexts = 100_000

// GivenTexts is a list of texts. Its errors name the element.
type GivenTexts []GivenText

// UnmarshalJSON implements [json.Unmarshaler].
func (list *GivenTexts) UnmarshalJSON(data []byte) error {
	n := 0 // counted first: each takes memory
	for a := scan.Elements(scan.Value(data)); a.Next(); n++ {
		if n == MaxGivenTexts {
			return fmt.Errorf("more than %d elements", MaxGivenTexts)
		}
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil {
		return err
	}
	*list = nil
	if elements != nil {
		*list = make(GivenTexts, len(elements))
	}
	for i, raw := range elements {
		if err := (*list)[i].UnmarshalJSON(raw); err != nil {
			return fmt.Errorf("element %d %w", i, err)
		}
	}
	return nil
}

// Check returns an error that names the first element without a text.
func (list GivenTexts) Check() error {
	for i := range list {
		if !list[i].given {
			return fmt.Errorf("element %d has no text: want %s", i, GivenForm)
		}
	}
	return nil
}

func (list GivenTexts) passages() []Passage {
	all := make([]Passage, len(list))
	for i := range list {
		all[i] = Passage{ID: list[i].ID, Text: list[i].Text, Language: list[i].Language}
	}
	return all
}

// cut is a passage that was cut from a text.
type cut struct {
	from  *GivenText
	name  string
	piece snapshot.Passage
}

// cut cuts whole texts into passages.
func (list GivenTexts) cut() (passages []Passage, from []cut) {
	for i := range list {
		g := &list[i]
		for _, p := range snapshot.Passages(g.Text, nil) {
			passages = append(passages, Passage{ID: g.ID, Text: p.Apart(g.Text), Language: g.Language})
			from = append(from, cut{g, g.name(i + 1), p})
		}
	}
	return passages, from
}

func jsonKind(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}
