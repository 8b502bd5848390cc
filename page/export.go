package page

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxExport is about how many bytes a conversation may have to be taken elsewhere as one file, with all that its
	// answers quote, and maxExported how many answers.
	maxExport   = 32 << 20
	maxExported = 5000
	// maxExporting is how many conversations are made files of for a tenant at the same time.
	maxExporting = 2
	// exportTime is how long that may take, until it is read.
	exportTime = 2 * time.Minute
	// exportPage is how many answers are read at once.
	exportPage = 10
	// maxFileName is how many characters of a title are in the name of a file.
	maxFileName = 60
)

// The form of an export that is the JSON of the API.
const asJSON = "json"

// exportForm is something an answer or a conversation can be taken elsewhere as.
type exportForm struct {
	as, word, suffix string
	one              bool // single answers only
}

// exportForms returns all of them, in the order of the menu.
func exportForms() []exportForm {
	return []exportForm{
		{as: string(ibid.StyleMarkdown), word: "Markdown", suffix: ".md"},
		{as: string(ibid.StyleFootnotes), word: "Markdown with footnotes", suffix: ".footnotes.md"},
		{as: string(ibid.StyleHTML), word: "HTML", suffix: ".html"},
		{as: string(ibid.StylePlain), word: "plain text", suffix: ".txt"},
		{as: string(ibid.StyleLaTeX), word: "LaTeX", suffix: ".tex"},
		{as: asJSON, word: "JSON", suffix: ".json"},
		{as: string(biblio.BibTeX), word: "BibTeX", suffix: ".bib"},
		{as: string(biblio.RIS), word: "RIS", suffix: ".ris"},
		{as: string(biblio.CSLJSON), word: "CSL-JSON", suffix: ".csl.json"},
		{as: string(biblio.APA), word: "APA", suffix: ".apa.txt"},
		{as: string(biblio.MLA), word: "MLA", suffix: ".mla.txt"},
		{as: string(biblio.Chicago), word: "Chicago", suffix: ".chicago.txt"},
		{as: string(export.OpenAI), word: "OpenAI chat completion", suffix: ".openai.json", one: true},
		{as: string(export.LangChain), word: "LangChain content blocks", suffix: ".langchain.json", one: true},
		{as: string(export.LlamaIndex), word: "LlamaIndex response", suffix: ".llamaindex.json", one: true},
	}
}

// exportLink is an entry of a menu of exports.
type exportLink struct{ URL, Word string }

// exportLinks returns the menu of exports of a single answer, or of a conversation; base is where they are.
func exportLinks(base string, one bool) []exportLink {
	var links []exportLink
	for _, f := range exportForms() {
		if one || !f.one {
			links = append(links, exportLink{base + "?as=" + f.as, f.word})
		}
	}
	return links
}

// Exports returns the menu of exports of an answer.
func (v *answerView) Exports() []exportLink { return exportLinks(answerURL(v.ID)+"/export", true) }

// exportForm returns what a request wants an answer or a conversation as.
func (r *request) exportForm(one bool) (exportForm, error) {
	as := cmp.Or(r.URL.Query().Get("as"), string(ibid.StyleMarkdown))
	var all []string
	for _, f := range exportForms() {
		if !one && f.one {
			continue
		}
		if f.as == as {
			return f, nil
		}
		all = append(all, f.as)
	}
	return exportForm{}, badRequest("It cannot be written like that.", "as is one of "+strings.Join(all, ", ")+".")
}

// exportAnswer hands an answer out as a file.
func (p *Page) exportAnswer(w http.ResponseWriter, r *request) error {
	form, err := r.exportForm(true)
	if err != nil {
		return err
	}
	id, err := idOf(r)
	if err != nil {
		return err
	}
	call, err := p.call(r.Context(), r.who.Tenant, id)
	if err != nil {
		return err
	}
	title := titleOf(&store.Conversation{ID: call.AnswerID, Calls: []*store.Call{{Prompt: lastQuestion(call)}}})
	var body []byte
	switch {
	case form.as == asJSON:
		body, err = api.CallJSON(call)
	case form.one:
		var b bytes.Buffer
		err = export.Write(&b, export.Format(form.as), call.Answer, &export.Options{ID: call.AnswerID})
		body = b.Bytes()
	default:
		body, err = exported(call.Answer, form, title, nil)
	}
	if err != nil {
		return fmt.Errorf("exporting an answer: %w", err)
	}
	writeFile(w, r, fileName(title)+form.suffix, exportType(form), body)
	return nil
}

// lastQuestion returns what an answer answers.
func lastQuestion(call *store.Call) []store.Message {
	for _, m := range slices.Backward(call.Prompt) {
		if m.Role == store.RoleUser {
			return []store.Message{m}
		}
	}
	return nil
}

// exportConversation hands a whole conversation out as a file, with one numbering and one list of sources.
func (p *Page) exportConversation(w http.ResponseWriter, r *request) error {
	form, err := r.exportForm(false)
	if err != nil {
		return err
	}
	id, err := idOf(r)
	if err != nil {
		return err
	}
	release, ok := p.talks.exports.take(r.who.Tenant, maxExporting)
	if !ok {
		return busy("Other conversations are being exported.")
	}
	defer release()
	if err := p.bounds.exporting.Acquire(r.Context(), 1); err != nil {
		return err
	}
	defer p.bounds.exporting.Release(1)
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(exportTime)) // who reads slowly keeps no place for ever
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	p.caughtUp(ctx)
	c, err := p.wholeConversation(ctx, r.who.Tenant, id)
	if err != nil {
		return err
	}
	title := titleOf(c)
	var body []byte
	if form.as == asJSON {
		body, err = api.ConversationJSON(c)
	} else {
		body, err = exported(joined(c), form, title, c.Numbering)
	}
	if err != nil {
		return fmt.Errorf("exporting a conversation: %w", err)
	}
	writeFile(w, r, fileName(title)+form.suffix, exportType(form), body)
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
		size += weightOfAll(c.Calls)
		if whole != nil {
			c.Calls, c.Numbering = append(c.Calls, whole.Calls...), whole.Numbering
		}
		whole = c
		if size > maxExport || len(c.Calls) > maxExported {
			return nil, &gateway.Problem{
				Status: http.StatusRequestEntityTooLarge,
				Code:   gateway.CodeTooLarge,
				Detail: "The conversation is too long for one file.",
				Hint:   "GET /v1/conversations/{id} hands it out in pages.",
			}
		}
		if cursor = c.Next; cursor == "" {
			return whole, nil
		}
	}
}

// exported writes an answer in a form that has a list of sources, or is one.
func exported(a *ibid.Answer, form exportForm, title string, numbering ibid.Numbering) ([]byte, error) {
	var b bytes.Buffer
	if f := biblio.Format(form.as); slices.Contains(biblio.Formats(), f) {
		err := biblio.Write(&b, f, biblio.Cited(a), nil)
		return b.Bytes(), err
	}
	o := &ibid.RenderOptions{Style: ibid.Style(form.as), List: true}
	if numbering != nil {
		o.Numbering = &numbering
	}
	text := a.Render(o)
	if o.Style == ibid.StyleHTML {
		text = "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
			html.EscapeString(
				title,
			) + "</title>\n<style>body{max-width:42rem;margin:2rem auto;padding:0 1rem;font:1.05rem/1.6 serif}" +
			"sup{line-height:0}blockquote{margin-inline:0;padding-inline-start:1rem;border-inline-start:3px solid #999}</style>\n</head>\n<body dir=\"auto\">\n" +
			text + "\n</body>\n</html>"
	}
	b.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// exportType returns the media type of an export.
func exportType(form exportForm) string {
	switch ibid.Style(form.as) {
	case ibid.StyleMarkdown, ibid.StyleFootnotes:
		return "text/markdown; charset=utf-8"
	case ibid.StylePlain:
		return "text/plain; charset=utf-8"
	case ibid.StyleHTML:
		return "text/html; charset=utf-8"
	case ibid.StyleLaTeX:
		return "text/x-tex; charset=utf-8"
	}
	return cmp.Or(biblio.Format(form.as).MediaType(), "application/json")
}

// fileName returns what a file is called that has something with a title in it: letters and digits of any script, and
// hyphens.
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
