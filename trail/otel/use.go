package otel

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/trail"
)

const (
	// minUse is how many bytes the text of a document must have for it to mean something that they stand in a prompt.
	minUse = 24
	// headUse is how many bytes of a document must stand there: prompts cut off what does not fit in.
	headUse = 400
	// maxUse bounds how many bytes of prompts and answers are searched for the documents of one run.
	maxUse = 1<<31 - 1
)

// retrieval is a document that a span of the run retrieved.
type retrieval struct {
	by       *spanNode
	source   int
	head     string // of its text; empty: too short to look for
	searched bool
}

// markUse finds out which of the documents that were retrieved were used, and by which calls of models.
func markUse(nodes []*spanNode) {
	var calls []*spanNode
	var found []*retrieval
	for _, n := range nodes {
		switch {
		case n.Own:
		case n.Kind == spanLLM && n.isStep:
			calls = append(calls, n)
		case n.holdsStep:
			for i := range n.step.Sources {
				found = append(found, &retrieval{by: n, source: i, head: useText(n.step.Sources[i].Content)})
			}
		}
	}
	left := maxUse
	for _, call := range calls {
		prompt := promptOf(call)
		for _, r := range found {
			if r.by.start >= call.end && r.by != call && call.end != 0 {
				continue
			}
			if left -= len(prompt) + len(call.step.Answer) + 64; left < 0 {
				break
			}
			r.markUsedBy(call, prompt)
		}
		if left < 0 {
			break
		}
	}
	for _, r := range found {
		if s := &r.by.step.Sources[r.source]; !r.searched && !s.Used {
			s.Used = true
			addIssue(r.by.step, issueUse, "the trace does not show whether what was retrieved was used; it counts as used")
		}
	}
}

// markUsedBy notes it if a call used the document.
func (r *retrieval) markUsedBy(call *spanNode, prompt string) {
	s := &r.by.step.Sources[r.source]
	cites := cites(call.step.Answer, s)
	used := cites
	if r.head != "" && prompt != "" {
		r.searched = true
		used = used || strings.Contains(prompt, r.head)
	}
	if !used {
		return
	}
	s.Used = true
	for i := range call.step.Sources { // retrieved and reranked it is one passage
		if had := &call.step.Sources[i]; had.DocumentID == s.DocumentID && cmp.Or(had.Content, had.Excerpt) == cmp.Or(s.Content, s.Excerpt) {
			had.Cited = had.Cited || cites
			return
		}
	}
	of := *s
	// The score and the rank are those of the search.
	of.Relevance, of.Origin, of.Rank, of.Retrieved, of.Cited = nil, "", 0, false, cites
	call.step.AddSources(of)
}

// useText returns what of a document must stand in a prompt, with spaces for all white space.
func useText(content string) string {
	if len(content) > 4*headUse {
		content = strings.ToValidUTF8(content[:4*headUse], "")
	}
	text := strings.Join(strings.Fields(content), " ")
	if len(text) < minUse {
		return ""
	}
	if len(text) > headUse {
		text = strings.ToValidUTF8(text[:headUse], "")
	}
	return strings.TrimSpace(text)
}

// promptOf returns all text that a call of a model was given, with spaces for all white space.
func promptOf(n *spanNode) string {
	var b strings.Builder
	add := func(s string) {
		for word := range strings.FieldsSeq(s) {
			b.WriteString(word)
			b.WriteByte(' ')
		}
	}
	if n.step.Inputs != nil {
		if v, ok := parseJSON(string(n.step.Inputs)); ok {
			eachText(v, 0, add)
		}
	}
	if b.Len() == 0 && n.step.InputsDigest == "" {
		add(n.step.Question)
	}
	return b.String()
}

// eachText calls do for the texts in a value, also for those in JSON in a text: the results of tools stand like that in
// prompts.
func eachText(v any, depth int, do func(string)) {
	if depth > MaxSpanDepth {
		return
	}
	switch v := v.(type) {
	case string:
		if inner, ok := parseJSON(v); ok {
			eachText(inner, depth+1, do)
		} else {
			do(v)
		}
	case []any:
		for _, item := range v {
			eachText(item, depth+1, do)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachText(v[name], depth+1, do)
		}
	}
}

// cites reports whether an answer names a source: by its URL, or in square brackets by its id. A bare number in
// brackets counts places in a list that nobody knows.
func cites(answer string, s *trail.Source) bool {
	if answer == "" {
		return false
	}
	if s.URL != "" && containsURL(answer, s.URL) {
		return true
	}
	id := s.DocumentID
	if id == "" || id == s.Key || strings.Trim(id, "0123456789") == "" {
		return false
	}
	for rest := answer; ; {
		_, after, ok := strings.Cut(rest, "[")
		if !ok {
			return false
		}
		inside, _, ok := strings.Cut(after, "]")
		if !ok {
			return false
		}
		for name := range strings.FieldsFuncSeq(inside, func(r rune) bool { return r == ',' || r == ';' }) {
			if strings.TrimSpace(name) == id {
				return true
			}
		}
		rest = after
	}
}

// containsURL reports whether a URL stands in text and is not the beginning of another one.
func containsURL(text, url string) bool {
	for {
		i := strings.Index(text, url)
		if i < 0 {
			return false
		}
		text = text[i+len(url):]
		end := strings.TrimLeft(text, "/.,;:!?")
		if end == "" || strings.ContainsRune(" \t\r\n)]}>\"'|*_`", rune(end[0])) ||
			len(end) < len(text) && end[0] >= 0x80 {
			return true
		}
	}
}
