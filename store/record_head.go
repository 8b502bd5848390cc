package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/trail"
)

// maxIssues is how many issues of a run itself are kept: of those that come again and again with another detail, the
// first.
const maxIssues = 100

// headID is the id of the record of a run itself.
const headID = ""

// head is what was recorded of a run itself: a trail without steps.
type head struct {
	trail.Trail
	AnswerID string // the captured answer that is the final one; empty: none is
}

// head records what is said of the run itself.
func (w *recorder) head(r *Recording) error {
	old, h := w.byID[headID], &head{}
	if old == nil {
		old = &record{id: headID, started: w.now}
	} else {
		var err error
		if h, err = decodeHead(old.text); err != nil {
			return err
		}
	}
	ended := h.merge(r, w.now)
	w.answered = h.AnswerID != "" || h.Answer != "" || h.Final != nil
	text, err := h.encode()
	if err != nil {
		return err
	}
	isNew := old.text == ""
	changed, err := w.put(old, "what is said of the run itself", text, 0)
	if err != nil || !changed {
		return err
	}
	w.done.Changed = !isNew
	t := w.run
	t.agent, t.question = cmp.Or(
		beginning(plain(h.Agent), maxInList),
		t.agent,
	), cmp.Or(
		beginning(plain(h.Question), maxInList),
		t.question,
	)
	t.strategy, t.finished = cmp.Or(
		t.captured, lookup(h.Strategy), t.strategy,
	), cmp.Or(
		knownMicros(h.Finished), t.finished,
	)
	w.seen(h.Started, h.Finished)
	if !ended {
		return nil
	}
	w.ended = true
	return w.tell(EventFinish, &finishEvent{nullable(h.AnswerID), w.answered})
}

// headRecord is a head as JSON.
type headRecord struct {
	Run      json.RawMessage `json:"run"`
	AnswerID string          `json:"answer_id,omitempty"`
}

func (h *head) encode() (string, error) {
	b, err := json.Marshal(&h.Trail)
	if err != nil {
		return "", err
	}
	b, err = json.Marshal(&headRecord{b, h.AnswerID})
	return plain(string(b)), err
}

func decodeHead(text string) (*head, error) {
	var record headRecord
	h := &head{}
	err := json.Unmarshal([]byte(text), &record)
	if err == nil {
		err = json.Unmarshal(record.Run, &h.Trail)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: what was recorded of a run: %w", errDamaged, err)
	}
	h.AnswerID = record.AnswerID
	h.Issues, err = issuesOf(string(record.Run), h.Issues)
	return h, err
}

// merge takes up what a recording says of the run itself, and reports whether it tells of its end what was not known.
func (h *head) merge(r *Recording, now int64) (ended bool) {
	t, before := r.Trail, *h
	h.Agent, h.Question = cmp.Or(t.Agent, h.Agent), cmp.Or(t.Question, h.Question)
	h.Parent, h.Strategy = cmp.Or(t.Parent, h.Parent), cmp.Or(t.Strategy, h.Strategy)
	if !t.Started.IsZero() {
		h.Started = t.Started
	}
	if !t.Finished.IsZero() {
		h.Finished = t.Finished
	}
	if r.Finish && h.Finished.IsZero() {
		h.Finished = instant(now)
	}
	switch {
	case r.AnswerID != "":
		h.AnswerID, h.Answer, h.Final = r.AnswerID, "", nil
	case t.Answer != "" || t.Final != nil:
		final := t.Final
		if final == nil && h.Final != nil && strings.TrimSpace(h.Final.Text) == strings.TrimSpace(t.Answer) {
			final = h.Final // said again, it keeps its citations
		}
		h.AnswerID, h.Answer, h.Final = "", t.Answer, final
	}
	for _, issue := range t.Issues {
		if len(h.Issues) < maxIssues && !slices.Contains(h.Issues, issue) {
			h.Issues = append(h.Issues, issue)
		}
	}
	if len(t.Extra) > 0 {
		h.Extra = maps.Clone(h.Extra)
		if h.Extra == nil {
			h.Extra = map[string]json.RawMessage{}
		}
		maps.Copy(h.Extra, t.Extra)
	}
	return !h.Finished.Equal(before.Finished) || h.AnswerID != before.AnswerID || h.Answer != before.Answer
}

// seen takes up when something of the run began and ended, as far as that is known.
func (w *recorder) seen(began, ended time.Time) {
	at := knownMicros(began)
	if at != 0 && (w.run.started == 0 || at < w.run.started) {
		w.run.started = at
	}
	w.run.ended = max(w.run.ended, at)
	if at != 0 || !ended.IsZero() {
		w.run.ended = max(w.run.ended, micros(ended))
	}
}

// knownMicros is micros, and 0 for a time that is not known.
func knownMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return micros(t)
}

// beginning returns so many bytes of s, to the end of a character.
func beginning(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const more = "…"
	for most -= len(more); !utf8.RuneStart(s[most]); {
		most--
	}
	return s[:most] + more
}
