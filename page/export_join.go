package page

import (
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/store"
)

// joining makes one answer of those of a conversation, so that whatever writes an answer writes them with one numbering
// and one list of sources.
type joining struct {
	text     strings.Builder
	answer   ibid.Answer
	messages int
	unplaced []ibid.Citation
	ids      map[string]string // of sources in the joined answer, by their key
}

// joined returns a conversation as one answer: the questions as quotations, and each source once.
func joined(c *store.Conversation) *ibid.Answer {
	j := &joining{ids: map[string]string{}}
	for _, turn := range c.Turns() {
		for _, m := range turn.Asked {
			if m.Role == store.RoleUser && strings.TrimSpace(m.Text) != "" {
				j.add(quoted(m.Text))
			}
		}
		j.addAnswer(turn.Call.Answer)
	}
	j.answer.Text = j.text.String()
	j.answer.Citations = append(j.answer.Citations, j.unplaced...)
	j.answer.Complete = true
	return &j.answer
}

// add adds a message without citations.
func (j *joining) add(text string) {
	start := j.text.Len()
	j.text.WriteString(text)
	j.answer.Parts = append(
		j.answer.Parts,
		ibid.Part{Span: ibid.Span{Start: start, End: j.text.Len()}, Kind: ibid.AnswerPart, Message: j.messages},
	)
	j.messages++
}

func (j *joining) addAnswer(a *ibid.Answer) {
	start := j.text.Len()
	if a.Text != "" {
		j.text.WriteString(a.Text)
		j.addParts(a, start)
	}
	ids := map[string]string{}
	for i := range a.Sources {
		ids[a.Sources[i].ID] = j.source(&a.Sources[i])
	}
	for i := range a.Citations {
		c := a.Citations[i]
		c.ID = strconv.Itoa(j.messages) + "-" + strconv.Itoa(i) + "-" + c.ID
		c.Refs = nil
		for _, ref := range a.Citations[i].Refs {
			ref.Source = ids[ref.Source]
			c.Refs = append(c.Refs, ref)
		}
		if !c.Placed() {
			j.unplaced = append(j.unplaced, c)
			continue
		}
		c.Span = shifted(c.Span, start)
		if c.Claim != (ibid.Span{}) {
			c.Claim = shifted(c.Claim, start)
		}
		j.answer.Citations = append(j.answer.Citations, c)
	}
	if fence := openFence(a.Text); fence != "" { // it would take in all that follows
		j.text.WriteString("\n" + fence)
		j.answer.Parts[len(j.answer.Parts)-1].End = j.text.Len()
	}
	switch {
	case a.Error != nil:
		j.add("*The provider answered with an error.*")
	case !a.Complete:
		j.add("*The answer was broken off here.*")
	}
}

// addParts adds the parts of an answer whose text begins at start.
func (j *joining) addParts(a *ibid.Answer, start int) {
	if len(a.Parts) == 0 {
		j.answer.Parts = append(
			j.answer.Parts,
			ibid.Part{Span: ibid.Span{Start: start, End: j.text.Len()}, Kind: ibid.AnswerPart, Message: j.messages},
		)
		j.messages++
		return
	}
	first, last := j.messages, j.messages
	for _, part := range a.Parts {
		part.Span = shifted(part.Span, start)
		part.Message += first
		last = max(last, part.Message)
		j.answer.Parts = append(j.answer.Parts, part)
	}
	j.messages = last + 1
}

// source returns the id that a source has in the joined answer.
func (j *joining) source(s *ibid.Source) string {
	key := s.Key()
	if id, known := j.ids[key]; known {
		return id
	}
	one := *s
	one.ID = "s" + strconv.Itoa(len(j.ids)+1)
	j.ids[key] = one.ID
	j.answer.Sources = append(j.answer.Sources, one)
	return one.ID
}

func shifted(s ibid.Span, by int) ibid.Span { return ibid.Span{Start: s.Start + by, End: s.End + by} }

// quoted returns a text as a quotation in markdown.
func quoted(text string) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+line, " ")
	}
	return strings.Join(lines, "\n")
}

// openFence returns what closes the block of code that a text ends in; empty: it does not end in one.
func openFence(text string) string {
	fence, _ := fenceIn(text)
	return fence
}

// fenceIn returns what closes the block of code that a text ends in, empty if it does not end in one, and where the
// last block of code before that ends.
func fenceIn(text string) (fence string, closed int) {
	var f markdown.Fence
	at := 0
	for line := range strings.Lines(text) {
		at += len(line)
		was := f.Open()
		if f.Line(line); was && !f.Open() {
			closed = at
		}
	}
	return f.Run(), closed
}
