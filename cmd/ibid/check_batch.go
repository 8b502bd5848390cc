package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// Limits of the lines checked together.
const (
	maxBatchBytes = 8 << 20 // bytes
	maxBatchPairs = 64      // lines
)

// batchLine is a line of the input.
type batchLine struct {
	ID       json.RawMessage `json:"id"`
	Claim    *string         `json:"claim"`
	Context  string          `json:"context"`
	Passages []batchPassage  `json:"passages"`
	Others   []batchPassage  `json:"others"`
}

// batchPassage is a string, or an object with a text.
type batchPassage struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Language string `json:"language"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *batchPassage) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, &p.Text)
	case '{':
	default:
		return errors.New("a passage is neither a string nor an object")
	}
	type plain batchPassage
	var object struct {
		plain

		ID   json.RawMessage `json:"id"` // any value
		Text *string         `json:"text"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return wrongKind("a passage", err)
	}
	if object.Text == nil {
		return errors.New("a passage has no text")
	}
	p.Text, p.Language = *object.Text, object.Language
	return nil
}

// batch is one call of ibid check --batch.
type batch struct {
	checker support.Checker
	out     io.Writer
	lines   []*checkLine   // in order; those with an error are not checked
	pairs   []support.Pair // of the others
	bytes   int
	number  int // of the last line read, from 1
	taken   int // lines that are not blank
	failed  int
}

// checkBatch checks the lines of a file. Only a failure to read or write ends it early.
func checkBatch(ctx context.Context, name string, checker support.Checker, w world) error {
	_, fast := checker.(*support.Lexical)
	bar := newProgress([]string{name}, !fast, w)
	defer bar.over(&w.err)()
	in, err := openInput(&item{name: name}, w.in, bar.watch)
	if err != nil {
		return usagef(explain(err).hint, "read %s: %w", name, err)
	}
	defer in.Close()
	b := &batch{checker: support.RightSource(checker), out: w.out}
	if err := b.checkLines(ctx, bufio.NewReaderSize(in, 1<<16)); err != nil {
		return err
	}
	if b.taken == 0 {
		return usagef(`each line is {"id", "claim", "passages": [...]}`, "read %s: the file is empty", name)
	}
	if b.failed > 0 {
		say(w.err, "%s of %d could not be checked; see the member error", plural(b.failed, "line"), b.taken)
		return errReported
	}
	return nil
}

// checkLines reads, checks and writes lines. Lines that have been read are checked before it waits for more.
func (b *batch) checkLines(ctx context.Context, r *bufio.Reader) error {
	var failed error
	err := readLines(r, func(line []byte, number int, err error) bool {
		if b.number = number; err != nil || !isBlank(line) {
			b.taken++
			b.add(line, err)
		}
		ahead, _ := r.Peek(r.Buffered())
		isLast := bytes.IndexByte(ahead, '\n') < 0 // of the lines read so far
		if isLast || len(b.pairs) >= maxBatchPairs || b.bytes >= maxBatchBytes {
			failed = b.flush(ctx)
		}
		return failed == nil
	})
	if err != nil {
		return errors.Join(b.flush(ctx), fmt.Errorf("read the batch: %w", bare(err)))
	}
	return failed
}

// add adds a line, or only its error if it was too long. Bytes that are not UTF-8 are reported, as they would vanish
// silently.
func (b *batch) add(data []byte, err error) {
	var in batchLine
	var issues []ibid.Issue
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
		issues = []ibid.Issue{{
			Code:   snapshot.IssueInvalidUTF8,
			Detail: "bytes that are not UTF-8 were replaced with replacement characters",
		}}
	}
	code, why := "unreadable", err
	if err == nil {
		why = json.Unmarshal(data, &in)
	}
	switch {
	case err != nil:
		code = "too-large"
	case errors.As(why, new(*json.SyntaxError)):
		why = fmt.Errorf("the line is not JSON: %w", why)
	case why != nil:
		why = wrongKind("the line", why)
	case in.Claim == nil:
		why = errors.New("the line has no claim")
	case in.Passages == nil:
		why = errors.New("the line has no passages")
	}
	line := &checkLine{ID: in.ID, Line: b.number, Issues: issues}
	b.lines = append(b.lines, line)
	if why != nil {
		line.Error = &checkError{code, why.Error()}
		return
	}
	b.pairs = append(b.pairs, support.Pair{
		Claim: *in.Claim, Context: in.Context, Passages: passagesOf(in.Passages), Others: passagesOf(in.Others),
	})
	b.bytes += len(data)
}

func passagesOf(list []batchPassage) []support.Passage {
	all := make([]support.Passage, len(list))
	for i, p := range list {
		all[i] = support.Passage(p)
	}
	return all
}

// wrongKind reports the actual and the expected type of an element or one of its members. Other errors are unchanged.
func wrongKind(of string, err error) error {
	kind, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	want := map[reflect.Kind]string{reflect.String: "a string", reflect.Slice: "an array"}[kind.Type.Kind()]
	if kind.Field != "" {
		of += "'s " + kind.Field[strings.LastIndexByte(kind.Field, '.')+1:]
	}
	is := "a " + kind.Value
	if strings.ContainsAny(is[2:3], "aeiou") {
		is = "an " + kind.Value
	}
	return fmt.Errorf("%s is %s, want %s", of, is, cmp.Or(want, "an object"))
}

// flush checks the collected lines and writes the results.
func (b *batch) flush(ctx context.Context) error {
	if len(b.lines) == 0 {
		return nil
	}
	verdicts, err := b.checker.Check(ctx, b.pairs)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("check the batch: %w", err)
	}
	next := 0
	for _, line := range b.lines {
		pair, verdict, why := &support.Pair{}, &support.Verdict{Label: support.Unchecked}, line.Error
		switch {
		case why != nil:
		case err != nil:
			why = &checkError{"unchecked", err.Error()}
		default:
			pair, verdict = &b.pairs[next], &verdicts[next]
			next++
		}
		out := newCheckLine(pair, verdict)
		out.Error = cmp.Or(why, out.Error)
		out.ID, out.Line, out.Issues = line.ID, line.Line, slices.Concat([]ibid.Issue{}, line.Issues, out.Issues)
		if out.ID == nil {
			out.ID = json.RawMessage("null")
		}
		if out.Error != nil {
			b.failed++
		}
		if err := writeCheckLine(b.out, out); err != nil {
			return fmt.Errorf("write standard output: %w", bare(err))
		}
	}
	b.lines, b.pairs, b.bytes = b.lines[:0], b.pairs[:0], 0
	return nil
}

// checkLine is the output of ibid check --json and --batch. Members may be added, but not renamed.
type checkLine struct {
	ID   json.RawMessage `json:"id,omitempty"` // as in the line; absent without --batch
	Line int             `json:"line,omitempty"`
	*support.Report

	Escalated bool               `json:"escalated"`
	Signals   map[string]float64 `json:"signals,omitempty"`
	Issues    []ibid.Issue       `json:"issues"`
	Error     *checkError        `json:"error,omitempty"`
}

type checkError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// newCheckLine returns the output for a verdict. Lists are never null.
func newCheckLine(p *support.Pair, v *support.Verdict) *checkLine {
	line := &checkLine{
		Report: v.Report(p), Escalated: v.Escalated, Signals: v.Signals, Issues: append([]ibid.Issue{}, v.Issues...),
	}
	if v.Err != nil {
		line.Error = &checkError{"unchecked", v.Err.Error()}
	}
	return line
}

func writeCheckLine(w io.Writer, line *checkLine) error {
	raw, err := wire.Encode(line)
	if err == nil {
		// Ids are written exactly as they were read.
		_, err = w.Write(append(bytes.ToValidUTF8(raw, []byte("\ufffd")), '\n'))
	}
	return err
}
