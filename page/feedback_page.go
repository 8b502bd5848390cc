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
	"github.com/ibidhq/ibid/store"
)

// feedbackBody is what the page of feedback shows.
type feedbackBody struct {
	About             *feedbackAbout // nil: no single citation
	Items             []feedbackItem
	Verdicts, Ratings int
	Relevance         string // the mean; empty: nobody rated
	Next              string
	One               string // where the answer is that all of it is about; empty: it is about several
}

// feedbackAbout is the form for one citation.
type feedbackAbout struct {
	Answer, Citation, Next string
	Claim, Quote, Note     string
	Sources                []string
	Verdicts               []talkFilter
	May                    bool // the reader may judge it
}

type feedbackItem struct {
	Word, Note, By, URL, Source string
	Subject                     string // what the link is called
	At                          time.Time
}

// verdictWord returns a verdict in words. All pages have them from here.
func verdictWord(v string) string {
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

// capital returns words that begin with an ASCII letter as a sentence begins.
func capital(words string) string { return strings.ToUpper(words[:1]) + words[1:] }

// feedbackURL returns where all is shown that was said of a citation, and of the answer if that is empty.
func feedbackURL(answerID, citation string) string {
	q := url.Values{"answer": {answerID}}
	if citation != "" {
		q.Set("citation", citation)
	}
	return "/ui/feedback?" + q.Encode()
}

// showFeedback shows what people said, of everything or of one citation, with the form to say it.
func (p *Page) showFeedback(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	if as := q.Get("as"); as != "" {
		return p.o.API.ExportFeedback(w, r.Request, r.who.Tenant, as)
	}
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	body := &feedbackBody{}
	title := "Feedback"
	what := &store.FeedbackQuery{AnswerID: clean(q.Get("answer")), Cursor: q.Get("cursor"), Limit: listed}
	citation := clean(q.Get("citation"))
	if what.AnswerID != "" {
		body.One = answerURL(what.AnswerID)
	}
	if what.AnswerID != "" && citation != "" {
		about, err := p.feedbackAbout(ctx, r, what.AnswerID, citation)
		if err != nil {
			return err
		}
		body.About, title, what.Limit = about, "A citation", store.MaxLimit
	}
	page, err := p.o.Store.Feedback(ctx, r.who.Tenant, what)
	if err != nil {
		return err
	}
	for i := range page.Items {
		if f := &page.Items[i]; citation == "" || f.Citation == citation {
			body.Items = append(body.Items, feedbackItemOf(f))
		}
	}
	if err := p.countFeedback(ctx, r.who.Tenant, body, what); err != nil {
		return err
	}
	if page.Next != "" && body.About == nil {
		q.Set("cursor", page.Next)
		body.Next = "/ui/feedback?" + q.Encode()
	}
	return p.page(w, r, "feedback", &view{Title: title, Section: "feedback", Body: body})
}

func (p *Page) countFeedback(ctx context.Context, tenant string, body *feedbackBody, what *store.FeedbackQuery) error {
	if body.About != nil {
		return nil
	}
	counts, err := p.o.Store.FeedbackCounts(ctx, tenant, what)
	if err != nil {
		return err
	}
	for _, n := range counts.Verdicts {
		body.Verdicts += n
	}
	if body.Ratings = counts.Ratings; counts.Relevance != nil {
		body.Relevance = strconv.FormatFloat(*counts.Relevance, 'f', 2, 64)
	}
	return nil
}

func feedbackItemOf(f *store.Feedback) feedbackItem {
	item := feedbackItem{Note: f.Note, By: f.By, At: f.At, Source: f.Source, Subject: "the answer"}
	if f.Relevance != nil {
		item.Word = "The source has a relevance of " + strconv.FormatFloat(*f.Relevance, 'g', 3, 64)
	} else {
		item.Word = capital(verdictWord(f.Verdict))
	}
	switch {
	case f.AnswerID != "" && f.Citation != "":
		item.URL, item.Subject = feedbackURL(f.AnswerID, f.Citation), "the citation"
	case f.AnswerID != "":
		item.URL = answerURL(f.AnswerID)
	case f.Run != "":
		item.URL, item.Subject = runURL(f.Run), "the run"
	}
	return item
}

// feedbackAbout returns the form for a citation, with the last word on it.
func (p *Page) feedbackAbout(ctx context.Context, r *request, answerID, citation string) (*feedbackAbout, error) {
	call, err := p.call(ctx, r.who.Tenant, answerID)
	if err != nil {
		return nil, err
	}
	a := call.Answer
	at := slices.IndexFunc(a.Citations, func(c ibid.Citation) bool { return c.ID == citation })
	if at < 0 {
		return nil, store.ErrNotFound
	}
	c := &a.Citations[at]
	about := &feedbackAbout{
		Answer: answerID, Citation: citation, Claim: "The answer as a whole",
		Next: feedbackURL(answerID, citation), May: r.mayWrite(),
	}
	if claim := plainWords(claimOf(a, c)); claim != "" {
		about.Claim = claim
	}
	for _, ref := range c.Refs {
		about.Quote = short(ref.Quote, 400)
		if i := slices.IndexFunc(a.Sources, func(s ibid.Source) bool { return s.ID == ref.Source }); i >= 0 {
			about.Sources = append(about.Sources, sourceTitle(&a.Sources[i]))
		}
	}
	said, err := p.said(ctx, r.who.Tenant, answerID)
	if err != nil {
		return nil, err
	}
	for _, v := range store.Verdicts() {
		about.Verdicts = append(about.Verdicts, talkFilter{v, capital(verdictWord(v)), said.last[citation].Word == v})
	}
	about.Note = said.last[citation].Note
	return about, nil
}
