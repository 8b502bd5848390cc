package trail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/passage"
)

// resultPrefix begins the title of a source that is what a tool returned, if that names itself nothing.
const resultPrefix = "result of "

// AddResult adds what the step's tool returned to its sources: JSON, or a string in JSON. Documents in it, in any of
// the forms that searches, retrievers and MCP servers return them, become sources with their own names, and so do
// documents that its text lays out as in a prompt. Any other text is one source, titled "result of search_notes (step
// 2)". A result that is a text of the step's inputs, as of a tool that takes the final answer, is none. What cannot be
// read, such as an image, is an issue of the step. It reports whether there was anything to read.
func (s *Step) AddResult(result json.RawMessage) bool {
	if s.isEcho(result) {
		return true
	}
	return s.addResult(passage.ReadJSON(result))
}

// minEcho is how many bytes what a tool returned must have to be recognised in what it was called with.
const minEcho = 20

// isEcho reports whether a tool returned words that it was called with.
func (s *Step) isEcho(result json.RawMessage) bool {
	var said string
	if json.Unmarshal(result, &said) != nil {
		return false
	}
	if said = strings.TrimSpace(said); len(said) < minEcho {
		return false
	}
	return strings.TrimSpace(s.Question) == said || hasText(s.Inputs, said)
}

// hasText reports whether a JSON value is a text, or a list or an object that contains it.
func hasText(raw json.RawMessage, text string) bool {
	var value any
	if !bytes.Contains(raw, []byte(`"`)) || json.Unmarshal(raw, &value) != nil {
		return false
	}
	todo := []any{value}
	for len(todo) > 0 {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch v := last.(type) {
		case string:
			if strings.TrimSpace(v) == text {
				return true
			}
			if v = strings.TrimSpace(v); strings.HasPrefix(v, "{") && hasText(json.RawMessage(v), text) {
				return true
			}
		case []any:
			todo = append(todo, v...)
		case map[string]any:
			for _, member := range v {
				todo = append(todo, member)
			}
		}
	}
	return false
}

func (s *Step) addResult(r *passage.Result) bool {
	var list []Source
	for i := range r.Passages {
		p := &r.Passages[i]
		if p.Title == "" && p.Filename == "" && p.URL == "" && p.ID == "" { // a block of text
			if laid := pasted(p.Text, true); len(laid) > 1 || len(laid) == 1 && laid[0].Title+laid[0].URL != "" {
				list = append(list, laid...)
				continue
			}
		}
		list = append(list, sourceOf(p))
	}
	if text := strings.TrimSpace(r.Text); text != "" && !isTransfer(text) {
		if laid := pasted(text, true); len(laid) > 0 {
			list = append(list, laid...)
		} else {
			list = append(list, Source{Content: text})
		}
	}
	for i := range list {
		f := &list[i]
		f.Retrieved, f.Used, f.Rank = true, true, i+1
		f.Excerpt = Excerpt(f.Content, 0)
		if f.Title == "" && f.URL == "" && (f.DocumentID == "" || f.Counted()) {
			f.Title = s.resultTitle()
			f.DocumentID = ""
		}
		f.identify(i)
	}
	s.AddSources(list...)
	if len(r.Unread) > 0 {
		s.addIssue(issueUnread, fmt.Sprintf(
			"what %s returned has parts that cannot be read as a source: %s", cmp.Or(s.Tool, "a tool"),
			strings.Join(r.Unread, ", "),
		))
	}
	return len(list) > 0 || len(r.Unread) > 0
}

// SetResult gives the step what another record of the same call has of its result: the sources, and what of it could
// not be read instead of what the step's own record lacks.
func (s *Step) SetResult(of *Step) {
	s.AddSources(of.Sources...)
	s.Issues = slices.DeleteFunc(slices.Clone(s.Issues), func(i ibid.Issue) bool { return i.Code == issueUnread })
	s.Issues = append(s.Issues, of.Issues...)
}

// addIssue adds an issue, once.
func (s *Step) addIssue(code, detail string) {
	issue := ibid.Issue{Code: code, Detail: detail}
	if !slices.Contains(s.Issues, issue) {
		s.Issues = append(s.Issues, issue)
	}
}

// resultTitle returns the title of what the step's tool returned.
func (s *Step) resultTitle() string {
	title := resultPrefix + cmp.Or(s.Tool, "a tool")
	if s.Number > 0 {
		title += " (step " + strconv.Itoa(s.Number) + ")"
	}
	return title
}

// Complete completes what only the whole run shows, after its steps got their numbers: the titles of what tools
// returned, wherever they are listed, and which strings of a context are no sources since they are the answers of
// earlier steps.
func (t *Trail) Complete() {
	t.dropAnswers()
	titles := map[string]string{} // by document
	for i := range t.Steps {
		s := &t.Steps[i]
		if s.Nested != nil {
			s.Nested.Complete()
		}
		if s.Tool == "" {
			continue
		}
		for k := range s.Sources {
			f := &s.Sources[k]
			if f.Title == resultPrefix+s.Tool {
				f.Title = s.resultTitle()
				titles[f.DocumentID] = f.Title
			}
		}
	}
	for i := range t.Steps {
		for k := range t.Steps[i].Sources {
			f := &t.Steps[i].Sources[k]
			if title, ok := titles[f.DocumentID]; ok && strings.HasPrefix(f.Title, resultPrefix) {
				f.Title = title
			}
		}
	}
}

// minAnswer is how many bytes an answer must have to be recognised in a longer string, and maxBefore how many may
// precede it there, as in "Step 1: …".
const (
	minAnswer = 20
	maxBefore = 40
)

// dropAnswers removes the strings of contexts that are the answers of earlier steps from the sources.
func (t *Trail) dropAnswers() {
	answers := map[string]bool{}
	for i := range t.Steps {
		s := &t.Steps[i]
		if len(s.Context) > 0 && len(answers) > 0 {
			s.Sources = slices.DeleteFunc(s.Sources, func(f Source) bool {
				if f.Origin != ibid.ScoreRank || !f.Counted() {
					return false
				}
				text := plainWords(f.Content)
				if answers[text] {
					return true
				}
				_, after, ok := strings.Cut(text, ": ")
				return ok && len(text)-len(after) <= maxBefore && len(after) >= minAnswer && answers[after]
			})
		}
		if s.Answer != "" {
			answers[plainWords(s.Answer)] = true
		}
	}
}

// plainWords returns a text in lower case, with single spaces and without the punctuation at its end.
func plainWords(text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(strings.ToLower(text)), " "), ".!?…")
}

// isTransfer reports whether a result only says that another agent takes over.
func isTransfer(text string) bool {
	var handoff map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &handoff) == nil {
		return len(handoff) == 1 && handoff["assistant"] != nil
	}
	lower := strings.ToLower(text)
	return len(lower) < 120 && (strings.HasPrefix(lower, "successfully transferred to ") ||
		strings.HasPrefix(lower, "transferred to ") || strings.HasPrefix(lower, "transferring to "))
}

// sourcesOf returns passages as sources.
func sourcesOf(list []passage.Passage) []Source {
	sources := make([]Source, 0, len(list))
	for i := range list {
		sources = append(sources, sourceOf(&list[i]))
	}
	return sources
}

// sourceOf returns a passage as a source.
func sourceOf(p *passage.Passage) Source {
	s := Source{DocumentID: p.ID, Title: cmp.Or(p.Title, p.Filename), URL: p.URL, Content: p.Text}
	if p.Score != nil && isFinite(*p.Score) {
		s.Relevance, s.Origin = new(*p.Score), ibid.ScoreRetriever
	}
	at := ibid.Locator{Chunk: p.ChunkID}
	if page, err := strconv.Atoi(p.Page); err == nil && page > 0 {
		at.Page = page
	}
	if n, err := strconv.Atoi(p.ChunkID); err == nil && n >= 0 {
		s.ChunkIndex, at.Chunk = &n, ""
	}
	if at.Page != 0 || at.Chunk != "" {
		s.Locator = &at
	}
	return s
}

// spanMember is the member of a step that package otel has not arranged yet: it reads the results then.
const spanMember = "otel_span"

// ownNames are members of a source that only this package's format has.
var ownNames = strings.Fields(`document_id document_title relevance_score retrieval_rank excerpt key score_origin
	retrieved used cited`)

// foreignRows reads an element of a list of sources that has another program's form: what a search, a retriever or an
// MCP server returned. It returns nil for a source of this package's format, and for what it cannot read.
func foreignRows(raw json.RawMessage, members map[string]json.RawMessage) []Source {
	if present(members, ownNames) != "" {
		return nil
	}
	words := cmp.Or(string(members["content"]), string(members["text"]))
	named := present(members, []string{"id", "title", "url"}) != ""
	if named && strings.HasPrefix(words, `"`) && members["type"] == nil {
		return nil
	}
	r := passage.ReadJSON(raw)
	list := sourcesOf(r.Passages)
	if len(list) == 0 && r.Text != "" && r.Text[0] != '{' {
		list = []Source{{Content: r.Text}}
	}
	for i := range list {
		list[i].Excerpt = Excerpt(list[i].Content, 0)
	}
	return list
}

// unreadMembers are members of a step that hold what a tool returned under a name that is not this package's, best
// first. Any other member counts if it holds documents with names.
var unreadMembers = strings.Fields(`result results observation tool_output tool_result output response documents
	content artifact structured_content structuredContent`)

// readResults reads what the step's tool returned, if that is all that is known of its sources: its outputs, else the
// members under other names.
func (s *Step) readResults() {
	if s.NoSources || len(s.Sources) > 0 || s.Nested != nil || s.Error != "" || s.Extra[spanMember] != nil {
		return
	}
	if s.Outputs != nil && s.Tool != "" && !s.outputIsAnswer() {
		s.AddResult(s.Outputs)
		return
	}
	tried := map[string]bool{}
	for _, name := range unreadMembers {
		if raw, ok := s.Extra[name]; ok && s.Tool != "" {
			tried[name] = true
			if s.AddResult(raw); len(s.Sources) > 0 {
				return
			}
		}
	}
	for _, name := range sortedNames(s.Extra) {
		raw := s.Extra[name]
		if name == invalidMembers || len(raw) == 0 || raw[0] != '[' && raw[0] != '{' || tried[name] {
			continue
		}
		named := namedPassages(raw)
		if len(named) == 0 {
			continue
		}
		s.addResult(&passage.Result{Passages: named})
		s.addIssue(issueRead, fmt.Sprintf("the documents in %s count as the step's sources", name))
	}
}

// namedPassages returns the passages in a JSON value that have a name or an address.
func namedPassages(raw json.RawMessage) []passage.Passage {
	return slices.DeleteFunc(passage.ReadJSON(raw).Passages, func(p passage.Passage) bool {
		return p.URL == "" && p.Title == "" && p.ID == ""
	})
}

// outputIsAnswer reports whether the step's output is what it answered.
func (s *Step) outputIsAnswer() bool {
	var text string
	return s.Answer != "" && json.Unmarshal(s.Outputs, &text) == nil &&
		strings.TrimSpace(text) == strings.TrimSpace(s.Answer)
}

func sortedNames(members map[string]json.RawMessage) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
