package support

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/snapshot"
)

// GivenClaim is a claim to check as JSON: a line of `ibid check --batch`, or the body of POST /v1/check or a line of
// it.
type GivenClaim struct {
	ID      json.RawMessage `json:"id"` // any value, which the result repeats
	Claim   *string         `json:"claim" required:""`
	Context string          `json:"context"` // explains what the claim refers to; it is never evidence
	// texts that together may support it; one of passages and sources is needed
	Passages GivenTexts `json:"passages"`
	Sources  GivenTexts `json:"sources"` // whole texts, which are cut into passages
	// passages of other sources: named if they say the claim and its own do not
	Others GivenTexts `json:"others"`
}

// ReadClaim reads a claim. Strict refuses unknown members. Its errors name the member.
func ReadClaim(data []byte, strict bool) (*GivenClaim, error) {
	q := &GivenClaim{}
	var members struct {
		ID       json.RawMessage `json:"id"`
		Claim    *string         `json:"claim"`
		Context  string          `json:"context"`
		Passages json.RawMessage `json:"passages"`
		Sources  json.RawMessage `json:"sources"`
		Others   json.RawMessage `json:"others"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if strict {
		d.DisallowUnknownFields()
	}
	err := json.Unmarshal(data, &json.RawMessage{}) // the decoder ignores what follows the value
	if err == nil {
		err = d.Decode(&members)
	}
	q.ID, q.Claim, q.Context = members.ID, members.Claim, members.Context
	if err != nil {
		return q, claimError("a claim", err)
	}
	if q.Claim == nil {
		return q, errors.New("claim: missing")
	}
	for _, list := range []struct {
		name string
		raw  json.RawMessage
		into *GivenTexts
	}{
		{"passages", members.Passages, &q.Passages},
		{"sources", members.Sources, &q.Sources},
		{"others", members.Others, &q.Others},
	} {
		if len(list.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(list.raw, list.into); err != nil {
			return q, claimError(list.name, err)
		}
		if err := list.into.Check(); err != nil {
			return q, fmt.Errorf("%s: %w", list.name, err)
		}
	}
	if q.Passages == nil && q.Sources == nil {
		return q, errors.New("passages: missing, and so are sources")
	}
	return q, nil
}

// claimError returns an error of encoding/json without its words about Go. Of is what was read.
func claimError(of string, err error) error {
	if errors.As(err, new(*json.SyntaxError)) {
		return fmt.Errorf("not JSON: %w", err)
	}
	kind, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return fmt.Errorf("%s: %s", of, strings.TrimPrefix(err.Error(), "json: "))
	}
	want := map[reflect.Kind]string{reflect.String: "a string", reflect.Slice: "an array"}[kind.Type.Kind()]
	return fmt.Errorf(
		"%s: must not be a JSON %s: want %s", cmp.Or(kind.Field, of), kind.Value, cmp.Or(want, "an object"))
}

// ClaimVerdict is the verdict on a claim as JSON: the output of `ibid check --json`, a line of that of --batch, and the
// response of POST /v1/check. Members may be added, but not renamed.
type ClaimVerdict struct {
	ID   json.RawMessage `json:"id,omitempty"`   // as in the request
	Line int             `json:"line,omitempty"` // of the input, from 1; absent if it is not lines
	*Report

	Escalated bool               `json:"escalated"` // a judge was asked
	Signals   map[string]float64 `json:"signals,omitempty"`
	Issues    []ibid.Issue       `json:"issues"`
	Error     *ClaimError        `json:"error,omitempty"`
}

// ClaimError is why a claim could not be checked.
type ClaimError struct {
	Code    string `json:"code"` // unreadable, too-large or unchecked
	Message string `json:"message"`
}

// NewClaimVerdict returns a verdict as JSON. Lists are never null.
func NewClaimVerdict(p *Pair, v *Verdict) *ClaimVerdict {
	r := &ClaimVerdict{
		Report: v.Report(p), Escalated: v.Escalated, Signals: v.Signals, Issues: append([]ibid.Issue{}, v.Issues...),
	}
	if v.Err != nil {
		r.Error = &ClaimError{"unchecked", v.Err.Error()}
	}
	return r
}

// Encode returns the report as a line of JSON.
func (r *ClaimVerdict) Encode() ([]byte, error) {
	raw, err := wire.Encode(r)
	if err != nil {
		return nil, fmt.Errorf("writing a verdict: %w", err)
	}
	// Ids are written exactly as they were read.
	return append(bytes.ToValidUTF8(raw, []byte("\ufffd")), '\n'), nil
}

// Claims are claims to check together, in order. Some may be only an error.
type Claims struct {
	reports []*ClaimVerdict // those with an error are not checked
	pairs   []Pair          // of the others
	from    [][]cut         // of the last passages of each pair: those cut from sources
}

// Len returns how many there are, and how many of them are to be checked.
func (c *Claims) Len() (all, checked int) { return len(c.reports), len(c.pairs) }

// Add adds a claim.
func (c *Claims) Add(q *GivenClaim) { c.add(q, &ClaimVerdict{ID: q.ID}) }

func (c *Claims) add(q *GivenClaim, report *ClaimVerdict) {
	pair := Pair{Claim: *q.Claim, Context: q.Context, Passages: q.Passages.passages(), Others: q.Others.passages()}
	pieces, from := q.Sources.cut()
	pair.Passages = append(pair.Passages, pieces...)
	c.reports, c.pairs, c.from = append(c.reports, report), append(c.pairs, pair), append(c.from, from)
}

// AddLine adds the claim in a line of JSON with a number, or what is wrong with it. Bytes that are not UTF-8 are
// reported, as they would vanish silently.
func (c *Claims) AddLine(data []byte, number int) {
	var issues []ibid.Issue
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
		issues = []ibid.Issue{{
			Code:   snapshot.IssueInvalidUTF8,
			Detail: "bytes that are not UTF-8 were replaced with replacement characters",
		}}
	}
	q, err := ReadClaim(data, false)
	report := &ClaimVerdict{ID: q.ID, Line: number, Issues: issues}
	if report.ID == nil {
		report.ID = json.RawMessage("null")
	}
	if err != nil {
		report.Error = &ClaimError{"unreadable", err.Error()}
		c.reports = append(c.reports, report)
		return
	}
	c.add(q, report)
}

// AddTooLarge adds a line that was not read because it is too long.
func (c *Claims) AddTooLarge(number int, why error) {
	c.reports = append(c.reports, &ClaimVerdict{
		ID: json.RawMessage("null"), Line: number, Error: &ClaimError{"too-large", why.Error()},
	})
}

// Check checks the claims and returns a report on each. If the checker fails, each report says so; the error is only
// that of ctx.
func (c *Claims) Check(ctx context.Context, checker Checker) ([]*ClaimVerdict, error) {
	verdicts, err := CheckPairs(ctx, RightSource(checker), c.pairs)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("checking claims: %w", err)
	}
	next := 0
	for i, given := range c.reports {
		pair, verdict, why := &Pair{}, &Verdict{Label: Unchecked}, given.Error
		var from []cut
		switch {
		case why != nil:
		case err != nil:
			why = &ClaimError{"unchecked", err.Error()}
		default:
			pair, verdict, from = &c.pairs[next], &verdicts[next], c.from[next]
		}
		if given.Error == nil {
			next++
		}
		report := NewClaimVerdict(pair, verdict)
		for k := range report.Evidence {
			placeInSource(&report.Evidence[k], len(pair.Passages)-len(from), from)
		}
		report.ID, report.Line, report.Error = given.ID, given.Line, cmp.Or(why, report.Error)
		report.Issues = append(append([]ibid.Issue{}, given.Issues...), report.Issues...) // never null
		c.reports[i] = report
	}
	return c.reports, nil
}

// placeInSource names the source of a piece of evidence in a passage that was cut from one, and has its offsets in the
// source's text. The first passages were not cut.
func placeInSource(e *ReportEvidence, first int, from []cut) {
	if e.Passage < first || e.Passage-first >= len(from) {
		return
	}
	in := &from[e.Passage-first]
	span := in.piece.Place(in.from.Text, ibid.Span{Start: e.Start, End: e.End})
	e.Source, e.Start, e.End, e.Text = &in.name, span.Start, span.End, in.from.Text[span.Start:span.End]
}
