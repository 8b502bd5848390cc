package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// The limits of the trust of one call of verify.
const (
	MaxTrust   = 64  // entries
	MaxTrusted = 256 // bytes of one of them
)

const (
	// maxIncidents is how many failures of one report are recorded: the first ones.
	maxIncidents = 1000
	// keepFor bounds how long that may take.
	keepFor = 20 * time.Second
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

	level int
	raw   []byte // what is to be recognised; nil: URL or at says where it is
	at    string // the URL of a manifest
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
	if !m.verifying.TryAcquire(1) {
		return nil, refuse(fmt.Sprintf("%d verifications are being made at the moment", MaxVerifying), "try again in a moment")
	}
	defer m.verifying.Release(1)
	v := m.verifier(c.tenant)
	defer func() { _ = v.Close() }() // what it began itself is all that this ends
	v.Trust = append(slices.Clone(v.Trust), args.Trust...)
	v.RequireLevel = max(v.RequireLevel, args.level)
	v.Offline = v.Offline || args.Offline
	v.SourceTTL, v.FailureTTL = time.Nanosecond, time.Nanosecond // somebody asks how it is now, and what is found out is remembered
	v.Progress = func(p verify.Progress) {
		c.progress(cut(fmt.Sprintf("%s %d of %d: %s", p.Stage, p.Done, p.Total, p.URL)))
	}
	report, err := args.report(ctx, v)
	if err != nil {
		return nil, args.failed(ctx, err)
	}
	m.record(ctx, c.tenant, report)
	var summary strings.Builder
	if err := report.WriteText(&summary, false); err != nil {
		return nil, fmt.Errorf("write a report: %w", err)
	}
	return &result{summary.String(), showReport(report, args.Report)}, nil
}

// check says what is wrong with the arguments, and finds what is to be verified.
func (a *verifyArgs) check() error {
	var err error
	if a.level, err = number("require_level", a.RequireLevel, 0, 0, 3); err != nil {
		return err
	}
	if len(a.Trust) > MaxTrust {
		return refuse(fmt.Sprintf("trust: it has more than %d entries", MaxTrust), "host names, or ids of keys")
	}
	for _, one := range a.Trust {
		if one == "" || len(one) > MaxTrusted || strings.ContainsFunc(one, unicode.IsControl) {
			return refuse(fmt.Sprintf("trust: %q is neither a host nor the id of a key", cut(one)), "agent.example, or the key_id of a report")
		}
	}
	given := 0
	for _, thing := range [][]byte{[]byte(a.URL), a.Manifest, a.Document, []byte(a.Response)} {
		if len(thing) > 0 && !bytes.Equal(thing, []byte("null")) {
			given++
		}
	}
	if given != 1 && (given != 2 || a.URL == "" || a.Response == "") {
		return refuse("one thing is to be verified at a time", "give one of url, manifest, document and response; a response may have its url besides")
	}
	return a.find()
}

// find finds what is to be verified.
func (a *verifyArgs) find() error {
	switch {
	case a.Response != "":
		a.raw = []byte(a.Response)
	case isObject(a.Document):
		a.raw = a.Document
	case isObject(a.Manifest):
		a.raw = a.Manifest
	case json.Unmarshal(a.Manifest, &a.at) == nil && a.at != "", a.URL != "":
	default:
		return refuse("manifest and document must be JSON objects", "a manifest may be its URL, too")
	}
	for name, address := range map[string]string{"url": a.URL, "manifest": a.at} {
		if len(address) > manifest.MaxURL || strings.ContainsFunc(address, unicode.IsControl) {
			return refuse(fmt.Sprintf("%s: it is no address of up to %d characters", name, manifest.MaxURL), "https://…")
		}
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

// report makes the report.
func (a *verifyArgs) report(ctx context.Context, v *verify.Verifier) (*verify.Report, error) {
	switch {
	case a.raw != nil:
		return v.Bytes(ctx, a.raw, &verify.BytesOptions{URL: a.URL})
	case a.at != "":
		return v.Manifest(ctx, a.at)
	}
	return v.URL(ctx, a.URL)
}

// failed says why there is no report: mostly what was given cannot be read.
func (a *verifyArgs) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil || a.raw == nil {
		return fmt.Errorf("verify: %w", err)
	}
	plain := &verify.Verifier{Offline: true}
	defer func() { _ = plain.Close() }()
	if _, why := plain.Bytes(ctx, a.raw, nil); why != nil && ctx.Err() == nil {
		return refuse(cut(strings.TrimPrefix(why.Error(), "verifying: ")), "a response needs its header, as curl -i prints it")
	}
	return fmt.Errorf("verify: %w", err)
}

// record keeps what failed, as other ways to verify do. The report is good without it.
func (m *MCP) record(ctx context.Context, tenant string, report *verify.Report) {
	incidents := verify.Incidents(report)
	if m.store == nil || len(incidents) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepFor) // it is known now, also if who asked has left
	defer cancel()
	_, err := m.store.AddIncidents(ctx, tenant, incidents[:min(len(incidents), maxIncidents)])
	if err != nil && !errors.Is(err, store.ErrLimit) {
		m.logger.LogAttrs(ctx, slog.LevelWarn, "the failures of a report were not recorded", slog.Any("error", err))
	}
}

func showReport(r *verify.Report, whole bool) *verified {
	out := &verified{
		State: r.State, Why: r.Why(), Next: orNull(r.Next()), CheckedAt: r.CheckedAt, Failures: append([]verify.Finding{}, r.Failure...),
		Unverifiable: []verify.Finding{}, Claims: []verifiedClaim{},
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
			claim.Sources = append(claim.Sources, verifiedSource{s.URL, orNull(s.Title), s.Result.Status, s.Result.Counts, orNull(s.Result.Note)})
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
