package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Completion is an answer in the form of Chat Completions, which most programs can read. It is written like OpenAI's,
// but with annotations of files besides those of pages. Its parser is newChat.
type Completion struct {
	ID, Model, Text string
	Finish          string // finishStop, …; empty if unknown
	Created         int64  // Unix seconds; 0 if unknown
	Annotations     []Annotation

	begun bool // Chunk was called
}

// Annotation is a citation of a [Completion]: of a page by its URL or, if that is empty, of a file. Start and End count
// from the beginning of the text in any unit that the caller chooses, End is exclusive; both 0 mean that it has no
// place.
type Annotation struct {
	Start, End       int
	URL, Title       string
	FileID, Filename string
}

// Objects of Chat Completions.
type (
	completion struct {
		ID      string             `json:"id"`
		Object  string             `json:"object"`
		Created int64              `json:"created"`
		Model   string             `json:"model"`
		Choices []completionChoice `json:"choices"`
	}
	completionChoice struct {
		Index   int                `json:"index"`
		Message *completionMessage `json:"message,omitempty"`
		Delta   *completionDelta   `json:"delta,omitempty"`
		// Logprobs is always null, since readers expect the member.
		Logprobs *struct{} `json:"logprobs"`
		Finish   *string   `json:"finish_reason"`
	}
	completionMessage struct {
		Role        string           `json:"role"`
		Content     *string          `json:"content"`
		Refusal     *string          `json:"refusal"`
		Annotations []completionNote `json:"annotations"`
	}
	completionDelta struct {
		Role        string           `json:"role,omitempty"`
		Content     *string          `json:"content,omitempty"`
		Refusal     *string          `json:"refusal,omitempty"`
		Annotations []completionNote `json:"annotations,omitempty"`
	}
	completionNote struct {
		Type string          `json:"type"`
		Page *completionPage `json:"url_citation,omitempty"`
		File *completionFile `json:"file_citation,omitempty"`
	}
	completionPage struct {
		Start int    `json:"start_index"`
		End   int    `json:"end_index"`
		URL   string `json:"url"`
		Title string `json:"title"`
	}
	completionFile struct {
		Start    int    `json:"start_index"`
		End      int    `json:"end_index"`
		ID       string `json:"file_id"`
		Filename string `json:"filename"`
	}
)

// Body returns the completion as one JSON object, without a line break.
func (c *Completion) Body() ([]byte, error) {
	m := &completionMessage{Role: "assistant", Annotations: c.notes()}
	if c.Finish == finishRefusal {
		m.Refusal = &c.Text
	} else {
		m.Content = &c.Text
	}
	return c.object("chat.completion", completionChoice{Message: m, Finish: c.finishReason()})
}

// Chunk returns one event of the completion's stream, a JSON object without a line break. Delta is the text that
// follows, and may be empty. The first event has the role; the last one has the annotations and the finish reason,
// which need to be set only then. After it a stream has the event "[DONE]", which is not JSON. Text is ignored.
func (c *Completion) Chunk(delta string, last bool) ([]byte, error) {
	d := &completionDelta{}
	if !c.begun {
		d.Role = "assistant"
		c.begun = true
	}
	switch {
	case delta == "" && last:
	case c.Finish == finishRefusal:
		d.Refusal = &delta
	default:
		d.Content = &delta
	}
	choice := completionChoice{Delta: d}
	if last {
		d.Annotations = c.notes()
		choice.Finish = c.finishReason()
	}
	return c.object("chat.completion.chunk", choice)
}

func (c *Completion) object(name string, choice completionChoice) ([]byte, error) {
	b, err := Encode(completion{c.ID, name, c.Created, c.Model, []completionChoice{choice}})
	if err != nil {
		return nil, fmt.Errorf("writing a chat completion: %w", err)
	}
	return b, nil
}

// notes returns the annotations in their JSON form, never nil.
func (c *Completion) notes() []completionNote {
	notes := make([]completionNote, 0, len(c.Annotations))
	for i := range c.Annotations {
		a := &c.Annotations[i]
		note := completionNote{Type: "file_citation", File: &completionFile{a.Start, a.End, a.FileID, a.Filename}}
		if a.URL != "" {
			note = completionNote{Type: "url_citation", Page: &completionPage{a.Start, a.End, a.URL, a.Title}}
		}
		notes = append(notes, note)
	}
	return notes
}

// finishReason returns why the completion ended in the words of Chat Completions, or nil if that is unknown or it has
// not ended.
func (c *Completion) finishReason() *string {
	if reason, known := completionFinish[c.Finish]; known {
		return &reason
	}
	return nil
}

var completionFinish = map[string]string{
	finishStop: "stop", finishRefusal: "stop", // a refusal has its own member
	finishLength: "length", finishTool: "tool_calls", finishFilter: "content_filter", finishError: "error",
}

// Encode returns JSON without the escapes that only HTML needs, and without a line break at its end.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
