package store

import (
	"crypto/sha256"
	"encoding/hex"
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
	return string(appendHashed(nil, kind, []byte(strings.Join(names, "\x00"))))
}

func appendHashed(b []byte, kind string, name []byte) []byte {
	sum := sha256.Sum256(name)
	return hex.AppendEncode(append(b, kind...), sum[:12])
}

// eachTerm calls put with the terms of an answer, some of them again and again, until the limit of an answer is
// reached. Term is only valid until put returns; put reports whether the answer did not have it yet.
func (t *tokenizer) eachTerm(c *Call, put func(term []byte) bool) {
	t.put, t.bytes = put, 0
	t.addNames(c)
	t.bytes = 0
	t.add(c.Answer.Text)
	for i := range c.Prompt {
		t.add(c.Prompt[i].Text)
	}
	for i := range c.Answer.Sources {
		t.add(c.Answer.Sources[i].Title)
	}
	for i := range c.Answer.Citations {
		for k := range c.Answer.Citations[i].Refs {
			t.add(c.Answer.Citations[i].Refs[k].Quote)
		}
	}
}

// addNames puts the terms of an answer that are no words.
func (t *tokenizer) addNames(c *Call) {
	t.addName(tenantTerm, c.Tenant)
	if c.Answer.ID != "" {
		t.addName(providerTerm, c.Upstream, c.Answer.ID)
	}
	for i := range c.Answer.Sources {
		for _, name := range sourceNames(&c.Answer.Sources[i]) {
			if t.addName(sourceTerm, name); t.bytes > maxNames {
				return
			}
		}
	}
}

func (t *tokenizer) addName(kind string, names ...string) {
	t.word = append(t.word[:0], names[0]...)
	for _, name := range names[1:] {
		t.word = append(append(t.word, 0), name...)
	}
	if t.word = appendHashed(t.word[:0], kind, t.word); t.put(t.word) {
		t.bytes += len(t.word) + 1
	}
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

// termQuery is what answers are looked for by: of each list of terms at least one.
type termQuery [][]queryTerm

// addNames adds that an answer has a source of one of these names.
func (q *termQuery) addNames(names []string) {
	list := make([]queryTerm, 0, len(names))
	for _, name := range names {
		list = append(list, queryTerm{text: hashed(sourceTerm, name)})
	}
	*q = append(*q, list)
}

// addWords adds that an answer has all words of a text. Without any word in it nothing has.
func (q *termQuery) addWords(text string) {
	words := queryWords(text)
	for _, word := range words {
		*q = append(*q, []queryTerm{word})
	}
	if len(words) == 0 {
		*q = append(*q, nil)
	}
}

// impossible reports whether nothing can be found.
func (q termQuery) impossible() bool {
	for _, list := range q {
		if len(list) == 0 {
			return true
		}
	}
	return false
}
