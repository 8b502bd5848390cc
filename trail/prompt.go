package trail

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/passage"
)

// Limits of what is read from a prompt.
const (
	maxPrompt        = 8 << 20 // bytes; the rest is ignored
	maxPromptSources = 1000    // the rest are left out
	minPasted        = 40      // bytes of a single passage without a name; a shorter one is a list item, not a document
)

// SourcesFromPrompt returns the documents that a program pasted into a prompt for a model to answer from, in order,
// each with its Content. It knows the layouts that docs/answer.md describes, which the decoder reads, too: JSON, which
// is what tools return, tags, numbered paragraphs, records and sections, and the output of [ibid.PromptSources].
//
// Their numbers become their Rank. The DocumentID of a source without an id, or whose id is only its number, is its
// URL, or else one like doc:1, which [Source.Counted] reports, with a Key made from its words. Any other prompt has no
// sources, since nothing tells which parts of it are documents.
func SourcesFromPrompt(text string) []Source { return pasted(text, false) }

// pasted reads the documents in a prompt, or in what a tool returned.
func pasted(text string, tool bool) []Source {
	text = strings.TrimSpace(text[:min(len(text), maxPrompt)])
	var list []Source
	if json.Valid([]byte(text)) {
		list = pastedJSON(text)
	} else {
		list = pastedPassages(text, tool)
	}
	list = list[:min(len(list), maxPromptSources)]
	for i := range list {
		list[i].namePasted()
	}
	return list
}

// pastedPassages reads passages that are laid out as text.
func pastedPassages(text string, tool bool) []Source {
	prompt := passage.ReadPrompt(text, tool)
	list := sourcesOf(prompt.Passages)
	for i := range list {
		s, p := &list[i], &prompt.Passages[i]
		s.DocumentID = cmp.Or(s.DocumentID, p.Label)
		if s.Rank, s.Retrieved = 1, true; i > 0 {
			s.Rank = list[i-1].Rank
			if s.DocumentID == "" || s.DocumentID != list[i-1].DocumentID {
				s.Rank++
			}
		}
	}
	if len(list) == 1 && len(list[0].Content) < minPasted && list[0].Title == "" && list[0].URL == "" {
		return nil
	}
	return list
}

// Counted reports whether DocumentID is only a position in one prompt, answer or context, such as doc:1 or context_0,
// so that the same id may elsewhere mean another document.
func (s *Source) Counted() bool { return positional(s.DocumentID) }

// namePasted replaces an id that is only a number, since other prompts number their documents, too.
func (s *Source) namePasted() {
	if n, err := strconv.Atoi(s.DocumentID); s.DocumentID != "" && (err != nil || n != s.Rank && n != s.Rank-1) &&
		!s.Counted() {
		return
	}
	if s.DocumentID = s.URL; s.URL == "" {
		s.DocumentID, s.Key = "doc:"+strconv.Itoa(s.Rank), (&ibid.Source{Content: s.Content}).Key()
	}
}

// pastedJSON reads documents in JSON, such as the results of a tool.
func pastedJSON(text string) []Source {
	if text == "" || text[0] != '[' && text[0] != '{' {
		return nil
	}
	found := passage.ReadText(text).Passages
	if len(found) == 1 && len(found[0].Raw) == len(text) && text[0] == '{' {
		return nil // one object, which may be anything
	}
	list := sourcesOf(found)
	if len(list) == 0 && text[0] == '[' { // documents without words are their JSON
		documents, err := ibid.ReadDocuments([]byte(text))
		if err != nil {
			return nil
		}
		for i := range documents {
			d := &documents[i]
			list = append(list, Source{DocumentID: d.ID, Title: d.Title, URL: d.URL, Content: d.Content})
		}
	}
	for i := range list {
		list[i].Rank, list[i].Retrieved = i+1, true
	}
	return slices.DeleteFunc(list, func(s Source) bool { return strings.TrimSpace(s.Content) == "" })
}
