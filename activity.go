package ibid

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/ibidhq/ibid/internal/wire"
)

// Activity is one thing that a model did besides writing its answer: it reasoned, or it called a tool.
type Activity struct {
	Kind ActivityKind
	At   int    // how many bytes of [Answer.Text] there were when it began
	Text string // ReasoningActivity: what the model thought, as far as the provider shows it; never empty

	// The rest is of a ToolActivity.
	ID     string          // names the call in its answer; made up where the provider sends none
	Name   string          // the tool's
	Server bool            // the provider ran the tool; else the client has to
	Input  json.RawMessage // what the tool was given; nil: the response broke off before that was said
	Output json.RawMessage // what came of it, without what only the provider can read; nil: nothing did, so far
	Error  string          // why the call failed; empty: it did not
}

// ActivityKind says what an [Activity] is.
type ActivityKind string

// The kinds of [Activity].
const (
	ReasoningActivity ActivityKind = "reasoning"
	ToolActivity      ActivityKind = "tool"
)

// maxToolJSON is how many bytes the input or the output of one call may have. What has more, such as a picture, is left
// out: see [Answer.Issues].
const maxToolJSON = 256 << 10

// foldActivity is an activity while it is read.
type foldActivity struct {
	Activity

	key   wire.Part // of a piece of reasoning
	sent  string    // the id that the provider sent
	bytes []byte    // of the reasoning's text, or of an input that comes in pieces
	tail  []byte    // of the text: what may become a character with the next
}

var activitySize = grown[foldActivity]() + grown[Activity]()

// addActivity takes an operation about reasoning or a tool.
func (c *candidate) addActivity(op *wire.Op) {
	if op.Kind == wire.Reasoning {
		c.think(op.Part, op.Text)
		return
	}
	i := c.findTool(op.Name)
	switch {
	case op.Kind == wire.Tool && (i < 0 || op.Name == ""):
		c.beginTool(op)
	case i < 0: // a call of a response before
	case op.Kind == wire.Tool:
		if a := &c.activities[i]; a.Name == "" && op.More != "" {
			a.Name = validText(op.More)
			c.tellActivity(i, "")
		}
	case op.Kind == wire.ToolInput:
		c.addInput(i, op.Text)
	case op.Kind == wire.ToolReady:
		c.setInput(i, op.Raw)
	case op.Kind == wire.ToolOutput:
		c.setInput(i, nil)
		a := &c.activities[i]
		output, failed := c.toolJSON(op.Raw, "a tool's output"), validText(op.More)
		if bytes.Equal(a.Output, output) && a.Error == failed {
			return
		}
		a.Output, a.Error = output, failed
		c.tellActivity(i, "")
	}
}

// begin adds an activity, and returns its place; -1: there is no room for it.
func (c *candidate) begin(a *foldActivity) int {
	if !c.fold.room(len(c.activities), "activities") ||
		!c.fold.keep(activitySize+textSize(a.Name, a.ID, a.sent)) {
		return -1
	}
	a.At = c.text.Len()
	c.activities = append(c.activities, *a)
	return len(c.activities) - 1
}

// think adds to what the model thought. What has another key, or comes behind something else, is another piece.
func (c *candidate) think(key wire.Part, s []byte) {
	i := len(c.activities) - 1
	goesOn := i >= 0 && c.activities[i].Kind == ReasoningActivity && c.activities[i].key == key &&
		c.activities[i].At == c.text.Len()
	if !goesOn {
		if i = c.begin(&foldActivity{Activity: Activity{Kind: ReasoningActivity}, key: key}); i < 0 {
			return
		}
	}
	a := &c.activities[i]
	s = c.fold.repair(&a.tail, s, false)
	if !c.fold.keep(2 * len(s)) {
		return
	}
	a.bytes = append(a.bytes, s...)
	switch {
	case !goesOn:
		c.tellActivity(i, string(s))
	case len(s) > 0 && c.fold.onEvent != nil:
		c.fold.onEvent(Event{Kind: EventActivity, Candidate: c.index, Index: i, Text: string(s)})
	}
}

// findTool returns the place of a call by the id that the provider sent, the last one's where it sent none; -1: there
// is none.
func (c *candidate) findTool(id string) int {
	id = validText(id)
	for i, a := range slices.Backward(c.activities) {
		if a.Kind == ToolActivity && a.sent == id {
			return i
		}
	}
	return -1
}

func (c *candidate) beginTool(op *wire.Op) {
	id := validText(op.Name)
	a := foldActivity{sent: id, Activity: Activity{
		Kind: ToolActivity, ID: id, Name: validText(op.More), Server: op.Server,
	}}
	if id == "" {
		a.ID = "call_" + strconv.Itoa(len(c.activities)+1)
	}
	if i := c.begin(&a); i >= 0 {
		c.tellActivity(i, "")
	}
}

// addInput adds to the input of a call, unless all of it is known.
func (c *candidate) addInput(i int, s []byte) {
	a := &c.activities[i]
	if a.Input != nil || len(a.bytes) > maxToolJSON || !c.fold.keep(2*len(s)) {
		return
	}
	a.bytes = append(a.bytes, s...)
	c.fold.emit(Event{Kind: EventActivity, Candidate: c.index, Index: i, Text: validText(string(s))})
}

// setInput says what the input of a call is, once; nil: what came in pieces, else nothing.
func (c *candidate) setInput(i int, raw []byte) {
	a := &c.activities[i]
	if a.Input != nil {
		return
	}
	if raw == nil {
		raw = bytes.TrimSpace(a.bytes)
	}
	switch {
	case len(raw) > 0 && !json.Valid(raw): // a model's mistake, or no JSON by intention
		a.Input, _ = json.Marshal(validText(string(raw)))
	default:
		a.Input = c.toolJSON(raw, "a tool's input")
	}
	if a.Input == nil {
		a.Input = json.RawMessage("{}")
	}
	a.bytes = nil
	c.tellActivity(i, "")
}

// toolJSON returns a copy of JSON that there is room for, else nil.
func (c *candidate) toolJSON(raw []byte, what string) json.RawMessage {
	var b bytes.Buffer
	switch {
	case len(raw) == 0 || json.Compact(&b, raw) != nil:
		return nil
	case b.Len() > maxToolJSON:
		c.fold.limit(what)
		return nil
	case !c.fold.keep(2 * b.Len()):
		return nil
	}
	return validJSON(b.Bytes())
}

// tellActivity tells what is known of an activity, and what was added to its text.
func (c *candidate) tellActivity(i int, text string) {
	if c.fold.onEvent != nil {
		a := c.activities[i].Activity
		c.fold.onEvent(Event{Kind: EventActivity, Candidate: c.index, Index: i, Activity: &a, Text: text})
	}
}

// moveActivities follows a text that has replaced the one up to end, and is longer by shift.
func (c *candidate) moveActivities(from, end, shift int) {
	for i := range c.activities {
		switch a := &c.activities[i]; {
		case a.At >= end:
			a.At += shift
		case a.At > from:
			a.At = end + shift
		}
	}
}

// closeActivities settles what waited for the end of the input. Of a whole answer all inputs are known.
func (c *candidate) closeActivities() {
	for i := range c.activities {
		if a := &c.activities[i]; a.Kind == ToolActivity && c.fold.complete {
			c.setInput(i, nil)
		}
	}
}

// outActivities returns the activities as the answer has them.
func (c *candidate) outActivities() []Activity {
	var out []Activity
	for i := range c.activities {
		a := c.activities[i].Activity
		if a.Kind == ReasoningActivity {
			a.Text = string(c.activities[i].bytes)
		}
		out = append(out, a)
	}
	return out
}
