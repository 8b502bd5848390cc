package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/verify"
)

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

// verified is what verify gives back.
type verified struct {
	State        verify.State     `json:"state"`
	Why          string           `json:"why"`
	Next         *string          `json:"next"`
	CheckedAt    time.Time        `json:"checked_at"`
	Failures     []verify.Finding `json:"failures"`
	Unverifiable []verify.Finding `json:"unverifiable"`
	Claims       []verifiedClaim  `json:"claims"`
	Report       *verify.Report   `json:"report"`
}

type verifiedClaim struct {
	ID      string           `json:"claim_id"`
	Text    string           `json:"text"`
	Status  verify.Status    `json:"status"`
	Counts  verify.Counts    `json:"counts"`
	Sources []verifiedSource `json:"sources"`
}

type verifiedSource struct {
	URL    string        `json:"url"`
	Title  *string       `json:"title"`
	Status verify.Status `json:"status"`
	Counts verify.Counts `json:"counts"`
	Note   *string       `json:"note"`
}

// verify says whether what an agent published about its sources holds.
func (m *MCP) verify(ctx context.Context, c *call) (*result, error) {
	var args verifyArgs
	if err := readArgs(c.args, &args); err != nil {
		return nil, err
	}
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

// check finds what is to be verified, of which there must be one thing.
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
			"one thing is to be verified at a time",
			"give one of url, manifest, document and response; a response may have its url besides",
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
		return refuse("manifest and document must be JSON objects", "a manifest may be its URL, too")
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

func showReport(r *verify.Report, whole bool) *verified {
	out := &verified{
		State:        r.State,
		Why:          r.Why(),
		Next:         orNull(r.Next()),
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
		claim := verifiedClaim{c.ID, c.Text, c.Status, c.Counts, []verifiedSource{}}
		for k := range c.Sources {
			s := &c.Sources[k]
			claim.Sources = append(
				claim.Sources,
				verifiedSource{s.URL, orNull(s.Title), s.Result.Status, s.Result.Counts, orNull(s.Result.Note)},
			)
		}
		out.Claims = append(out.Claims, claim)
	}
	if whole {
		out.Report = r
	}
	return out
}

// orNull returns nil for what is not known.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
