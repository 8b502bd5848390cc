package page

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
)

// answerRoutes are those of single answers.
func (p *Page) answerRoutes() map[string]endpoint {
	return map[string]endpoint{"GET /ui/answers/{id}": {handle: p.answer}}
}

// answer shows one answer.
func (p *Page) answer(w http.ResponseWriter, r *request) error {
	call, err := p.call(r.Context(), r.who.Tenant, r.PathValue("id"))
	if err != nil {
		return err
	}
	said, err := p.said(r.Context(), r.who.Tenant, call.AnswerID)
	if err != nil {
		return err
	}
	body := p.answerView(call, &answerOptions{said: said, mute: !r.mayWrite()})
	return p.page(w, r, "answer", &view{Title: body.Heading, Section: "conversations", Body: body})
}

// call returns a tenant's answer: from the gateway as long as it is not in the store.
func (p *Page) call(ctx context.Context, tenant, id string) (*store.Call, error) {
	if why := gateway.CheckID(id); why != "" {
		return nil, badRequest("The id of an answer "+why+".", "")
	}
	if p.o.Gateway != nil {
		if call, ok := p.o.Gateway.Find(tenant, id); ok {
			return call, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	call, err := p.o.Store.Call(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	return call, nil
}

const (
	// maxHeading is how many characters of a question make a page's heading.
	maxHeading = 120
	// maxQuestion is how many bytes of a question are shown.
	maxQuestion = 16 << 10
)

// answerOptions say how an answer stands on a page. Nil: alone, and as it was stored.
type answerOptions struct {
	numbering *ibid.Numbering // of the sources of the conversation; nil: they begin at 1
	prefix    string          // begins all ids of this answer on the page: letters, digits, hyphens
	live      bool            // it is still arriving
	mute      bool            // its reader may not judge it
	said      *sayings        // what was said of it; nil: nothing
}

// answerView is an answer as templates/parts/answer.html shows it.
type answerView struct {
	ID           string // of the answer, minted by the gateway
	Prefix       string // of the ids on the page
	Heading      string // what was asked, short; never empty
	Question     string // what was asked last, where it is more than the heading
	Provider     string
	Model        string
	Started      time.Time
	Run          string // empty: in none
	Step         int
	Conversation string // empty: in none
	Text         template.HTML
	Dir          string        // in which direction it runs
	Notices      []notice      // what a reader must know before reading
	Cited        []sourceView  // by number
	Uncited      []sourceView  // likewise
	Lost         template.HTML // citations whose sources are not among the answer's
	Queries      []string      // searches that the model ran
	Displays     []int         // what the provider demands to be shown: its places in Answer.Display, from 1
	Issues       []ibid.Issue
	Live         bool
	Said         int // how much people said of it

	layout *layout
}

// Feedback returns where all is shown that was said of the answer.
func (v *answerView) Feedback() string { return feedbackURL(v.ID, "") }

// CitedRows and UncitedRows are the sources as HTML.
func (v *answerView) CitedRows() template.HTML { return v.layout.rows(v.Cited) }

// UncitedRows is documented with CitedRows.
func (v *answerView) UncitedRows() template.HTML { return v.layout.rows(v.Uncited) }

// notice is a sentence above an answer, with the kind of its icon and colour: see [badge].
type notice struct {
	Kind string
	Text string
}

// answerView lays an answer out for its template.
func (p *Page) answerView(call *store.Call, o *answerOptions) *answerView {
	if o == nil {
		o = &answerOptions{}
	}
	a := call.Answer
	v := &answerView{
		ID:           call.AnswerID,
		Prefix:       o.prefix,
		Provider:     oneLine(a.Provider),
		Model:        oneLine(a.Model),
		Started:      call.Started,
		Run:          call.Run,
		Step:         call.Step.Number,
		Conversation: call.Conversation,
		Queries:      a.Queries,
		Issues:       a.Issues,
		Live:         o.live,
	}
	v.Heading, v.Question = heading(call.Prompt)
	v.Notices = notices(a, o.live)
	for i := range a.Display {
		v.Displays = append(v.Displays, i+1)
	}
	if o.said != nil {
		v.Said = o.said.words
	}
	l, text := p.layOut(call, o)
	v.Text, v.Dir, v.layout = text, direction(a.Text), l
	v.Cited, v.Uncited, v.Lost = l.list()
	return v
}

// answerText is the text of an answerView, without its sources.
func (p *Page) answerText(call *store.Call, o *answerOptions) template.HTML {
	_, text := p.layOut(call, o)
	return text
}

func (p *Page) layOut(call *store.Call, o *answerOptions) (*layout, template.HTML) {
	numbering := o.numbering
	if numbering == nil {
		numbering = &ibid.Numbering{}
	}
	l := newLayout(p.views["answer"], call, o)
	l.number(numbering)
	return l, l.text(numbering)
}

// heading returns what was asked last as a heading, and in full where that is more.
func heading(prompt []store.Message) (short, full string) {
	for _, m := range slices.Backward(prompt) {
		if m.Role != "user" || strings.TrimSpace(m.Text) == "" {
			continue
		}
		full = strings.TrimSpace(strings.ToValidUTF8(m.Text, "\uFFFD"))
		if len(full) > maxQuestion {
			full = full[:runeStart(full, maxQuestion)] + " …"
		}
		short = cut(oneLine(full), maxHeading)
		if short == full {
			full = ""
		}
		return short, full
	}
	return "An answer", ""
}

// notices says what is not as it should be with an answer.
func notices(a *ibid.Answer, live bool) []notice {
	var all []notice
	add := func(kind, text string) { all = append(all, notice{kind, text}) }
	if a.Error != nil {
		add(badgeBad, "The provider answered with an error: "+cut(oneLine(a.Error.Error()), maxHeading))
	}
	switch a.Finish {
	case ibid.FinishLength:
		add(badgeClose, "The answer ends at the length that it was allowed.")
	case ibid.FinishRefusal:
		add(badgeLost, "The model refused to answer.")
	case ibid.FinishFilter:
		add(badgeLost, "A filter of the provider stopped the answer.")
	case ibid.FinishTool:
		add(badgeNone, "This is not the end: the model waits for the result of a tool.")
	case ibid.FinishError:
		if a.Error == nil {
			add(badgeBad, "The answer ended with an error.")
		}
	case ibid.FinishStop:
	}
	switch {
	case live:
	case !a.Complete && a.Error == nil:
		add(badgeBad, "The answer broke off. This is what had arrived.")
	case a.Text == "" && len(all) == 0:
		add(badgeNone, "The answer has no text.")
	}
	if n := len(a.Alternatives); n > 0 {
		add(
			badgeNone,
			"The provider sent "+counted(
				n, "other answer", "other answers",
			)+" to the same question. The JSON has them.",
		)
	}
	return all
}
