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
	// verifyFor bounds how long one verification may take.
	verifyFor = 60 * time.Second
	// tryAgain is when a caller is told to come again.
	tryAgain = 5 * time.Second
	// maxVerifying is how many are made at the same time, for all callers. A tenant may have half of them.
	maxVerifying = 8
	// maxTrust and maxTrusted are how many entries a request's trust may have, and how long one may be, in bytes.
	maxTrust   = 64
	maxTrusted = 256
	// maxIncidents is how many failures of one report are recorded: the first ones.
	maxIncidents = 1000
	// maxAge is how old, in seconds, what is known of a source may be at most: a day.
	maxAge = 24 * 60 * 60
	// maxFailureAge is how old it may be at most where the source did not pass: it may have been mended.
	maxFailureAge = 15 * time.Minute
)

// Verification says what [API.Verify] verifies.
type Verification struct {
	// of an answer or of a manifest; with a response, where that came from.
	URL string `json:"url"`
	// the host names and key ids whose signatures are trusted, at most 64. With none nothing is trusted.
	Trust []string `json:"trust"`
	// nothing is fetched: only what a bundle has, or the tenant's copies, can be verified.
	Offline bool `json:"offline"`
	// how old, in seconds, a result about a source may be that is not looked up again; one that did not pass
	// counts for 15 minutes. 0: every source is read now.
	MaxAge int64 `json:"max_age"`
	// a level from 1 to 3: less is a failure. 0: any will do.
	RequireLevel int `json:"require_level"`

	// Text is a manifest, a stored bundle, an answer document, or a response as curl -i prints it; nil: URL is fetched.
	Text []byte `json:"-"`
	// Progress, if not nil, is told how far it is, as [verify.Verifier].Progress.
	Progress func(verify.Progress) `json:"-"`
}

// verifyOrder says what is to be verified, and how.
type verifyOrder struct {
	Verification

	// an answer document: its quotes are verified, which nobody signed.
	Document json.RawMessage `json:"document"`
	// a manifest, or a string: its URL.
	Manifest json.RawMessage `json:"manifest"`
	// a manifest as it was stored, with all that belongs to it.
	Bundle json.RawMessage `json:"bundle"`
	// what curl -i prints: status line, header, body, trailer.
	Response string `json:"response"`
	// whether a model is asked if an excerpt supports its claim; true: there must be one. Null: if there is one.
	Judge *bool `json:"judge"`
}

// orderMembers are the members of an order as JSON. Nothing else that can be verified is made of them only.
var orderMembers = strings.Fields(
	"url document manifest bundle response trust offline max_age require_level judge")

// verify verifies what the body has or names, and answers with the report.
func (a *API) verify(w *httpx.Reply, r *httpx.Request) error {
	if err := a.canVerify(); err != nil {
		return err
	}
	body, release, err := a.bodies.Read(w, r, maxDecode)
	if err != nil {
		return err
	}
	defer release()
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

// Verify does what POST /v1/verify does, within its bounds: it verifies, records what failed, and keeps what was found
// about the tenant's own citations. What the caller did wrong is a [gateway.Problem].
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

// Report verifies as [API.Verify] does, where there is no API: with by, which it changes to what v says and closes, and
// no longer than a minute. Nothing is kept.
func Report(ctx context.Context, by *verify.Verifier, v *Verification) (*verify.Report, error) {
	o, err := v.order()
	if err != nil {
		return nil, err
	}
	return o.report(ctx, by)
}

// order returns what a request would say.
func (v *Verification) order() (*verifyOrder, error) {
	o := &verifyOrder{Verification: *v}
	if v.Text == nil && v.URL == "" {
		return nil, httpx.BadRequest(
			"nothing is said that could be verified", "a URL, a manifest, an answer document, or what curl -i printed",
		)
	}
	return o, o.check()
}

func (a *API) canVerify() error {
	if a.o.Verifier == nil {
		return gateway.NewProblem(
			gateway.CodeNotFound, "nothing is verified here", "`ibid verify` does so without a server")
	}
	return nil
}

// verified makes the report of an order, unless too many are being made, and keeps what it says.
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
		tryAgain, fmt.Sprintf("%d verifications are being made at the moment", n), "try again in a moment")
}

// readOrder reads what is to be verified: an order, or with parameters the thing itself.
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
		return nil, httpx.BadRequest("the body is empty", `send {"url": "https://…"}, or what curl -i printed`)
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
			"the query parameters go with a body that is no such object",
			"what they say is a member of the object, too",
		)
	default:
		err = o.read(body)
	}
	if err != nil {
		return nil, err
	}
	return o, o.check()
}

// verifyParams are the parameters of a body that is the thing itself.
func verifyParams() []httpx.Param {
	return append(
		httpx.Texts("url: where the response came from", "trust: whose signatures are trusted, separated by commas"),
		httpx.OneOf("offline: nothing is fetched", "false", "true"),
		httpx.Number("max_age: how old, in seconds, what is known of a source may be", 0, 0, maxAge),
		httpx.Number("require_level: less than this level is a failure", 0, 0, 3),
		httpx.AnyOf("judge: whether a model is asked if an excerpt supports its claim", "false", "true"))
}

// read reads an order, in which one thing is to be verified.
func (o *verifyOrder) read(body []byte) error {
	if err := json.Unmarshal(body, o); err != nil {
		why := "it has a member of another type than it must be"
		if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			name := strings.TrimPrefix(kind.Field, "Verification.") // the embedded struct is no member
			why = fmt.Sprintf("%s: it must not be a JSON %s", httpx.Said(name), kind.Value)
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
			"one thing is to be verified at a time",
			`it has one of url, document, manifest, bundle and response; a response may have its url besides`,
		)
	}
	return nil
}

// check says what is wrong with the limits of an order.
func (o *verifyOrder) check() error {
	switch {
	case o.RequireLevel < 0 || o.RequireLevel > 3:
		return httpx.BadRequest(
			"require_level: there is no level "+strconv.Itoa(o.RequireLevel),
			"it is 0, which demands nothing, 1, 2 or 3",
		)
	case o.MaxAge < 0 || o.MaxAge > maxAge:
		return httpx.BadRequest(
			"max_age: it is "+strconv.FormatInt(o.MaxAge, 10),
			fmt.Sprintf("seconds, from 0, which looks at every source now, to %d", maxAge),
		)
	case len(o.Trust) > maxTrust:
		return httpx.BadRequest(
			fmt.Sprintf("trust: it has more than %d entries", maxTrust), "host names, or ids of keys")
	}
	for _, one := range o.Trust {
		if one == "" || len(one) > maxTrusted || !httpx.IsClean(one) {
			return httpx.BadRequest(
				fmt.Sprintf("trust: %q is neither a host nor the id of a key", httpx.Said(one)),
				"agent.example, or the key_id of a report",
			)
		}
	}
	for name, address := range map[string]string{"url": o.URL, "manifest": string(o.Manifest)} {
		if len(address) > manifest.MaxURL || !httpx.IsClean(address) {
			return httpx.BadRequest(
				fmt.Sprintf("%s: it is no address of up to %d characters", name, manifest.MaxURL),
				"https://…",
			)
		}
	}
	return nil
}

// report makes the report of an order with a verifier, which it closes.
func (o *verifyOrder) report(asked context.Context, v *verify.Verifier) (*verify.Report, error) {
	defer func() { _ = v.Close() }() // what it began itself is all that this ends
	v.Trust = append(slices.Clone(v.Trust), o.Trust...)
	v.Offline, v.Progress = v.Offline || o.Offline, o.Progress
	age := max(time.Duration(o.MaxAge)*time.Second, time.Nanosecond) // never 0, so that what is found out is remembered
	v.SourceTTL, v.FailureTTL = age, min(age, maxFailureAge)
	v.RequireLevel = max(v.RequireLevel, o.RequireLevel)
	if o.Judge != nil && *o.Judge && v.Judge == nil {
		return nil, httpx.BadRequest(
			"judge: there is none here",
			"without it nobody says of an excerpt that is there that it does not support its claim",
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
		p.Hint = "try again with max_age, as what was found out about sources is remembered; " +
			"`ibid verify` takes as long as it needs"
		p.Header.Set("Retry-After", strconv.Itoa(int(tryAgain.Seconds())))
		return nil, p
	case errors.Is(err, verify.ErrInput):
		return nil, &http.MaxBytesError{Limit: maxDecode}
	}
	if o.Text != nil { // can it be read, and something else was wrong?
		plain := &verify.Verifier{Offline: true}
		defer func() { _ = plain.Close() }()
		if _, why := plain.Bytes(asked, o.Text, nil); why != nil {
			return nil, unreadable(
				why.Error(),
				`send {"url": "https://…"}, a manifest, a stored bundle, an answer document, or what curl -i printed`,
			)
		}
	}
	return nil, httpx.StoreError("verify", err)
}

// keepReport records what failed, and what was found about the tenant's own answers.
func (a *API) keepReport(asked context.Context, tenant string, report *verify.Report) error {
	// It is known now, also if who asked has left.
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
		case errors.Is(err, store.ErrLimit): // of what the manifest says; the report has it all the same
			a.logger.LogAttrs(ctx, slog.LevelWarn, "the failures of a report were not recorded", slog.Any("error", err))
		case err != nil:
			return httpx.StoreError("record what failed", err)
		}
	}
	statuses, err := a.ownStatuses(ctx, tenant, report)
	if err == nil {
		err = a.store.SetStatuses(ctx, tenant, statuses)
	}
	if err != nil {
		return httpx.StoreError("keep what came of a check", err)
	}
	if len(incidents)+len(statuses) > 0 {
		a.o.Bus.Wake()
	}
	return nil
}

// ownStatuses returns what a report says of the citations that the tenant's own manifests are of, by their pins.
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

// ownPins collects what becomes of a tenant's pins.
type ownPins struct {
	store    *store.Store
	tenant   string
	pins     map[string][]store.Pin // by address
	statuses []store.PinStatus
}

// add takes up what was found about a claim of the manifest with that SHA-256.
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
				continue // it is another source of the claim, or another excerpt
			}
			detail, err := json.Marshal(&found.Result)
			if err != nil {
				return fmt.Errorf("write what came of a check: %w", err)
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

// reasonLimit is the reason of a source that was not read because the verification had read enough: it says nothing of
// the source.
const reasonLimit = "limit"

// incidents lists what failed, the last that was recorded first.
func (a *API) incidents(ctx context.Context, r *httpx.Request) (*store.Page[verify.Incident], error) {
	p := r.Params
	sum := strings.TrimPrefix(p.Get("manifest"), "sha256:")
	if b, err := hex.DecodeString(sum); sum != "" && (err != nil || len(b) != 32) {
		return nil, httpx.BadRequest("manifest: it is not the SHA-256 of a manifest's body",
			"64 hexadecimal digits, with or without sha256:")
	}
	return a.store.Incidents(ctx, r.Who.Tenant, &store.IncidentQuery{
		Manifest: strings.ToLower(sum), Source: p.Get("source"), Status: p.Get("status"), AnswerID: p.Get("answer"),
		Cursor: p.Get("cursor"), Limit: p.Int("limit"),
	})
}
