package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

const (
	// defaultSteps is how many steps of a run are shown if nothing else is asked for.
	defaultSteps = 20
	// maxShown limits each of these in a result: steps, sentences, sources of a step and passages of a sentence. The
	// result counts those left out.
	maxShown = 500
	// MaxExcerpt is the largest number of characters of a passage that can be requested.
	MaxExcerpt = 2000
	// maxID is the largest length of an id in bytes.
	maxID = 512
)

// runArgs are the arguments of run_sources.
type runArgs struct {
	Run      string `json:"run"`
	Excerpt  *int   `json:"excerpt"`
	From     *int   `json:"from_step"`
	Limit    *int   `json:"limit"`
	Sentence *int   `json:"sentence"`
}

// part is the part of a run that is shown.
type part struct {
	from, limit int // steps: the number of the first, and how many
	sentence    int // from 1; 0 means all
}

// runSources is the result of run_sources.
type runSources struct {
	Run           string        `json:"run"`
	Agent         *string       `json:"agent"`
	Question      *string       `json:"question"`
	Answer        *string       `json:"answer"`
	AnswerID      *string       `json:"answer_id"`
	Steps         []runStep     `json:"steps"`
	StepsMore     int           `json:"steps_left_out"`
	NextStep      *int          `json:"next_step"`
	Primary       []runSource   `json:"primary_sources"`
	Sentences     []runSentence `json:"sentences"`
	SentencesMore int           `json:"sentences_left_out"`
	UncitedShare  *float64      `json:"uncited_share"`
	Issues        []ibid.Issue  `json:"issues"`
}

type runStep struct {
	Number      int         `json:"number"`
	After       []int       `json:"after"`
	Tool        *string     `json:"tool"`
	Question    *string     `json:"question"`
	Answer      *string     `json:"answer"`
	Error       *string     `json:"error"`
	Nested      *string     `json:"nested_run"`
	Sources     []runSource `json:"sources"`
	SourcesMore int         `json:"sources_left_out"`
}

type runSource struct {
	DocumentID string            `json:"document_id"`
	Title      *string           `json:"title"`
	URL        *string           `json:"url"`
	Relevance  *float64          `json:"relevance"`
	Origin     *ibid.ScoreOrigin `json:"relevance_origin"`
	Excerpt    *string           `json:"excerpt"`
	Retrieved  bool              `json:"retrieved"`
	Used       bool              `json:"used"`
	Cited      bool              `json:"cited"`
	Steps      []int             `json:"steps"`
}

type runSentence struct {
	Start        int          `json:"text_start"`
	End          int          `json:"text_end"`
	Text         string       `json:"text"`
	Steps        []int        `json:"steps"`
	Skipped      *string      `json:"skipped"`
	Passages     []runPassage `json:"passages"`
	PassagesMore int          `json:"passages_left_out"`
}

type runPassage struct {
	DocumentID string           `json:"document_id"`
	Title      *string          `json:"title"`
	Excerpt    *string          `json:"excerpt"`
	Steps      []int            `json:"steps"`
	Via        []int            `json:"via"`
	Reason     trail.LinkReason `json:"reason"`
	Score      *float64         `json:"score"`
	Evidence   *string          `json:"evidence"`
	Differs    *string          `json:"differs"`
}

// runSources returns the sources that a run rests on.
func (m *MCP) runSources(ctx context.Context, c *call, args *runArgs) (*result, error) {
	excerpt, err := number("excerpt", args.Excerpt, trail.DefaultExcerpt, 0, MaxExcerpt)
	if err != nil {
		return nil, err
	}
	var show part
	if show.from, err = number("from_step", args.From, 0, 0, math.MaxInt32); err != nil {
		return nil, err
	}
	if show.limit, err = number("limit", args.Limit, defaultSteps, 1, maxShown); err != nil {
		return nil, err
	}
	if show.sentence, err = number("sentence", args.Sentence, 0, 1, math.MaxInt32); err != nil {
		return nil, err
	}
	if args.Run == "" {
		return nil, refuse("run: missing", "find_runs lists the ids of runs")
	}
	t, links, err := m.link(ctx, c.tenant, args.Run)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, refuse("run: no run has this id", "find_runs lists the ids of runs; "+notThere)
	case err != nil:
		return nil, err
	}
	s := t.Summary(&trail.SummaryOptions{Excerpt: excerpt, NoExcerpts: excerpt == 0})
	s.SetLinks(links)
	if n := len(links.Sentences); show.sentence > n {
		return nil, refuse(fmt.Sprintf("sentence: the answer has %s", count(n, "sentence")), "they count from 1")
	}
	out := showRun(t, s, links, excerpt, show)
	return &result{runText(out), out}, nil
}

const notThere = "deleted data and other tenants' data look as if they never existed"

// link reads a run and links the sentences of its answer to what they rest on.
func (m *MCP) link(ctx context.Context, tenant, run string) (*trail.Trail, *trail.Links, error) {
	if len(run) > maxID {
		return nil, nil, store.ErrNotFound
	}
	m.captured.CatchUp(ctx)
	release, err := m.linking.Hold(ctx, m.store, tenant, run)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	t, err := m.store.Trail(ctx, tenant, run)
	if err != nil {
		return nil, nil, httpx.StoreError("read a run", err)
	}
	links, err := t.Link(ctx, nil, nil) // the built-in checker: a look must only cost time
	if err != nil {
		return nil, nil, fmt.Errorf("link a run: %w", err)
	}
	return t, links, nil
}

func showRun(t *trail.Trail, s *trail.Summary, links *trail.Links, excerpt int, show part) *runSources {
	answer := t.Answer
	if t.Final != nil {
		answer = t.Final.Text
	}
	out := &runSources{
		Run:          t.ID,
		Agent:        httpx.OrNull(t.Agent),
		Question:     httpx.OrNull(t.Question),
		Answer:       httpx.OrNull(answer),
		AnswerID:     httpx.OrNull(t.FinalID()),
		Steps:        []runStep{},
		Primary:      []runSource{},
		Sentences:    []runSentence{},
		UncitedShare: links.Uncited,
		Issues:       append(append([]ibid.Issue{}, s.Issues...), links.Issues...),
	}
	graph := t.Graph()
	for i := range t.Steps {
		switch n := t.Steps[i].Number; {
		case n < show.from, show.sentence > 0 && !slices.Contains(links.Sentences[show.sentence-1].Steps, n):
			out.StepsMore++
		case len(out.Steps) < show.limit:
			out.Steps = append(out.Steps, showStep(t, i, excerpt, graph[i]))
		default:
			if out.StepsMore++; out.NextStep == nil {
				out.NextStep = &n
			}
		}
	}
	for i := range s.Primary {
		p := &s.Primary[i]
		out.Primary = append(out.Primary, showSource(&p.Source, p.Steps, excerpt))
	}
	for i := range links.Sentences {
		if len(out.Sentences) < maxShown && (show.sentence == 0 || show.sentence == i+1) {
			out.Sentences = append(out.Sentences, showSentence(&links.Sentences[i], excerpt))
		}
	}
	out.SentencesMore = len(links.Sentences) - len(out.Sentences)
	return out
}

func showStep(t *trail.Trail, i, excerpt int, after []int) runStep {
	step := &t.Steps[i]
	out := runStep{
		Number:      step.Number,
		After:       []int{},
		Tool:        httpx.OrNull(step.Tool),
		Question:    httpx.OrNull(step.Question),
		Error:       httpx.OrNull(step.Error),
		Sources:     []runSource{},
		SourcesMore: max(0, len(step.Sources)-maxShown),
	}
	if excerpt > 0 {
		out.Answer = httpx.OrNull(trail.Excerpt(step.Answer, excerpt))
	}
	if step.Nested != nil {
		out.Nested = httpx.OrNull(step.Nested.ID)
	}
	for _, before := range after {
		out.After = append(out.After, t.Steps[before].Number)
	}
	for k := range min(len(step.Sources), maxShown) {
		out.Sources = append(out.Sources, showSource(&step.Sources[k], []int{step.Number}, excerpt))
	}
	return out
}

func showSource(s *trail.Source, steps []int, excerpt int) runSource {
	return runSource{
		s.DocumentID, httpx.OrNull(s.Title), httpx.OrNull(s.URL), finite(s.Relevance), httpx.OrNull(s.Origin),
		excerptOf(cmp.Or(s.Excerpt, s.Content), excerpt), s.Retrieved, s.Used, s.Cited, append([]int{}, steps...),
	}
}

func showSentence(s *trail.Sentence, excerpt int) runSentence {
	out := runSentence{
		Start:        s.Span.Start,
		End:          s.Span.End,
		Text:         s.Text,
		Steps:        append([]int{}, s.Steps...),
		Skipped:      httpx.OrNull(string(s.Skipped)),
		Passages:     []runPassage{},
		PassagesMore: max(0, len(s.Passages)-maxShown),
	}
	for i := range min(len(s.Passages), maxShown) {
		p := &s.Passages[i]
		row := runPassage{
			DocumentID: p.DocumentID,
			Title:      httpx.OrNull(p.Title),
			Excerpt:    excerptOf(cmp.Or(p.Excerpt, p.Text()), excerpt),
			Steps:      append([]int{}, p.Steps...),
			Via:        append([]int{}, p.Via...),
			Reason:     p.Reason,
			Score:      finite(p.Score),
			Differs:    httpx.OrNull(p.Differs),
		}
		if excerpt > 0 {
			row.Evidence = httpx.OrNull(p.Evidence)
		}
		out.Passages = append(out.Passages, row)
	}
	return out
}

// excerptOf returns the beginning of a text, or nil if there is none or n is 0.
func excerptOf(text string, n int) *string {
	if n == 0 || strings.TrimSpace(text) == "" {
		return nil
	}
	return new(trail.Excerpt(text, n))
}

// finite returns a score that can be encoded as JSON: traces may contain any.
func finite(score *float64) *float64 {
	if score == nil || math.IsNaN(*score) || math.IsInf(*score, 0) {
		return nil
	}
	return score
}

// runText formats a run for a model: the sentences first, since they are what is asked about, then the steps, as far as
// they fit.
func runText(r *runSources) string {
	text := fullRunText(r)
	if r.NextStep != nil {
		text += fmt.Sprintf("\nMore steps: run_sources with from_step %d.", *r.NextStep)
	}
	return shorten(text, "… cut here: sentence shows one sentence with its steps, from_step and limit show other steps")
}

func fullRunText(r *runSources) string {
	var b strings.Builder
	steps, sentences := len(r.Steps)+r.StepsMore, len(r.Sentences)+r.SentencesMore
	fmt.Fprintf(&b, "Run %s: %s, %s in its answer", r.Run, count(steps, "step"), count(sentences, "sentence"))
	if r.UncitedShare != nil {
		fmt.Fprintf(&b, "; %.0f %% of those that make a statement rest on no source", 100**r.UncitedShare)
	}
	b.WriteString(".")
	b.WriteString("\nPrimary sources: " + sourceNames(r.Primary))
	for i := range r.Sentences {
		s := &r.Sentences[i]
		if s.Skipped != nil {
			if *s.Skipped == string(trail.SkipUnread) {
				fmt.Fprintf(&b, "\n%q ← not known: a result could not be read", cut(s.Text))
			}
			continue
		}
		fmt.Fprintf(&b, "\n%q ← %s", cut(s.Text), passageNames(s.Passages))
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		fmt.Fprintf(&b, "\nStep %d", s.Number)
		for _, said := range []*string{s.Tool, s.Question} {
			if said != nil {
				b.WriteString(", " + cut(*said))
			}
		}
		b.WriteString(": " + sourceNames(s.Sources))
	}
	return b.String()
}

func sourceNames(all []runSource) string {
	var names []string
	for i := range all {
		s := &all[i]
		name := named(orZero(s.Title), orZero(s.URL), s.DocumentID)
		if s.Relevance != nil {
			name += fmt.Sprintf(" (%.2f)", *s.Relevance)
		}
		names = append(names, name)
	}
	return cmp.Or(strings.Join(names, "; "), "none")
}

func passageNames(all []runPassage) string {
	var names []string
	for i := range all {
		p := &all[i]
		name := named(orZero(p.Title), "", p.DocumentID) + ", " + string(p.Reason)
		if p.Differs != nil {
			name += ", differs: " + cut(*p.Differs)
		}
		if p.Score != nil {
			name += fmt.Sprintf(" %.2f", *p.Score)
		}
		if len(p.Steps) > 0 {
			name += fmt.Sprintf(", of step %d", p.Steps[0])
		}
		names = append(names, name)
	}
	return cmp.Or(strings.Join(names, "; "), "no source")
}

func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// The page sizes of answers: the default and the largest.
const (
	defaultAnswers = 10
	MaxAnswers     = 100
)

const (
	maxWords     = 4 << 10  // bytes of the search words
	maxCursor    = 16 << 10 // bytes of a cursor
	answerBegins = 300      // characters of an answer in a list
)

// findArgs are the arguments of find_answers.
type findArgs struct {
	Words        string `json:"words"`
	Source       string `json:"source"`
	Run          string `json:"run"`
	Conversation string `json:"conversation"`
	AnswerID     string `json:"answer_id"`
	Limit        *int   `json:"limit"`
	Cursor       string `json:"cursor"`
}

// foundAnswers is the result of find_answers.
type foundAnswers struct {
	Answers []foundAnswer `json:"answers"`
	Next    *string       `json:"next_cursor"`
}

type foundAnswer struct {
	ID           string         `json:"answer_id"`
	StartedAt    time.Time      `json:"started_at"`
	Provider     *string        `json:"provider"`
	Model        *string        `json:"model"`
	Conversation *string        `json:"conversation"`
	Run          *string        `json:"run"`
	Text         string         `json:"text"`
	Citations    int            `json:"citations"`
	Sources      []foundSource  `json:"sources"`
	SourcesMore  int            `json:"sources_left_out"`
	Document     *ibid.Document `json:"document"`
}

type foundSource struct {
	ID    string  `json:"id"`
	Key   string  `json:"key"`
	Title *string `json:"title"`
	URL   *string `json:"url"`
}

// findAnswers finds stored answers, or returns one.
func (m *MCP) findAnswers(ctx context.Context, c *call, args *findArgs) (*result, error) {
	limit, err := number("limit", args.Limit, defaultAnswers, 1, MaxAnswers)
	if err != nil {
		return nil, err
	}
	for name, said := range map[string]string{
		"words": args.Words, "source": args.Source, "run": args.Run, "conversation": args.Conversation,
		"answer_id": args.AnswerID,
	} {
		if len(said) > maxWords || strings.Contains(said, "\x00") {
			return nil, refuse(
				fmt.Sprintf("%s: more than %d bytes, or control characters", name, maxWords),
				"shorten it",
			)
		}
	}
	if args.AnswerID != "" {
		return m.oneAnswer(ctx, c.tenant, args)
	}
	if len(args.Cursor) > maxCursor {
		return nil, store.ErrCursor
	}
	m.captured.CatchUp(ctx)
	page, err := m.store.Calls(ctx, c.tenant, &store.Query{
		Text:         args.Words,
		Source:       args.Source,
		Run:          args.Run,
		Conversation: args.Conversation,
		Cursor:       args.Cursor,
		Limit:        limit,
	})
	if err != nil {
		return nil, httpx.StoreError("find answers", err)
	}
	out := &foundAnswers{Answers: []foundAnswer{}, Next: httpx.OrNull(page.Next)}
	var text strings.Builder
	text.WriteString(count(len(page.Items), "answer"))
	for _, one := range page.Items {
		found := showAnswer(one)
		found.Text = trail.Excerpt(found.Text, answerBegins)
		out.Answers = append(out.Answers, found)
		fmt.Fprintf(
			&text, "\n%s, %s, %s: %s", found.ID, found.StartedAt.Format(time.RFC3339),
			count(found.Citations, "citation"), cut(found.Text),
		)
	}
	if page.Next != "" {
		text.WriteString("\nThere are more: repeat the call with cursor " + page.Next)
	}
	rest := "… cut here: use a smaller limit"
	if page.Next != "" && len(page.Next) < maxText/2 {
		rest += ", or repeat the call with cursor " + page.Next
	}
	return &result{shorten(text.String(), rest), out}, nil
}

// oneAnswer returns one answer.
func (m *MCP) oneAnswer(ctx context.Context, tenant string, args *findArgs) (*result, error) {
	if args.Words+args.Source+args.Run+args.Conversation+args.Cursor != "" {
		return nil, refuse("answer_id must be the only argument", "it returns that answer; other arguments search")
	}
	var one *store.Call
	err := store.ErrNotFound
	if len(args.AnswerID) <= maxID {
		one, err = m.captured.Call(ctx, tenant, args.AnswerID)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, refuse("answer_id: no answer has this id", notThere)
	case err != nil:
		return nil, err
	}
	found := showAnswer(one)
	show := &showing{ibid.StyleMarkdown, ibid.UTF8, true}
	found.Document = show.documentOf(ctx, one.Answer, one.AnswerID)
	return &result{citedText(ctx, one.Answer, show), &foundAnswers{Answers: []foundAnswer{found}}}, nil
}

func showAnswer(c *store.Call) foundAnswer {
	a := c.Answer
	out := foundAnswer{
		ID:           c.AnswerID,
		StartedAt:    c.Started,
		Provider:     httpx.OrNull(a.Provider),
		Model:        httpx.OrNull(a.Model),
		Conversation: httpx.OrNull(c.Conversation),
		Run:          httpx.OrNull(c.Run),
		Text:         a.Text,
		Citations:    len(a.Citations),
		Sources:      []foundSource{},
		SourcesMore:  max(0, len(a.Sources)-maxShown),
	}
	for i := range min(len(a.Sources), maxShown) {
		s := &a.Sources[i]
		out.Sources = append(out.Sources, foundSource{s.ID, s.Key(), httpx.OrNull(s.Title), httpx.OrNull(s.URL)})
	}
	return out
}
