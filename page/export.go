package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxExport is the approximate maximum size in bytes of a conversation that is exported as one file, with all
	// quotes of its answers, and maxExported its maximum number of answers.
	maxExport   = 32 << 20
	maxExported = 5000
	// maxExporting is how many conversations are exported for a tenant at the same time.
	maxExporting = 2
	// exportTime is how long an export may take, including the download.
	exportTime = 2 * time.Minute
	// exportPage is how many answers are read at once.
	exportPage = 10
	// maxFileName is how many characters of a title are used in a file name.
	maxFileName = 60
)

// asJSON is the form of an export that is the JSON of the API.
const asJSON = "json"

// exportForm is a form in which an answer or a conversation is exported.
type exportForm struct {
	as, word, suffix string

	one bool // single answers only
}

// exportForms are all forms, in the order of the menu.
var exportForms = []exportForm{
	{as: string(ibid.StyleMarkdown), word: "Markdown", suffix: ".md"},
	{as: string(ibid.StyleFootnotes), word: "Markdown with footnotes", suffix: ".footnotes.md"},
	{as: string(ibid.StyleHTML), word: "HTML", suffix: ".html"},
	{as: string(ibid.StylePlain), word: "plain text", suffix: ".txt"},
	{as: string(ibid.StyleLaTeX), word: "LaTeX", suffix: ".tex"},
	{as: asJSON, word: "JSON", suffix: ".json"},
	{as: string(biblio.APA), word: "APA", suffix: ".apa.txt"},
	{as: string(biblio.MLA), word: "MLA", suffix: ".mla.txt"},
	{as: string(biblio.Chicago), word: "Chicago", suffix: ".chicago.txt"},
	{as: string(biblio.BibTeX), word: "BibTeX", suffix: ".bib"},
	{as: string(biblio.RIS), word: "RIS", suffix: ".ris"},
	{as: string(biblio.CSLJSON), word: "CSL-JSON", suffix: ".csl.json"},
	{as: string(export.OpenAI), word: "OpenAI chat completion", suffix: ".openai.json", one: true},
	{as: string(export.LangChain), word: "LangChain content blocks", suffix: ".langchain.json", one: true},
	{as: string(export.LlamaIndex), word: "LlamaIndex response", suffix: ".llamaindex.json", one: true},
}

// exportLink is an entry of a menu.
type exportLink struct{ URL, Word string }

// exportMenu is a menu of export forms.
type exportMenu struct {
	Word  string
	Copy  bool // its links are copied where scripts run
	Links []exportLink
}

// exportMenus returns the menus of a single answer or of a conversation: one to export it, and one to cite its sources.
// base is the address of the exports.
func exportMenus(base string, one bool) []exportMenu {
	menus := []exportMenu{{Word: "Export"}, {Word: "Cite", Copy: true}}
	for _, f := range exportForms {
		if !one && f.one {
			continue
		}
		m := &menus[0]
		if slices.Contains(biblio.Formats(), biblio.Format(f.as)) {
			m = &menus[1]
		}
		m.Links = append(m.Links, exportLink{base + "?as=" + f.as, f.word})
	}
	cite := &menus[1]
	cite.Links = append(cite.Links, exportLink{base + "?as=" + string(ibid.StyleMarkdown), "Markdown with sources"})
	return menus
}

// exportFormOf returns the form that a request asks for.
func exportFormOf(r *httpx.Request, one bool) (exportForm, error) {
	as := cmp.Or(r.URL.Query().Get("as"), string(ibid.StyleMarkdown))
	var all []string
	for _, f := range exportForms {
		if !one && f.one {
			continue
		}
		if f.as == as {
			return f, nil
		}
		all = append(all, f.as)
	}
	return exportForm{}, httpx.BadRequest(
		"There is no such form.",
		"Set as to one of "+strings.Join(all, ", ")+".",
	)
}

// exportAnswer sends an answer as a file.
func (p *Page) exportAnswer(w *httpx.Reply, r *httpx.Request) error {
	form, err := exportFormOf(r, true)
	if err != nil {
		return err
	}
	call, err := p.callOf(r.Context(), r)
	if err != nil {
		return err
	}
	about := &store.Conversation{ID: call.AnswerID}
	if asked := lastQuestion(call.Prompt); asked != nil {
		about.Calls = []*store.Call{{Prompt: []store.Message{*asked}}}
	}
	title := titleOf(about)
	var body []byte
	if form.as == asJSON {
		body, err = api.CallJSON(r.Context(), call)
	} else {
		var a *ibid.Answer
		if a, err = p.withFindings(r.Context(), r, call); err != nil {
			return err
		}
		body, err = p.exported(r.Context(), a, form, title, nil, call.AnswerID)
	}
	if err != nil {
		return fmt.Errorf("exporting an answer: %w", err)
	}
	writeExport(w, r, form, title, body)
	return nil
}

// withFindings returns an answer in which the citations whose claims differ from their quotes are marked so, so that
// exports say it too.
func (p *Page) withFindings(ctx context.Context, r *httpx.Request, call *store.Call) (*ibid.Answer, error) {
	known, err := p.trustOf(ctx, r, call)
	if err != nil {
		return nil, err
	}
	claims := p.weighings.of(ctx, call, known.found).claims
	a := *call.Answer
	a.Citations = slices.Clone(a.Citations)
	for i := range claims {
		if claims[i].Status.DeniesClaim() && a.Citations[i].Support == nil {
			a.Citations[i].Support = &ibid.Support{Label: string(claims[i].Finding), By: claims[i].By}
		}
	}
	return &a, nil
}

// exportConversation sends a whole conversation as a file, with one numbering and one list of sources.
func (p *Page) exportConversation(w *httpx.Reply, r *httpx.Request) error {
	form, err := exportFormOf(r, false)
	if err != nil {
		return err
	}
	id, err := r.PathID()
	if err != nil {
		return err
	}
	release, ok := p.bounds.exports.Take(r.Who.Tenant)
	if !ok {
		return busy("Other conversations are being exported.")
	}
	defer release()
	if err := p.bounds.exporting.Acquire(r.Context(), 1); err != nil {
		return err
	}
	defer p.bounds.exporting.Release(1)
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(exportTime)) // so that a slow reader does not keep its place forever
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	p.captured.CatchUp(ctx)
	c, err := p.wholeConversation(ctx, r.Who.Tenant, id)
	if err != nil {
		return err
	}
	title := titleOf(c)
	var body []byte
	if form.as == asJSON {
		body, err = api.ConversationJSON(r.Context(), c)
	} else {
		for _, call := range c.Calls {
			if call.Answer, err = p.withFindings(ctx, r, call); err != nil {
				return err
			}
		}
		body, err = p.exported(r.Context(), joined(c), form, title, &c.Numbering, "")
	}
	if err != nil {
		return fmt.Errorf("exporting a conversation: %w", err)
	}
	writeExport(w, r, form, title, body)
	return nil
}

// wholeConversation reads all answers of a conversation.
func (p *Page) wholeConversation(ctx context.Context, tenant, id string) (*store.Conversation, error) {
	var whole *store.Conversation
	size := 0
	for cursor := ""; ; {
		c, err := p.o.Store.Conversation(ctx, tenant, id, &store.Query{Cursor: cursor, Limit: exportPage})
		if err != nil {
			return nil, err
		}
		size += sizeOf(c.Calls)
		if whole != nil {
			c.Calls, c.Numbering = append(c.Calls, whole.Calls...), whole.Numbering
		}
		whole = c
		if size > maxExport || len(c.Calls) > maxExported {
			return nil, &gateway.Problem{
				Status: http.StatusRequestEntityTooLarge,
				Code:   gateway.CodeTooLarge,
				Detail: "The conversation is too long for one file.",
				Hint:   "GET /v1/conversations/{id} returns it in pages.",
			}
		}
		if cursor = c.Next; cursor == "" {
			return whole, nil
		}
	}
}

// exported writes an answer in a form other than the JSON of the API. HTML is a complete page.
func (p *Page) exported(
	ctx context.Context, a *ibid.Answer, form exportForm, title string, numbering *ibid.Numbering, id string,
) ([]byte, error) {
	body, err := api.RenderAnswer(a, form.as, numbering, &export.Options{ID: id, Context: ctx})
	if err == nil && form.as == string(ibid.StyleHTML) {
		return p.fragment("export", "export", map[string]any{"Title": title, "Text": trustedHTML(string(body))})
	}
	return body, err
}

// writeExport sends an export as a file.
func writeExport(w *httpx.Reply, r *httpx.Request, form exportForm, title string, body []byte) {
	writeFile(w, r, fileName(title)+form.suffix, api.MediaType(form.as), body)
}

// fileName makes a file name from a title: letters and digits of any script, and hyphens.
func fileName(title string) string {
	var b strings.Builder
	n, gap := 0, false
	for _, r := range title {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) && n > 0:
			if gap && n > 0 {
				b.WriteByte('-')
				n++
			}
			gap = false
			b.WriteRune(unicode.ToLower(r))
			n++
		default:
			gap = true
		}
		if n >= maxFileName {
			break
		}
	}
	return cmp.Or(b.String(), "answer")
}

// joining joins the answers of a conversation into one, so that code that writes one answer writes them all with one
// numbering and one list of sources.
type joining struct {
	text     strings.Builder
	answer   ibid.Answer
	messages int
	unplaced []ibid.Citation
	ids      map[string]string // of sources in the joined answer, by their key
}

// joined returns a conversation as one answer: the questions as block quotes, and each source once.
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
	j.addPart(start)
}

// addPart makes a message of the text added since start.
func (j *joining) addPart(start int) {
	span := ibid.Span{Start: start, End: j.text.Len()}
	j.answer.Parts = append(j.answer.Parts, ibid.Part{Span: span, Kind: ibid.AnswerPart, Message: j.messages})
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
	if fence, _ := fenceIn(a.Text); fence != "" { // it would include all that follows
		j.text.WriteString("\n" + fence)
		j.answer.Parts[len(j.answer.Parts)-1].End = j.text.Len()
	}
	switch {
	case a.Error != nil:
		j.add("*The provider answered with an error.*")
	case !a.Complete:
		j.add("*The answer broke off here.*")
	}
}

// addParts adds the parts of an answer whose text begins at start.
func (j *joining) addParts(a *ibid.Answer, start int) {
	if len(a.Parts) == 0 {
		j.addPart(start)
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

// quoted returns a text as a block quote in Markdown.
func quoted(text string) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+line, " ")
	}
	return strings.Join(lines, "\n")
}

// fenceIn returns what closes the code block that a text ends in, empty if it does not end in one, and where the last
// code block before that ends.
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
