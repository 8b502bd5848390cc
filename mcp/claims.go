package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// citeArgs are the arguments of cite.
type citeArgs struct {
	shown

	Response  textArg         `json:"response"`
	Request   textArg         `json:"request"`
	Documents json.RawMessage `json:"documents"`
	Format    string          `json:"format"`
}

// cited is the result of cite.
type cited struct {
	CitedText string              `json:"cited_text"`
	Complete  bool                `json:"complete"`
	Citations int                 `json:"citations"`
	Sources   int                 `json:"sources"`
	Issues    []ibid.Issue        `json:"issues"`
	Error     *ibid.ProviderError `json:"error"`
	Document  *ibid.Document      `json:"document"`
}

// cite decodes a provider's response.
func (*MCP) cite(ctx context.Context, _ *call, args *citeArgs) (*result, error) {
	show, err := args.check()
	if err != nil {
		return nil, err
	}
	opts := ibid.DecodeOptions{Request: []byte(args.Request), Context: ctx}
	if args.Format != "" {
		if opts.Format, err = choice("format", args.Format, ibid.Formats()); err != nil {
			return nil, err
		}
	}
	if raw := bytes.TrimSpace(args.Documents); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if opts.Documents, err = ibid.ReadDocuments(raw); err != nil {
			return nil, refuse(
				"documents: "+err.Error(),
				`use an array of strings, flat objects or {"id", "data"}, in the order in which the model was given `+
					`them`,
			)
		}
	}
	answer, err := ibid.Decode([]byte(args.Response), &opts)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := judge(answer, err, opts.Format); err != nil {
		return nil, err
	}
	out := &cited{
		CitedText: answer.Render(&ibid.RenderOptions{Style: show.style, Context: ctx}),
		Complete:  answer.Complete,
		Citations: len(answer.Citations),
		Sources:   len(answer.Sources),
		Issues:    append([]ibid.Issue{}, answer.Issues...),
		Error:     answer.Error,
		Document:  show.documentOf(ctx, answer, ""),
	}
	return &result{citedText(ctx, answer, show), out}, nil
}

// judge returns an error if there is nothing to show. A truncated response is not an error.
func judge(a *ibid.Answer, err error, format string) error {
	blank := api.IsBlank(a)
	switch {
	case errors.Is(err, ibid.ErrEmpty):
		return refuse(
			"response: missing or empty",
			"give a provider's response unchanged: the JSON body, or the recorded stream",
		)
	case errors.Is(err, ibid.ErrBinary):
		return refuse("response: not JSON, an event stream or text", "if it is compressed, decompress it")
	case err != nil && blank:
		return refuse("response: "+cut(err.Error()), "none of it could be read")
	case blank && format != "" && format != ibid.Generic:
		return refuse("response: nothing in it has the format "+format, "without format, it is detected")
	}
	return nil
}

// citedText formats an answer for a model: its text with the list of sources, and any error and issues.
func citedText(ctx context.Context, a *ibid.Answer, show *showing) string {
	var b strings.Builder
	if a.Error != nil {
		b.WriteString("The provider returned an error: " + cut(a.Error.Error()) + "\n\n")
	}
	b.WriteString(strings.TrimRight(a.Render(&ibid.RenderOptions{Style: show.style, List: true, Context: ctx}), "\n"))
	if !a.Complete && a.Format != ibid.Generic {
		b.WriteString("\n\nThe response is truncated: this is what could be read.")
	}
	if a.Error == nil && a.Text != "" && len(a.Citations) == 0 {
		b.WriteString("\n\nNothing in it is cited. To find which texts support its sentences, use the tool attribute.")
	}
	if n := len(a.Issues); n > 0 {
		b.WriteString("\n\n" + count(n, "issue") + "; the structured content lists them.")
	}
	return b.String()
}

const (
	// MaxSources limits the sources of one call of attribute.
	MaxSources = 1000
	// MaxPerSentence limits the passages cited for one sentence.
	MaxPerSentence = 10
)

// attributeArgs are the arguments of attribute.
type attributeArgs struct {
	shown

	Answer      string             `json:"answer"`
	Sources     support.GivenTexts `json:"sources"`
	Threshold   *float64           `json:"threshold"`
	PerSentence *int               `json:"per_sentence"`
}

// attributed is the result of attribute.
type attributed struct {
	CitedText    string               `json:"cited_text"`
	Citations    []attributedCitation `json:"citations"`
	Uncited      []attributedSentence `json:"uncited"`
	Differs      []differing          `json:"differs"`
	UncitedShare *float64             `json:"uncited_share"`
	By           string               `json:"by"`
	Threshold    float64              `json:"threshold"`
	Document     *ibid.Document       `json:"document"`
}

type attributedCitation struct {
	attributedSentence

	SourceID    string   `json:"source_id"`
	SourceTitle *string  `json:"source_title"`
	SourceURL   *string  `json:"source_url"`
	Quote       *string  `json:"quote"`
	Score       *float64 `json:"score"`
}

type attributedSentence struct {
	Start int    `json:"text_start"`
	End   int    `json:"text_end"`
	Text  string `json:"text"`
}

// differing is a source that contradicts a sentence.
type differing struct {
	attributedSentence

	Source      int                        `json:"source"` // its index in the arguments
	SourceTitle *string                    `json:"source_title"`
	Evidence    *string                    `json:"evidence"`
	Differences []support.ReportDifference `json:"differences"`
}

// attribute finds citations for the sentences of a text that cite nothing themselves.
func (m *MCP) attribute(ctx context.Context, c *call, args *attributeArgs) (*result, error) {
	show, err := args.check()
	if err != nil {
		return nil, err
	}
	opts := &support.AttributeOptions{
		Checker:  m.checker,
		Compare:  true,
		Progress: func(done, of int) { c.progress(fmt.Sprintf("%d of %s", done, count(of, "sentence"))) },
	}
	if opts.Threshold, err = share("threshold", args.Threshold, support.Balanced); err != nil {
		return nil, err
	}
	opts.PerSentence, err = number("per_sentence", args.PerSentence, support.DefaultPerSentence, 1, MaxPerSentence)
	if err != nil {
		return nil, err
	}
	docs, err := args.documents()
	if err != nil {
		return nil, err
	}
	answer := &ibid.Answer{
		Provider: ibid.Generic, Format: ibid.Generic, Complete: true, Text: args.Answer,
		Parts: []ibid.Part{{Span: ibid.Span{Start: 0, End: len(args.Answer)}, Kind: ibid.AnswerPart}},
	}
	found, err := api.Attribute(ctx, answer, docs, opts)
	if err != nil {
		return nil, m.checkerFailed(ctx, err)
	}
	return showAttribution(ctx, found, docs, show), nil
}

// documents returns the sources.
func (a *attributeArgs) documents() ([]support.Document, error) {
	switch {
	case strings.TrimSpace(a.Answer) == "":
		return nil, refuse("answer: missing or empty", "give the text whose sentences are to be attributed")
	case len(a.Sources) == 0:
		return nil, refuse(
			"sources: none given", `give objects {"id", "title", "url", "text"}; text is required`,
		)
	case len(a.Sources) > MaxSources:
		return nil, refuse(
			fmt.Sprintf("sources: more than %d", MaxSources),
			"leave out irrelevant ones, or combine pieces of one source",
		)
	}
	for i := range a.Sources {
		if strings.TrimSpace(a.Sources[i].Text) == "" {
			return nil, refuse(
				fmt.Sprintf("sources[%d].text: missing or empty", i),
				"give the text of the source; nothing is fetched",
			)
		}
	}
	return a.Sources.Documents(), nil
}

func showAttribution(
	ctx context.Context, found *support.Attribution, docs []support.Document, show *showing,
) *result {
	a := found.Answer
	out := &attributed{
		CitedText:    a.Render(&ibid.RenderOptions{Style: show.style, Context: ctx}),
		Citations:    []attributedCitation{},
		Uncited:      []attributedSentence{},
		Differs:      []differing{},
		UncitedShare: found.Uncited,
		By:           found.By,
		Threshold:    found.Threshold,
		Document:     show.documentOf(ctx, a, ""),
	}
	offsets := ibid.NewOffsets(a.Text)
	place := func(s ibid.Span) attributedSentence {
		start, end := offsets.In(show.unit, s)
		return attributedSentence{start, end, a.Text[s.Start:s.End]}
	}
	for i := range a.Citations {
		c := &a.Citations[i]
		for _, row := range a.CitationRows(c) {
			out.Citations = append(out.Citations, attributedCitation{
				place(c.Span), row.SourceID, row.SourceTitle, row.SourceURL, row.Quote, row.Confidence,
			})
		}
	}
	var said int
	var without, against strings.Builder
	for i := range found.Sentences {
		s := &found.Sentences[i]
		for _, c := range s.Differing() {
			d := newDiffering(c, docs)
			d.attributedSentence = place(s.Span)
			out.Differs = append(out.Differs, d)
			against.WriteString("\n- " + cut(d.Text) + " " + d.words())
		}
		if s.Says() {
			said++
		}
		if s.Uncited() {
			out.Uncited = append(out.Uncited, place(s.Span))
			without.WriteString("\n- " + cut(a.Text[s.Span.Start:s.Span.End]))
		}
	}
	text := strings.TrimRight(a.Render(&ibid.RenderOptions{Style: show.style, List: true, Context: ctx}), "\n")
	switch n := len(out.Uncited); {
	case said == 0:
		text += "\n\nNo sentence of the text makes a statement."
	case n > 0:
		text += fmt.Sprintf("\n\nWithout a source: %d of %s.%s", n, count(said, "sentence"), without.String())
	}
	if len(out.Differs) > 0 {
		text += "\n\nContradicted by a source:" + against.String()
	}
	return &result{text, out}
}

// newDiffering describes a candidate that contradicts a sentence.
func newDiffering(c *support.Candidate, docs []support.Document) differing {
	d := &docs[c.Document]
	return differing{
		Source:      c.Document,
		SourceTitle: httpx.OrNull(d.Source.Title),
		Evidence:    httpx.OrNull(d.Text[c.Evidence.Start:c.Evidence.End]),
		Differences: c.Verdict.ReportDifferences(),
	}
}

// words formats it for a model.
func (d *differing) words() string {
	var b strings.Builder
	fmt.Fprintf(&b, "— source %d", d.Source)
	if d.SourceTitle != nil {
		b.WriteString(" (" + cut(*d.SourceTitle) + ")")
	}
	for i, c := range d.Differences {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " has %q instead of %q", cut(c.Evidence), cut(c.Claim))
	}
	return b.String()
}

// MaxPassages limits the passages of one call of check.
const MaxPassages = 256

// checkArgs are the arguments of check.
type checkArgs struct {
	Claim    string             `json:"claim"`
	Passages support.GivenTexts `json:"passages"`
	Context  string             `json:"context"`
}

// checked is the result of the tool check.
type checked struct {
	*support.Report

	Issues []ibid.Issue `json:"issues"`
}

// check reports whether passages support a claim.
func (m *MCP) check(ctx context.Context, c *call, args *checkArgs) (*result, error) {
	switch {
	case strings.TrimSpace(args.Claim) == "":
		return nil, refuse("claim: missing or empty", "give one sentence, or a few")
	case len(args.Passages) == 0:
		return nil, refuse(
			"passages: none given", "give texts that together may support the claim; nothing is fetched",
		)
	case len(args.Passages) > MaxPassages:
		return nil, refuse(
			fmt.Sprintf("passages: more than %d", MaxPassages),
			"use the tool attribute to find the right ones in whole texts",
		)
	}
	pair := support.Pair{Claim: args.Claim, Context: args.Context}
	for _, p := range args.Passages {
		pair.Passages = append(pair.Passages, support.Passage{Text: p.Text})
	}
	verdicts, err := m.checker.Check(ctx, []support.Pair{pair})
	if err == nil && verdicts[0].Err != nil {
		err = verdicts[0].Err
	}
	if err != nil {
		return nil, m.checkerFailed(ctx, err)
	}
	v := &verdicts[0]
	out := &checked{v.Report(&pair), append([]ibid.Issue{}, v.Issues...)}
	return &result{verdictText(out), out}, nil
}

// checkerFailed returns the error of a checker that failed. The reason is only logged, since it may contain the
// operator's addresses.
func (m *MCP) checkerFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return err
	}
	m.logger.LogAttrs(ctx, slog.LevelError, "a checker failed", slog.Any("error", err))
	return refuse("the checker failed", "try again; ibid's log has the reason")
}

// verdictText formats a verdict for a model.
func verdictText(v *checked) string {
	var b strings.Builder
	b.WriteString(string(v.Label))
	if v.Closeness != nil {
		fmt.Fprintf(&b, ", closeness %.2f", *v.Closeness)
	}
	if len(v.Missing) > 0 {
		b.WriteString("\nmissing from the passages: " + cut(strings.Join(v.Missing, ", ")))
	}
	for _, c := range v.Differences {
		fmt.Fprintf(&b, "\nchanged %s: the claim has %q, the evidence %q", c.Kind, cut(c.Claim), cut(c.Evidence))
	}
	for _, e := range v.Evidence {
		fmt.Fprintf(&b, "\nevidence in passage %d: %q", e.Passage, cut(e.Text))
	}
	for _, i := range v.Issues {
		fmt.Fprintf(&b, "\nissue %s: %s", i.Code, cut(i.Detail))
	}
	return b.String()
}

// verifyArgs are the arguments of verify.
type verifyArgs struct {
	URL          string          `json:"url"`
	Manifest     json.RawMessage `json:"manifest"` // or a string: its URL
	Document     json.RawMessage `json:"document"`
	Response     string          `json:"response"`
	Trust        []string        `json:"trust"`
	RequireLevel *int            `json:"require_level"`
	Offline      bool            `json:"offline"`
	Report       bool            `json:"report"`

	what api.Verification
}

// verified is the result of verify.
type verified struct {
	State        verify.State     `json:"state"`
	Findings     verify.Findings  `json:"findings"`
	Why          string           `json:"why"`
	Next         *string          `json:"next"`
	CheckedAt    time.Time        `json:"checked_at"`
	Failures     []verify.Finding `json:"failures"`
	Unverifiable []verify.Finding `json:"unverifiable"`
	Claims       []verifiedClaim  `json:"claims"`
	Report       *verify.Report   `json:"report"`
}

type verifiedClaim struct {
	ID      string              `json:"claim_id"`
	Text    string              `json:"text"`
	Status  verify.Status       `json:"status"`
	Counts  verify.Counts       `json:"counts"`
	Finding support.Label       `json:"finding"`
	Reason  *string             `json:"reason"`
	Differs []verify.Difference `json:"differs"`
	Wrong   *verify.Excerpted   `json:"wrong_source"`
	Sources []verifiedSource    `json:"sources"`
}

type verifiedSource struct {
	URL    string        `json:"url"`
	Title  *string       `json:"title"`
	Status verify.Status `json:"status"`
	Counts verify.Counts `json:"counts"`
	Note   *string       `json:"note"`
}

// verify verifies what an agent published about its sources.
func (m *MCP) verify(ctx context.Context, c *call, args *verifyArgs) (*result, error) {
	if err := args.check(); err != nil {
		return nil, err
	}
	args.what.Progress = func(p verify.Progress) {
		c.progress(cut(fmt.Sprintf("%s %d of %d: %s", p.Stage, p.Done, p.Total, p.URL)))
	}
	report, err := m.verifies(ctx, c.tenant, &args.what)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	var summary strings.Builder
	if err := report.WriteText(&summary, false); err != nil {
		return nil, fmt.Errorf("write a report: %w", err)
	}
	return &result{summary.String(), showReport(report, args.Report)}, nil
}

// check determines what to verify, which must be one thing.
func (a *verifyArgs) check() error {
	level, err := number("require_level", a.RequireLevel, 0, 0, 3)
	if err != nil {
		return err
	}
	a.what = api.Verification{URL: a.URL, Trust: a.Trust, Offline: a.Offline, RequireLevel: level}
	given := 0
	for _, thing := range [][]byte{[]byte(a.URL), a.Manifest, a.Document, []byte(a.Response)} {
		if len(thing) > 0 && !bytes.Equal(thing, []byte("null")) {
			given++
		}
	}
	if given != 1 && (given != 2 || a.URL == "" || a.Response == "") {
		return refuse(
			"verify one thing at a time",
			"give one of url, manifest, document and response; a response may also have its url",
		)
	}
	switch {
	case a.Response != "":
		a.what.Text = []byte(a.Response)
	case isObject(a.Document):
		a.what.Text = a.Document
	case isObject(a.Manifest):
		a.what.Text = a.Manifest
	case json.Unmarshal(a.Manifest, &a.what.URL) == nil && a.what.URL != "", a.URL != "":
	default:
		return refuse("manifest and document must be JSON objects", "a manifest may also be given by its URL")
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

func showReport(r *verify.Report, whole bool) *verified {
	out := &verified{
		State:        r.State,
		Findings:     r.Findings,
		Why:          strings.TrimSpace(r.Why() + " " + r.WhyClaims()),
		Next:         httpx.OrNull(r.Next()),
		CheckedAt:    r.CheckedAt,
		Failures:     append([]verify.Finding{}, r.Failure...),
		Unverifiable: []verify.Finding{},
		Claims:       []verifiedClaim{},
	}
	for _, f := range r.Info {
		if f.Counts == verify.CountUnverifiable {
			out.Unverifiable = append(out.Unverifiable, f)
		}
	}
	for i := range r.Claims {
		c := &r.Claims[i]
		claim := verifiedClaim{
			c.ID, c.Text, c.Status, c.Counts, c.Finding, httpx.OrNull(c.Reason),
			append([]verify.Difference{}, c.Differs...), c.WrongSource,
			[]verifiedSource{},
		}
		for k := range c.Sources {
			s := &c.Sources[k]
			claim.Sources = append(claim.Sources, verifiedSource{
				s.URL, httpx.OrNull(s.Title), s.Result.Status, s.Result.Counts, httpx.OrNull(s.Result.Note),
			})
		}
		out.Claims = append(out.Claims, claim)
	}
	if whole {
		out.Report = r
	}
	return out
}
