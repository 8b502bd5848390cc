package store

import (
	"strings"

	"github.com/ibidhq/ibid"
)

// A term is what an answer is found by: a word of it, or, behind a character that is in no word, the hash of a name.
const (
	tenantTerm   = "\ue000" // all answers of a tenant
	sourceTerm   = "\ue001" // a source
	providerTerm = "\ue002" // the upstream and the provider's id
)

// hashed returns the term for names of one kind.
func hashed(kind string, names ...string) string {
	return kind + hash(strings.Join(names, "\x00"))[:24]
}

// eachTerm calls put with the terms of an answer, some of them again and again, until the limit of an answer is reached.
// Term is only valid until put returns; put reports whether the answer did not have it yet.
func (w *wordReader) eachTerm(c *Call, put func(term []byte) bool) {
	w.put, w.bytes = put, 0
	for _, term := range exactTerms(c) {
		put([]byte(term))
	}
	w.add(c.Answer.Text)
	for i := range c.Prompt {
		w.add(c.Prompt[i].Text)
	}
	for i := range c.Answer.Sources {
		w.add(c.Answer.Sources[i].Title)
	}
	for i := range c.Answer.Citations {
		for k := range c.Answer.Citations[i].Refs {
			w.add(c.Answer.Citations[i].Refs[k].Quote)
		}
	}
}

// exactTerms returns the terms of an answer that are no words.
func exactTerms(c *Call) []string {
	terms := []string{hashed(tenantTerm, c.Tenant)}
	if c.Answer.ID != "" {
		terms = append(terms, hashed(providerTerm, c.Upstream, c.Answer.ID))
	}
	for i := range c.Answer.Sources {
		for _, name := range sourceNames(&c.Answer.Sources[i]) {
			terms = append(terms, hashed(sourceTerm, name))
		}
	}
	return terms
}

// sourceNames returns the names by which a source is looked up.
func sourceNames(s *ibid.Source) []string {
	names := []string{s.Key()}
	if s.ID != s.GlobalID && !isCount(s.ID) {
		names = append(names, "id:"+s.ID)
	}
	return names
}

// isCount reports whether an id only counts the sources of its answer, as web:0 does.
func isCount(id string) bool {
	kind, digits, found := strings.Cut(id, ":")
	return found && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && strings.Trim(digits, "0123456789") == ""
}

// addressNames returns the names of sources with an address.
func addressNames(address string) []string {
	var names []string
	for _, kind := range []ibid.SourceKind{ibid.Web, ibid.File, ibid.DocumentKind, ibid.Tool, ibid.Map, ibid.Image} {
		source := ibid.Source{Kind: kind, URL: address}
		if key := source.Key(); strings.HasPrefix(key, string(kind)+":") { // else it is no address
			names = append(names, key)
		}
	}
	return names
}

// queryTerm is a term that is looked for.
type queryTerm struct {
	text   string
	prefix bool // it is only the beginning of one
}

// search is what answers are looked for by: of each list of terms at least one.
type search [][]queryTerm

// names adds that an answer has a source of one of these names.
func (s *search) names(names []string) {
	list := make([]queryTerm, 0, len(names))
	for _, name := range names {
		list = append(list, queryTerm{text: hashed(sourceTerm, name)})
	}
	*s = append(*s, list)
}

// words adds that an answer has all words of a text. Without any word in it nothing has.
func (s *search) words(text string) {
	words := queryWords(text)
	for _, word := range words {
		*s = append(*s, []queryTerm{word})
	}
	if len(words) == 0 {
		*s = append(*s, nil)
	}
}

// tsquery returns what is looked for as PostgreSQL takes it. No character of a term means anything to it.
func (s search) tsquery() string {
	var b strings.Builder
	for i, list := range s {
		if i > 0 {
			b.WriteString(" & ")
		}
		for k, term := range list {
			b.WriteString([]string{"(", " | "}[min(k, 1)])
			b.WriteString("'" + term.text + "'")
			if term.prefix {
				b.WriteString(":*")
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}

// impossible reports whether nothing can be found.
func (s search) impossible() bool {
	for _, list := range s {
		if len(list) == 0 {
			return true
		}
	}
	return false
}
