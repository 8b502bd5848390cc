package page

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

// verdictWords returns a verdict in words.
func verdictWords(v string) string {
	switch v {
	case store.VerdictRight:
		return "right"
	case store.VerdictWrongSource:
		return "wrong source: another one says it"
	case store.VerdictNotSaid:
		return "the source does not say this"
	}
	return "something else is wrong"
}

// feedbackURL returns the address of all feedback on a citation, or on the answer if citation is empty.
func feedbackURL(answerID, citation string) string {
	q := url.Values{"answer": {answerID}}
	if citation != "" {
		q.Set("citation", citation)
	}
	return "/ui/feedback?" + q.Encode()
}

// verdict is the last verdict on a citation.
type verdict struct {
	Word string // one of store.Verdicts
	By   string // empty if unknown
	Note string
	At   time.Time
}

// answerFeedback is the feedback on an answer.
type answerFeedback struct {
	last  map[string]verdict // by citation id; that on the answer as a whole by ""
	words int                // number of entries in all, up to store.MaxLimit
}

// feedbackOf returns the feedback on an answer. If there are more than store.MaxLimit entries the latest count.
func (p *Page) feedbackOf(ctx context.Context, tenant, answerID string) (*answerFeedback, error) {
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	words, err := p.o.Store.Feedback(ctx, tenant, &store.FeedbackQuery{AnswerID: answerID, Limit: store.MaxLimit})
	if err != nil {
		return nil, err
	}
	s := &answerFeedback{last: map[string]verdict{}, words: len(words.Items)}
	for _, f := range words.Items {
		if _, later := s.last[f.Citation]; f.Verdict != "" && !later {
			s.last[f.Citation] = verdict{f.Verdict, f.By, f.Note, f.At}
		}
	}
	return s, nil
}

// ratingKey is what a relevance was given for.
type ratingKey struct {
	Step   int // 0: the run as a whole
	Source string
}

// ratings returns the last relevance given for each source of a run, by step and the name used for it.
func (p *Page) ratings(ctx context.Context, tenant, run string) (map[ratingKey]float64, error) {
	words, err := p.o.Store.Feedback(ctx, tenant, &store.FeedbackQuery{Run: run, Limit: store.MaxLimit})
	if err != nil {
		return nil, err
	}
	last := map[ratingKey]float64{}
	for _, f := range words.Items {
		of := ratingKey{f.Step, f.Source}
		if _, later := last[of]; f.Relevance != nil && !later {
			last[of] = *f.Relevance
		}
	}
	return last, nil
}

// giveFeedback stores a reader's feedback: a verdict on a citation (answer, citation, verdict, note), or how relevant a
// source was (run, step, source, relevance, note). It redirects to next, a path of this site; a script that asks for
// JSON gets a 204.
func (p *Page) giveFeedback(w *httpx.Reply, r *httpx.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	field := func(name string) string {
		return strings.TrimSpace(strings.ToValidUTF8(r.PostForm.Get(name), "\ufffd"))
	}
	f := &store.Feedback{
		AnswerID: field("answer"), Citation: field("citation"), Run: field("run"), Source: field("source"),
		Verdict: field("verdict"), Note: field("note"),
	}
	var err error
	if s := field("step"); s != "" {
		if f.Step, err = strconv.Atoi(s); err != nil || f.Step < 1 {
			return httpx.BadRequest("The step is not a number.", "Steps are numbered from 1.")
		}
	}
	if s := field("relevance"); s != "" {
		relevance, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return httpx.BadRequest("The relevance is not a number.", "It must be from 0 to 1.")
		}
		f.Relevance = &relevance
	}
	if f.By, err = p.tokenName(r); err != nil {
		return err
	}
	if err := p.o.API.AddFeedback(r.Context(), r.Who.Tenant, f); err != nil {
		return err
	}
	if r.Header.Get("Accept") == "application/json" {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	next := localPath(r.PostForm.Get("next"))
	if next == "/" && f.AnswerID != "" {
		next = answerURL(f.AnswerID)
	}
	http.Redirect(w, r.Request, next, http.StatusSeeOther)
	return nil
}

// tokenName returns the name of a reader's token; empty if none was needed.
func (p *Page) tokenName(r *httpx.Request) (string, error) {
	if r.Who.Token == "" {
		return "", nil
	}
	tokens, err := p.o.Store.Tokens(r.Context())
	if err != nil {
		return "", err
	}
	for i := range tokens {
		if tokens[i].ID == r.Who.Token && tokens[i].Tenant == r.Who.Tenant {
			return tokens[i].Name, nil
		}
	}
	return "", nil
}

// feedbackBody is the content of the page of feedback.
type feedbackBody struct {
	About             *feedbackForm // nil if it is not about a single citation
	Items             []store.Feedback
	Verdicts, Ratings int
	Relevance         string // the mean; empty if nothing was rated
	Next              string
	One               string // the address of the answer that all of it is about; empty if there are several
}

// feedbackForm is the form for one citation.
type feedbackForm struct {
	Answer, Citation   string
	Claim, Quote, Note string
	Sources            []string
	Verdicts           []choice
	May                bool // the reader may judge it
}

// feedbackListed is how much feedback a page of its list has.
const feedbackListed = 20

// showFeedback shows all feedback, or that on one citation with the form to give more.
func (p *Page) showFeedback(w *httpx.Reply, r *httpx.Request) error {
	q := r.URL.Query()
	if as := q.Get("as"); as != "" {
		return p.o.API.ExportFeedback(w, r.Request, r.Who.Tenant, as)
	}
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	body, title := &feedbackBody{}, "Feedback"
	what := &store.FeedbackQuery{AnswerID: asked(r, "answer"), Cursor: q.Get("cursor"), Limit: feedbackListed}
	citation := asked(r, "citation")
	if what.AnswerID != "" {
		body.One = answerURL(what.AnswerID)
	}
	if what.AnswerID != "" && citation != "" {
		form, err := p.feedbackForm(ctx, r, what.AnswerID, citation)
		if err != nil {
			return err
		}
		body.About, title, what.Limit = form, "A citation", store.MaxLimit
	}
	page, err := p.o.Store.Feedback(ctx, r.Who.Tenant, what)
	if err != nil {
		return err
	}
	body.Items = slices.DeleteFunc(page.Items, func(f store.Feedback) bool {
		return citation != "" && f.Citation != citation
	})
	if body.About == nil {
		counts, err := p.o.Store.FeedbackCounts(ctx, r.Who.Tenant, what)
		if err != nil {
			return err
		}
		for _, n := range counts.Verdicts {
			body.Verdicts += n
		}
		body.Ratings, body.Relevance = counts.Ratings, score(counts.Relevance)
		body.Next = nextURL(r.URL, page.Next)
	}
	return p.show(w, r, &view{Name: "feedback", Title: title, Section: "feedback", Body: body})
}

// feedbackForm returns the form for a citation, filled with the last feedback on it.
func (p *Page) feedbackForm(ctx context.Context, r *httpx.Request, answerID, citation string) (*feedbackForm, error) {
	call, err := p.call(ctx, r.Who.Tenant, answerID)
	if err != nil {
		return nil, err
	}
	a := call.Answer
	at := slices.IndexFunc(a.Citations, func(c ibid.Citation) bool { return c.ID == citation })
	if at < 0 {
		return nil, store.ErrNotFound
	}
	c := &a.Citations[at]
	form := &feedbackForm{Answer: answerID, Citation: citation, Claim: plainWords(claimOf(a, c)), May: mayWrite(r)}
	if form.Claim == "" {
		form.Claim = "The answer as a whole"
	}
	for _, ref := range c.Refs {
		form.Quote = short(ref.Quote, 400)
		if s := a.Source(ref.Source); s != nil {
			form.Sources = append(form.Sources, sourceTitle(s))
		}
	}
	feedback, err := p.feedbackOf(ctx, r.Who.Tenant, answerID)
	if err != nil {
		return nil, err
	}
	last := feedback.last[citation]
	for _, v := range store.Verdicts() {
		form.Verdicts = append(form.Verdicts, choice{v, capital(verdictWords(v)), last.Word == v})
	}
	form.Note = last.Note
	return form, nil
}
