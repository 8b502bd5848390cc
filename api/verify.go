package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

const (
	// verifyFor bounds one verification.
	verifyFor = 60 * time.Second
	// tryAgain is the Retry-After of a refused verification.
	tryAgain = 5 * time.Second
	// maxVerifying is the number of verifications at a time, over all tenants. A tenant may have half of them.
	maxVerifying = 8
	// maxTrust is the number of entries in a request's trust, maxTrusted the length of one in bytes.
	maxTrust   = 64
	maxTrusted = 256
	// maxIncidents is how many failures of one report are recorded.
	maxIncidents = 1000
	// maxAge is the largest max_age, in seconds: a day.
	maxAge = 24 * 60 * 60
	// maxFailureAge bounds the age of a result that is not a pass: the source may have been fixed.
	maxFailureAge = 15 * time.Minute
)

// Verification is the input of [API.Verify].
type Verification struct {
	// the URL of an answer or of a manifest; with a response, where the response came from.
	URL string `json:"url"`
	// the host names and key ids whose signatures are trusted, at most 64. Nothing is trusted if it is empty.
	Trust []string `json:"trust"`
	// nothing is fetched: only the contents of a bundle, or the tenant's copies, can be verified.
	Offline bool `json:"offline"`
	// how old, in seconds, a result about a source may be to be reused; one that did not pass is reused for 15 minutes
	// at most. With 0 every source is fetched.
	MaxAge int64 `json:"max_age"`
	// the lowest acceptable level, 1 to 3: a lower one is a failure. 0 accepts any.
	RequireLevel int `json:"require_level"`

	// Text is a manifest, a stored bundle, an answer document, or a response as curl -i prints it. If nil, URL is
	// fetched.
	Text []byte `json:"-"`
	// Progress, if not nil, is called as [verify.Verifier].Progress is.
	Progress func(verify.Progress) `json:"-"`
}

// verifyOrder is the body of a verification request.
type verifyOrder struct {
	Verification

	// an answer document: its quotes are verified, though nothing signs them.
	Document json.RawMessage `json:"document"`
	// a manifest, or its URL as a string.
	Manifest json.RawMessage `json:"manifest"`
	// a stored manifest with everything that belongs to it.
	Bundle json.RawMessage `json:"bundle"`
	// a response as curl -i prints it: status line, header, body, trailer.
	Response string `json:"response"`
	// whether a model decides if an excerpt supports its claim. True requires one to be configured; null uses one if it
	// is.
	Judge *bool `json:"judge"`
}

// orderMembers are the members of an order. No other input that can be verified consists of these alone.
var orderMembers = strings.Fields(
	"url document manifest bundle response trust offline max_age require_level judge")

// The memory of a verification in bytes: for what it fetches and compares, and for each byte of what it is given.
const (
	verifyBase   = 8 << 20
	verifyMemory = 4
)

// verify verifies what the body contains or names, and returns the report.
func (a *API) verify(w *httpx.Reply, r *httpx.Request) error {
	if err := a.canVerify(); err != nil {
		return err
	}
	body, release, err := a.bodies.Read(w, r, maxDecode)
	if err != nil {
		return err
	}
	defer release()
	verifying, err := a.bodies.HoldWork(r.Who, len(body)+verifyBase/verifyMemory, verifyMemory)
	if err != nil {
		return err
	}
	defer verifying()
	order, err := readOrder(body, r.Params)
	if err != nil {
		return err
	}
	report, err := a.verified(r.Context(), r.Who.Tenant, order)
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, report)
}

// Verify does what POST /v1/verify does, within the same limits: it verifies, records failures, and stores the results
// for the tenant's own citations. A mistake of the caller is a [gateway.Problem].
func (a *API) Verify(ctx context.Context, tenant string, v *Verification) (*verify.Report, error) {
	if err := a.canVerify(); err != nil {
		return nil, err
	}
	o, err := v.order()
	if err != nil {
		return nil, err
	}
	return a.verified(ctx, tenant, o)
}

// Report verifies as [API.Verify] does, but without an API: it uses by, which it configures from v and closes, takes at
// most a minute, and stores nothing.
func Report(ctx context.Context, by *verify.Verifier, v *Verification) (*verify.Report, error) {
	o, err := v.order()
	if err != nil {
		return nil, err
	}
	return o.report(ctx, by)
}

// order returns the equivalent request.
func (v *Verification) order() (*verifyOrder, error) {
	o := &verifyOrder{Verification: *v}
	if v.Text == nil && v.URL == "" {
		return nil, httpx.BadRequest(
			"there is nothing to verify", "give a URL, a manifest, an answer document, or the output of curl -i",
		)
	}
	return o, o.check()
}

func (a *API) canVerify() error {
	if a.o.Verifier == nil {
		return gateway.NewProblem(
			gateway.CodeNotFound, "verification is not available here", "`ibid verify` works without a server")
	}
	return nil
}

// verified returns the report of an order, unless too many are running, and stores its results.
func (a *API) verified(ctx context.Context, tenant string, o *verifyOrder) (*verify.Report, error) {
	done, ok := a.verifiers.Take(tenant)
	if !ok {
		return nil, tooManyVerifying(a.verifiers.Most)
	}
	defer done()
	if !a.verifying.TryAcquire(1) {
		return nil, tooManyVerifying(maxVerifying)
	}
	defer a.verifying.Release(1)
	report, err := o.report(ctx, a.o.Verifier(tenant))
	if err == nil {
		err = a.keepReport(ctx, tenant, report)
	}
	if err != nil {
		return nil, err
	}
	return report, nil
}

func tooManyVerifying(n int) error {
	return gateway.TooMany(
		tryAgain, fmt.Sprintf("%d verifications are already running", n), "try again in a moment")
}

// readOrder reads an order, or else the thing to verify itself, with the options as query parameters.
func readOrder(body []byte, p httpx.Params) (*verifyOrder, error) {
	o := &verifyOrder{}
	var members map[string]json.RawMessage
	isOrder := json.Unmarshal(body, &members) == nil && members != nil
	for name := range members {
		isOrder = isOrder && slices.Contains(orderMembers, name)
	}
	var err error
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return nil, httpx.BadRequest("the body is empty", `send {"url": "https://…"}, or the output of curl -i`)
	case !isOrder:
		o.Text, o.URL, o.Offline = body, p.Get("url"), p.Get("offline") == "true"
		o.MaxAge, o.RequireLevel = int64(p.Int("max_age")), p.Int("require_level")
		if p.Has("judge") {
			o.Judge = new(p.Get("judge") == "true")
		}
		if p.Has("trust") {
			o.Trust = strings.Split(p.Get("trust"), ",")
		}
	case len(p.Given()) > 0:
		err = httpx.BadRequest(
			"query parameters cannot be combined with an object like this",
			"give them as members of the object",
		)
	default:
		err = o.read(body)
	}
	if err != nil {
		return nil, err
	}
	return o, o.check()
}

// verifyParams are the query parameters for a body that is itself the thing to verify.
func verifyParams() []httpx.Param {
	return append(
		httpx.Texts(
			"url: the URL that the response came from", "trust: trusted host names and key ids, separated by commas"),
		httpx.OneOf("offline: fetch nothing", "false", "true"),
		httpx.Number("max_age: how old, in seconds, a result about a source may be", 0, 0, maxAge),
		httpx.Number("require_level: the lowest acceptable level; 0 accepts any", 0, 0, 3),
		httpx.AnyOf("judge: whether a model decides if an excerpt supports its claim", "false", "true"))
}

// read reads an order with exactly one thing to verify.
func (o *verifyOrder) read(body []byte) error {
	if err := json.Unmarshal(body, o); err != nil {
		why := "a member has the wrong type"
		if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			name := strings.TrimPrefix(kind.Field, "Verification.") // the embedded struct is not a member
			why = fmt.Sprintf("%s: must not be a JSON %s", httpx.Said(name), kind.Value)
		}
		return httpx.BadRequest(why, "docs/http.md lists the members")
	}
	given := 0
	for _, thing := range [][]byte{o.Document, o.Manifest, o.Bundle, []byte(o.Response)} {
		if len(thing) > 0 && !bytes.Equal(thing, []byte("null")) {
			o.Text = thing
			given++
		}
	}
	var address string
	if json.Unmarshal(o.Manifest, &address) == nil && address != "" {
		o.Manifest, o.Text = []byte(address), nil
	} else {
		o.Manifest = nil
	}
	if given > 1 || given == 1 && o.Response == "" && o.URL != "" || given == 0 && o.URL == "" {
		return httpx.BadRequest(
			"verify one thing at a time",
			`give one of url, document, manifest, bundle and response; a response may also have its url`,
		)
	}
	return nil
}

// check reports which option of an order is invalid.
func (o *verifyOrder) check() error {
	switch {
	case o.RequireLevel < 0 || o.RequireLevel > 3:
		return httpx.BadRequest(
			"require_level: there is no level "+strconv.Itoa(o.RequireLevel),
			"use 1, 2 or 3, or 0 to accept any",
		)
	case o.MaxAge < 0 || o.MaxAge > maxAge:
		return httpx.BadRequest(
			"max_age: out of range: "+strconv.FormatInt(o.MaxAge, 10),
			fmt.Sprintf("seconds, from 0, which fetches every source, to %d", maxAge),
		)
	case len(o.Trust) > maxTrust:
		return httpx.BadRequest(
			fmt.Sprintf("trust: more than %d entries", maxTrust), "give host names or key ids")
	}
	for _, one := range o.Trust {
		if one == "" || len(one) > maxTrusted || !httpx.IsClean(one) {
			return httpx.BadRequest(
				fmt.Sprintf("trust: %q is neither a host nor a key id", httpx.Said(one)),
				"give agent.example, or the key_id from a report",
			)
		}
	}
	for name, address := range map[string]string{"url": o.URL, "manifest": string(o.Manifest)} {
		if len(address) > manifest.MaxURL || !httpx.IsClean(address) {
			return httpx.BadRequest(
				fmt.Sprintf("%s: not a URL of up to %d characters", name, manifest.MaxURL),
				"https://…",
			)
		}
	}
	return nil
}

// report returns the report of an order made with a verifier, which it closes.
func (o *verifyOrder) report(asked context.Context, v *verify.Verifier) (*verify.Report, error) {
	defer func() { _ = v.Close() }() // ends only what the verifier started itself
	v.Trust = append(slices.Clone(v.Trust), o.Trust...)
	v.Offline, v.Progress = v.Offline || o.Offline, o.Progress
	age := max(time.Duration(o.MaxAge)*time.Second, time.Nanosecond) // never 0, so that results are cached
	v.SourceTTL, v.FailureTTL = age, min(age, maxFailureAge)
	v.RequireLevel = max(v.RequireLevel, o.RequireLevel)
	if o.Judge != nil && *o.Judge && v.Judge == nil {
		return nil, httpx.BadRequest(
			"judge: none is configured",
			"without one, an excerpt that is present is not checked for whether it supports its claim",
		)
	}
	if o.Judge != nil && !*o.Judge {
		v.Judge = nil
	}
	ctx, cancel := context.WithTimeout(asked, verifyFor)
	defer cancel()
	var report *verify.Report
	var err error
	switch {
	case o.Text != nil:
		report, err = v.Bytes(ctx, o.Text, &verify.BytesOptions{URL: o.URL})
	case len(o.Manifest) > 0:
		report, err = v.Manifest(ctx, string(o.Manifest))
	default:
		report, err = v.URL(ctx, o.URL)
	}
	switch {
	case err == nil:
		return report, nil
	case asked.Err() != nil:
		return nil, asked.Err()
	case ctx.Err() != nil:
		p := gateway.Unavailable(fmt.Sprintf("the verification took longer than %v", verifyFor))
		p.Hint = "try again with max_age, which reuses results found so far; " +
			"`ibid verify` takes as long as it needs"
		p.Header.Set("Retry-After", strconv.Itoa(int(tryAgain.Seconds())))
		return nil, p
	case errors.Is(err, verify.ErrInput):
		return nil, &http.MaxBytesError{Limit: maxDecode}
	}
	if o.Text != nil { // is the input unreadable, or was something else wrong?
		plain := &verify.Verifier{Offline: true}
		defer func() { _ = plain.Close() }()
		if _, why := plain.Bytes(asked, o.Text, nil); why != nil {
			return nil, unreadable(
				why.Error(),
				`send {"url": "https://…"}, a manifest, a stored bundle, an answer document, or the output of curl -i`,
			)
		}
	}
	return nil, httpx.StoreError("verify", err)
}

// keepReport records failures, and stores the results for the tenant's own answers.
func (a *API) keepReport(asked context.Context, tenant string, report *verify.Report) error {
	// Store the results even if the caller has left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(asked), httpx.StoreTime)
	defer cancel()
	incidents := verify.Incidents(report)
	if len(incidents) > maxIncidents {
		a.logger.LogAttrs(
			ctx, slog.LevelWarn, "not all failures of a report were recorded",
			slog.Int("failures", len(incidents)),
			slog.Int("recorded", maxIncidents),
		)
		incidents = incidents[:maxIncidents]
	}
	if len(incidents) > 0 {
		switch _, err := a.store.AddIncidents(ctx, tenant, incidents); {
		case errors.Is(err, store.ErrLimit): // the manifest is at its limit; the caller still gets the report
			a.logger.LogAttrs(ctx, slog.LevelWarn, "failures of a report were not recorded", slog.Any("error", err))
		case err != nil:
			return httpx.StoreError("record what failed", err)
		}
	}
	statuses, err := a.ownStatuses(ctx, tenant, report)
	if err == nil {
		err = a.store.SetStatuses(ctx, tenant, statuses)
	}
	if err != nil {
		return httpx.StoreError("store the results of a check", err)
	}
	if len(incidents)+len(statuses) > 0 {
		a.o.Bus.Wake()
	}
	return nil
}

// ownStatuses returns the results of a report for citations in the tenant's own manifests, by their pins.
func (a *API) ownStatuses(ctx context.Context, tenant string, report *verify.Report) ([]store.PinStatus, error) {
	if a.publisher == nil || report.Offline {
		return nil, nil
	}
	own := &ownPins{store: a.store, tenant: tenant, pins: map[string][]store.Pin{}}
	for i := range report.Manifests {
		m := &report.Manifests[i]
		if m.Manifest == nil || !strings.HasPrefix(m.URL, a.publisher.URL("/runs/")) {
			continue
		}
		claims := m.Manifest.Claims
		for k := range report.Claims {
			c := &report.Claims[k]
			if c.Manifest != m.URL || len(claims) == 0 {
				continue
			}
			if err := own.add(ctx, m.SHA256, &claims[0], c); err != nil {
				return nil, err
			}
			claims = claims[1:]
		}
	}
	return own.statuses, nil
}

// ownPins collects new statuses of a tenant's pins.
type ownPins struct {
	store    *store.Store
	tenant   string
	pins     map[string][]store.Pin // by address
	statuses []store.PinStatus
}

// add collects the result for a claim of the manifest with the SHA-256 sum.
func (p *ownPins) add(ctx context.Context, sum string, claim *manifest.Claim, c *verify.ClaimReport) error {
	for i := range min(len(claim.Sources), len(c.Sources)) {
		cited, found := &claim.Sources[i], &c.Sources[i]
		url, err := snapshot.CleanURL(cited.URL)
		if err != nil || found.Result.Reason == reasonLimit {
			continue
		}
		want, err := json.Marshal(cited)
		if err != nil {
			return fmt.Errorf("write a source: %w", err)
		}
		pins, ok := p.pins[url]
		if !ok {
			if pins, err = p.store.Pins(ctx, p.tenant, url); err != nil {
				return err
			}
			p.pins[url] = pins
		}
		for k := range pins {
			pin := &pins[k]
			if pin.Digest != sum || pin.ClaimID != claim.ID || !pin.CheckedAt.Before(found.CheckedAt) {
				continue
			}
			if had, err := json.Marshal(&pin.Claim); err != nil || !bytes.Equal(had, want) {
				continue // another source of the claim, or another excerpt
			}
			detail, err := json.Marshal(&found.Result)
			if err != nil {
				return fmt.Errorf("encode the result of a check: %w", err)
			}
			p.statuses = append(p.statuses, store.PinStatus{
				ID:        pin.ID,
				Status:    found.Result.Status,
				Counts:    found.Result.Counts,
				CheckedAt: found.CheckedAt,
				Detail:    detail,
			})
		}
	}
	return nil
}

// reasonLimit is the reason of a source that was not fetched because the verification had reached its limit: it is no
// finding about the source.
const reasonLimit = "limit"

// incidents lists failures, most recently recorded first.
func (a *API) incidents(ctx context.Context, r *httpx.Request) (*store.Page[verify.Incident], error) {
	p := r.Params
	sum := strings.TrimPrefix(p.Get("manifest"), "sha256:")
	if b, err := hex.DecodeString(sum); sum != "" && (err != nil || len(b) != 32) {
		return nil, httpx.BadRequest("manifest: not the SHA-256 of a manifest's body",
			"64 hexadecimal digits, with or without sha256:")
	}
	return a.store.Incidents(ctx, r.Who.Tenant, &store.IncidentQuery{
		Manifest: strings.ToLower(sum), Source: p.Get("source"), Status: p.Get("status"), AnswerID: p.Get("answer"),
		Cursor: p.Get("cursor"), Limit: p.Int("limit"),
	})
}
