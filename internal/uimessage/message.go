package uimessage

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/wire"
)

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// The types that parts and chunks have in common.
const (
	typeText      = "text"
	typeReasoning = "reasoning"
	typeTool      = "tool-" // and the tool's name
	typeURL       = "source-url"
	typeDocument  = "source-document"
	typeData      = "data-citations"
)

// Message is a UIMessage.
type Message struct {
	ID    string `json:"id"`
	Role  string `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one part of a [Message]. Type determines which other fields are used; the rest are empty.
type Part struct {
	Type             string                     `json:"type"` // text, reasoning, tool-NAME, source-url …
	Text             string                     `json:"text,omitempty"`
	State            string                     `json:"state,omitempty"`
	SourceID         string                     `json:"sourceId,omitempty"`
	URL              string                     `json:"url,omitempty"`
	MediaType        string                     `json:"mediaType,omitempty"`
	Title            string                     `json:"title,omitempty"`
	Filename         string                     `json:"filename,omitempty"`
	ID               string                     `json:"id,omitempty"`
	Data             json.RawMessage            `json:"data,omitempty"`
	ProviderMetadata map[string]json.RawMessage `json:"providerMetadata,omitempty"`

	ToolCallID       string          `json:"toolCallId,omitempty"`
	ProviderExecuted bool            `json:"providerExecuted,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	Output           json.RawMessage `json:"output,omitempty"`
	ErrorText        string          `json:"errorText,omitempty"`
}

// Status is how final the citations of a message are.
type Status string

// The statuses of citations.
const (
	Pending  Status = "pending"  // they may still change, or arrive
	Final    Status = "final"    // the answer has ended
	Verified Status = "verified" // at least one was checked
)

// StatusOf returns the status of the citations of an answer that has ended.
func StatusOf(a *ibid.Answer) Status {
	for i := range a.Citations {
		if a.Citations[i].Verification != nil {
			return Verified
		}
	}
	return Final
}

// Options configure how an answer becomes a [Message]. With nil and the zero value, sources are numbered from 1, and
// the status is that of [StatusOf].
type Options struct {
	Numbering *ibid.Numbering // assigns the sources their numbers, and gets new ones, as in [ibid.DocumentOptions]
	Status    Status
}

// MessageOf returns an answer as an assistant message with the given id, that of the answer: the beginning of its step,
// one part data-citations with all citations, text parts with their citations in between reasoning and tool calls, in
// the order in which they began, and its sources. Part by part, it is what a client has after reading everything that a
// [Writer] wrote of the same answer.
func MessageOf(id string, a *ibid.Answer, o *Options) Message {
	if o == nil {
		o = &Options{}
	}
	d := documentOf(a, o.Numbering)
	m := Message{
		ID: id, Role: RoleAssistant,
		Parts: []Part{{Type: "step-start"}, dataPart(id, d, cmp.Or(o.Status, StatusOf(a)))},
	}
	offsets := ibid.NewOffsets(a.Text)
	inOrder(a, func(run *ibid.Part) {
		m.Parts = append(m.Parts, Part{
			Type:             typeText,
			Text:             a.Text[run.Start:run.End],
			State:            "done",
			ProviderMetadata: textMetadata(d, run, offsets),
		})
	}, func(i int) { m.Parts = append(m.Parts, activityPart(i, &a.Activities[i])) })
	for i := range d.Sources {
		m.Parts = append(m.Parts, sourcePart(&d.Sources[i]))
	}
	return m
}

// UserMessage returns a user's text, which must not be empty, as a message: a text part without text is not valid.
func UserMessage(id, text string) Message {
	return Message{ID: id, Role: RoleUser, Parts: []Part{{Type: typeText, Text: text}}}
}

// documentOf returns the answer document that everything is taken from.
func documentOf(a *ibid.Answer, n *ibid.Numbering) *ibid.Document {
	return a.Document(&ibid.DocumentOptions{Unit: ibid.UTF16, Bare: true, Numbering: n})
}

// runs returns the text parts of an answer: its parts, with adjacent ones of the same kind and message merged.
func runs(a *ibid.Answer) []ibid.Part {
	var all []ibid.Part
	for _, p := range a.Parts {
		last := len(all) - 1
		switch {
		case p.Len() <= 0 || p.Start < 0 || p.End > len(a.Text):
		case last >= 0 && all[last].Kind == p.Kind && all[last].Message == p.Message && all[last].End == p.Start:
			all[last].End = p.End
		default:
			all = append(all, p)
		}
	}
	if len(all) == 0 && a.Text != "" {
		all = append(all, ibid.Part{Span: ibid.Span{End: len(a.Text)}, Kind: ibid.AnswerPart})
	}
	return all
}

// inOrder calls text for each text part of an answer and activity for each activity, in the order in which they began.
func inOrder(a *ibid.Answer, text func(run *ibid.Part), activity func(i int)) {
	next := 0
	upTo := func(at int) {
		for ; next < len(a.Activities) && a.Activities[next].At <= at; next++ {
			activity(next)
		}
	}
	for _, run := range runs(a) {
		upTo(run.Start)
		text(&run)
	}
	upTo(math.MaxInt)
}

// brokenCall is the error of a call whose input did not arrive, so that it is never made.
const brokenCall = "the answer broke off within this call"

// activityPart returns the i-th activity as a part, in its final state. Reasoning has the id of its frames, which
// clients keep since version 6.
func activityPart(i int, a *ibid.Activity) Part {
	if a.Kind == ibid.ReasoningActivity {
		return Part{Type: typeReasoning, ID: reasoningID(i), Text: a.Text, State: "done"}
	}
	p := Part{
		Type: typeTool + toolName(a), ToolCallID: a.ID, ProviderExecuted: a.Server, Input: a.Input,
		State: "input-available",
	}
	switch {
	case a.Error != "":
		p.State, p.ErrorText = "output-error", a.Error
	case a.Input == nil:
		p.State, p.ErrorText = "output-error", brokenCall
	case a.Output != nil:
		p.State, p.Output = "output-available", a.Output
	}
	return p
}

func toolName(a *ibid.Activity) string { return cmp.Or(a.Name, "unknown") }

// textIbid is the providerMetadata.ibid of a text part.
type textIbid struct {
	Unit      ibid.Unit               `json:"unit"`
	TextStart int                     `json:"text_start"` // of the part, in the message's text
	TextEnd   int                     `json:"text_end"`
	Kind      ibid.PartKind           `json:"kind"`
	Citations []ibid.DocumentCitation `json:"citations"` // that end in the part
}

func textMetadata(d *ibid.Document, run *ibid.Part, offsets *ibid.Offsets) map[string]json.RawMessage {
	t := textIbid{Unit: d.Unit, Kind: run.Kind, Citations: []ibid.DocumentCitation{}}
	t.TextStart, t.TextEnd = offsets.In(ibid.UTF16, run.Span)
	for i := range d.Citations {
		c := &d.Citations[i]
		if c.TextEnd != nil && *c.TextEnd > t.TextStart && *c.TextEnd <= t.TextEnd ||
			c.TextEnd != nil && *c.TextEnd == 0 && t.TextStart == 0 {
			t.Citations = append(t.Citations, *c)
		}
	}
	return metadata(&t)
}

// citationsIbid is the data of the part data-citations.
type citationsIbid struct {
	Status    Status                  `json:"status"`
	AnswerID  string                  `json:"answer_id"`
	Unit      ibid.Unit               `json:"unit"`
	Complete  bool                    `json:"complete"`
	Finish    *ibid.Finish            `json:"finish"`
	Citations []ibid.DocumentCitation `json:"citations"`
	Display   []ibid.Display          `json:"display_requirements"`
}

// dataPart returns the one part data-citations of a message.
func dataPart(id string, d *ibid.Document, status Status) Part {
	data := citationsIbid{status, id, d.Unit, d.Complete, d.Finish, d.Citations, d.Display}
	return Part{Type: typeData, ID: "cit_" + id, Data: encode(&data)}
}

// sourceIbid is the providerMetadata.ibid of a source: a source of an answer document, without its content.
type sourceIbid struct {
	Index       int               `json:"index"`
	ID          string            `json:"id"`
	Key         string            `json:"key"`
	Kind        ibid.SourceKind   `json:"kind"`
	Title       *string           `json:"title"`
	URL         *string           `json:"url"`
	OriginalURL *string           `json:"original_url"`
	Filename    *string           `json:"filename"`
	Site        *string           `json:"site"`
	Authors     []string          `json:"authors"`
	PublishedAt *string           `json:"published_at"`
	RetrievedAt *time.Time        `json:"retrieved_at"`
	License     *string           `json:"license"`
	Score       *float64          `json:"score"`
	ScoreOrigin *ibid.ScoreOrigin `json:"score_origin"`
	Cited       bool              `json:"cited"`
}

// sourcePart returns a source as a part: as a page if it can be opened, else as a document.
func sourcePart(s *ibid.DocumentSource) Part {
	p := Part{Type: typeDocument, SourceID: cmp.Or(s.ID, "source-"+strconv.Itoa(s.Index))}
	p.ProviderMetadata = metadata(&sourceIbid{
		s.Index, s.ID, s.Key, s.Kind, s.Title, s.URL, s.OriginalURL, s.Filename, s.Site, s.Authors, s.PublishedAt,
		s.RetrievedAt, s.License, s.Score, s.ScoreOrigin, s.Cited,
	})
	p.Title = cmp.Or(deref(s.Title), deref(s.Filename), deref(s.Site))
	if opens(deref(s.URL)) {
		p.Type, p.URL = typeURL, *s.URL
		return p
	}
	p.Filename = deref(s.Filename)
	p.Title = cmp.Or(p.Title, deref(s.URL), p.SourceID) // clients reject a document without one
	p.MediaType = mediaType(cmp.Or(p.Filename, p.Title), s.Kind)
	return p
}

// opens reports whether a page may show an address as a link, which must not run as a script.
func opens(address string) bool {
	scheme, rest, ok := strings.Cut(address, "://")
	return ok && rest != "" && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http"))
}

// mediaType returns the media type by a file's name. Documents of the caller, and results of tools, are text.
func mediaType(name string, kind ibid.SourceKind) string {
	if known := mediaTypes[strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])]; known != "" {
		return known
	}
	if kind == ibid.DocumentKind || kind == ibid.Tool {
		return "text/plain"
	}
	return "application/octet-stream"
}

const officeType = "application/vnd.openxmlformats-officedocument."

var mediaTypes = map[string]string{
	"pdf": "application/pdf", "html": "text/html", "htm": "text/html", "md": "text/markdown",
	"markdown": "text/markdown",
	"txt":      "text/plain", "csv": "text/csv", "json": "application/json",
	"docx": officeType + "wordprocessingml.document",
	"pptx": officeType + "presentationml.presentation", "xlsx": officeType + "spreadsheetml.sheet",
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// metadata returns a value as ibid's metadata of a part.
func metadata(v any) map[string]json.RawMessage { return map[string]json.RawMessage{"ibid": encode(v)} }

// encode returns v as JSON without the escapes that only HTML needs. Its arguments can always be encoded.
func encode(v any) json.RawMessage {
	data, err := wire.Encode(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}
