package trail

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// FinalID returns the id of the captured answer that is the final one: Final itself, else the last one of the same
// words. Empty: none is.
func (t *Trail) FinalID() string {
	if t.Final == nil {
		return ""
	}
	id := ""
	for i := range slices.Backward(t.Steps) {
		for k := range slices.Backward(t.Steps[i].Answers) {
			one := &t.Steps[i].Answers[k]
			switch {
			case one.ID == "" || one.Answer == nil:
			case one.Answer == t.Final:
				return one.ID
			case id == "" && one.Answer.Text == t.Final.Text:
				id = one.ID
			}
		}
	}
	return id
}

// FinalAnswer returns the final answer with its citations. Where only its text is known its sentences cite the
// documents that they rest on, as [Trail.Link] finds them with c and o: without quotes, and with the origin
// [ibid.OriginInferred]. Nil: there is no final answer. The error says that ctx ended, or that the checker could not
// work at all.
func (t *Trail) FinalAnswer(ctx context.Context, c support.Checker, o *LinkOptions) (*ibid.Answer, error) {
	if t.Final != nil || t.Answer == "" {
		return t.Final, nil
	}
	links, err := t.Link(ctx, c, o)
	if err != nil {
		return nil, fmt.Errorf("citing what the final answer rests on: %w", err)
	}
	a := &ibid.Answer{Text: t.Answer, Complete: true}
	for i := range links.Sentences {
		s := &links.Sentences[i]
		var refs []ibid.Ref
		for k := range s.Passages {
			ref := ibid.Ref{Source: addSource(a, &s.Passages[k])}
			if ref.Source != "" && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
		if len(refs) == 0 {
			continue
		}
		if err := a.Cite(s.Span, refs...); err != nil {
			return nil, fmt.Errorf("citing what the final answer rests on: %w", err)
		}
	}
	return a, nil
}

// addSource returns the id of a passage's document among the answer's sources, which it is added to; empty: no step has
// it.
func addSource(a *ibid.Answer, r *Rest) string {
	switch {
	case a.Source(r.DocumentID) != nil:
		return r.DocumentID
	case r.source == nil:
		return ""
	}
	source := ibid.Source{
		ID:      r.DocumentID,
		Kind:    ibid.DocumentKind,
		Title:   r.source.Title,
		URL:     r.source.URL,
		Content: r.source.Content,
	}
	if source.URL != "" {
		source.Kind = ibid.Web
	}
	a.Sources = append(a.Sources, source)
	return source.ID
}
