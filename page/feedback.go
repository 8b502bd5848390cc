package page

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/store"
)

// verdict is what was said last of a citation.
type verdict struct {
	Word string // one of store.Verdicts
	By   string // empty: nobody said who
	Note string
	At   time.Time
}

// sayings is what people said of an answer.
type sayings struct {
	last  map[string]verdict // on each citation, by its id; on the answer as a whole by ""
	words int                // how much they said of it in all, up to store.MaxLimit
}

// said returns what was said of an answer. Of more than store.MaxLimit words the latest ones count.
func (p *Page) said(ctx context.Context, tenant, answerID string) (*sayings, error) {
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	words, err := p.o.Store.Feedback(ctx, tenant, &store.FeedbackQuery{AnswerID: answerID, Limit: store.MaxLimit})
	if err != nil {
		return nil, err
	}
	s := &sayings{last: map[string]verdict{}, words: len(words.Items)}
	for _, f := range words.Items {
		if _, later := s.last[f.Citation]; f.Verdict != "" && !later {
			s.last[f.Citation] = verdict{f.Verdict, f.By, f.Note, f.At}
		}
	}
	return s, nil
}

// mayWrite reports whether who makes a request may say what is wrong.
func (r *request) mayWrite() bool { return r.who.May(store.ScopeWrite) || r.who.Token == "" }

// ratings returns the last relevance that was said of each source of a run, by its step and the name it was said of.
func (p *Page) ratings(ctx context.Context, tenant, run string) (map[rated]float64, error) {
	words, err := p.o.Store.Feedback(ctx, tenant, &store.FeedbackQuery{Run: run, Limit: store.MaxLimit})
	if err != nil {
		return nil, err
	}
	last := map[rated]float64{}
	for _, f := range words.Items {
		of := rated{f.Step, f.Source}
		if _, later := last[of]; f.Relevance != nil && !later {
			last[of] = *f.Relevance
		}
	}
	return last, nil
}

// rated is what a relevance is said of.
type rated struct {
	Step   int // 0: the run as a whole
	Source string
}

// giveFeedback keeps what a reader says: a verdict on a citation (answer, citation, verdict, note), or how relevant a
// source was (run, step, source, relevance, note). It leads back to next, a path of ours; a script that asks for JSON
// gets 204.
func (p *Page) giveFeedback(w http.ResponseWriter, r *request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	form := r.PostForm
	text := func(name string) string { return strings.TrimSpace(strings.ToValidUTF8(form.Get(name), "\ufffd")) }
	f := &store.Feedback{
		AnswerID: text(
			"answer",
		),
		Citation: text("citation"),
		Run:      text("run"),
		Source:   text("source"),
		Verdict:  text("verdict"),
		Note:     text("note"),
	}
	var err error
	if s := text("step"); s != "" {
		if f.Step, err = strconv.Atoi(s); err != nil || f.Step < 1 {
			return badRequest("The step is not a number.", "Steps are numbered from 1.")
		}
	}
	if s := text("relevance"); s != "" {
		relevance, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return badRequest("The relevance is not a number.", "It is one from 0 to 1.")
		}
		f.Relevance = &relevance
	}
	if f.By, err = p.nameOf(r); err != nil {
		return err
	}
	if err := p.o.API.AddFeedback(r.Context(), r.who.Tenant, f); err != nil {
		return err
	}
	if r.Header.Get("Accept") == "application/json" {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	next := localPath(form.Get("next"))
	if next == "/" && f.AnswerID != "" {
		next = answerURL(f.AnswerID)
	}
	http.Redirect(w, r.Request, next, http.StatusSeeOther)
	return nil
}

// nameOf returns the name of a reader's token; empty: none was needed.
func (p *Page) nameOf(r *request) (string, error) {
	if r.who.Token == "" {
		return "", nil
	}
	tokens, err := p.o.Store.Tokens(r.Context())
	if err != nil {
		return "", err
	}
	for i := range tokens {
		if tokens[i].ID == r.who.Token && tokens[i].Tenant == r.who.Tenant {
			return tokens[i].Name, nil
		}
	}
	return "", nil
}
