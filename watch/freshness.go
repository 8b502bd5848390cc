package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

const (
	// recheckEvery is how often the store is asked for sources that are due.
	recheckEvery = time.Second
	// recheckAtOnce is how many sources are processed at a time. The fetcher limits those per host, so most of them may
	// wait.
	recheckAtOnce = 64
	// recheckFor bounds one check, including the time in queues; recheckLease is longer, so that no other node starts
	// earlier.
	recheckFor   = 4 * time.Minute
	recheckLease = 5 * time.Minute
	// recheckSoon is the delay before a source that was unreachable, or could not be compared, is fetched again; one
	// that the server refused is fetched on the usual schedule. The delay doubles with each failure in a row, up to
	// recheckLatest times the usual interval.
	recheckSoon   = 15 * time.Minute
	recheckLatest = 7
	// recheckPatience is how many times in a row a source must be unreachable before its citations are reported as
	// such. Until then the previous result stands: a network outage of an hour is no finding about them.
	recheckPatience = 3
	// usesAtOnce is the page size for answers that cite a source.
	usesAtOnce = 200
)

// FreshnessOptions are the options of [NewFreshness]. Store and Fetcher are required.
type FreshnessOptions struct {
	Store   *store.Store // opened with store.Options.Track
	Fetcher *snapshot.Fetcher
	Texts   *snapshot.Texts // caches texts; may be nil
	Checker support.Checker // finds evidence where there is no quote; nil means support.Lexical
	Every   time.Duration   // how often a source is fetched, give or take a random tenth; 0 if only by FirstCheck
	// Wake signals that there are events to relay, like bus.Bus.Wake. If it is nil, they are found later.
	Wake func()
	// Verifier and Version identify this ibid in incidents. Origin is the origin of its manifests,
	// https://agent.example; empty if there is none.
	Verifier, Version, Origin string
	Logger                    *slog.Logger          // nil disables logging
	Metrics                   prometheus.Registerer // nil disables metrics
}

// Freshness fetches cited sources again on a schedule. What it fetches becomes a version of the source and is compared
// with the basis of each citation; the result is the citation's verification, and failures become incidents. It honours
// robots.txt. Several nodes can share the work.
type Freshness struct {
	options   FreshnessOptions
	log       *slog.Logger
	checks    *prometheus.CounterVec
	incidents prometheus.Counter
}

// NewFreshness checks the options. It starts nothing: see [Freshness.Run].
func NewFreshness(o *FreshnessOptions) (*Freshness, error) {
	if o == nil || o.Store == nil || o.Fetcher == nil || o.Every < 0 {
		return nil, errors.New("preparing to check sources again: a store, a fetcher or a duration is missing")
	}
	checks, err := newCounter(o.Metrics, "ibid_source_checks_total",
		"Citations compared with the current state of their source, by outcome.", "counts")
	if err != nil {
		return nil, fmt.Errorf("preparing to check sources again: %w", err)
	}
	// Without labels it exists from the start, at 0, so that an alert on its increase also sees the first incident.
	incidents, err := newCounter(o.Metrics, "ibid_source_incidents_total",
		"New incidents found by fetching sources again.")
	if err != nil {
		return nil, fmt.Errorf("preparing to check sources again: %w", err)
	}
	return &Freshness{
		options: *o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		checks: checks, incidents: incidents.WithLabelValues(),
	}, nil
}

// Run checks sources until ctx ends and returns nil. It includes sources cited by answers and recorded runs stored
// before. It needs FreshnessOptions.Every.
func (f *Freshness) Run(ctx context.Context) error {
	tracked := false
	all := poll[store.Recheck]{
		every: min(recheckEvery, f.options.Every), atOnce: recheckAtOnce, do: f.do, log: f.log, what: "sources",
		due: func(ctx context.Context, limit int) ([]store.Recheck, error) {
			if !tracked {
				if _, err := f.options.Store.TrackStored(ctx); err != nil {
					return nil, err
				}
				tracked = true
			}
			if limit == 0 {
				return nil, nil
			}
			return f.options.Store.DueRechecks(ctx, limit, recheckLease)
		},
	}
	all.run(ctx)
	return nil
}

// do checks one source and schedules the next check. An interrupted one is due at once.
func (f *Freshness) do(ctx context.Context, job *store.Recheck) {
	work, cancel := context.WithTimeout(ctx, recheckFor)
	defer cancel()
	cited := true
	err := recovered(work, f.log, "checking a source", slog.String("url", bare(job.URL)), func() (err error) {
		cited, err = f.check(work, job)
		return err
	})
	next := time.Time{}
	switch {
	case ctx.Err() != nil:
		next = f.options.Store.Now()
	case cited:
		next = f.options.Store.Now().Add(jittered(f.after(job, err)))
	}
	end, cancelEnd := context.WithTimeout(context.WithoutCancel(ctx), endFor)
	defer cancelEnd()
	log := f.log.With(slog.String("url", bare(job.URL)))
	if err := f.options.Store.SetRecheck(end, job, next, err != nil); err != nil {
		log.WarnContext(ctx, "the next check of a source could not be scheduled", slog.Any("error", err))
	}
	if _, unread := errors.AsType[*snapshot.FetchError](err); unread || ctx.Err() != nil ||
		errors.Is(err, errNotComparable) {
		log.DebugContext(ctx, "a source could not be read", slog.Any("error", err))
	} else if err != nil {
		log.WarnContext(ctx, "a source could not be checked", slog.Any("error", err))
	}
	if f.options.Wake != nil {
		f.options.Wake()
	}
}

// bare returns a URL for a log, without its query, which may be secret.
func bare(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// check fetches one source and compares the citations of it. It reports whether there are any, or if that is unknown.
func (f *Freshness) check(ctx context.Context, job *store.Recheck) (bool, error) {
	pins, noted, unpinned, err := f.rests(ctx, job)
	if err != nil || len(pins)+len(noted)+len(unpinned) == 0 {
		return err != nil, err
	}
	snap, failed := f.read(ctx, job, min(freshFor, f.options.Every/4))
	if err := ctx.Err(); err != nil {
		return true, fmt.Errorf("waiting for its turn: %w", err)
	}
	if len(noted)+len(unpinned) > 0 && (failed == nil || failedAs(failed, snapshot.Gone)) {
		for _, id := range unpinned {
			if err := f.pin(ctx, job, id, snap); err != nil {
				return true, err
			}
		}
		if err := f.complete(ctx, job, noted, snap); err != nil {
			return true, err
		}
		if pins, _, _, err = f.rests(ctx, job); err != nil {
			return true, err
		}
	}
	compared, err := f.compare(ctx, job, pins, snap, failed)
	if err != nil {
		return true, err
	}
	if !compared && failed == nil {
		return true, errNotComparable
	}
	return true, failed
}

// read returns a source as it was read within the given time, or as it is now.
func (f *Freshness) read(ctx context.Context, job *store.Recheck, within time.Duration) (*snapshot.Snapshot, error) {
	copies := f.options.Store.Copies(job.Tenant)
	if snap := recent(ctx, copies, job.URL, within); snap != nil {
		return snap, nil
	}
	return f.options.Fetcher.Fetch(ctx, &snapshot.FetchRequest{URL: job.URL, Scheduled: true, Copies: copies})
}

// errNotComparable means that another page, such as a challenge or a notice of maintenance, stood in the place of a
// source, so that it is tried again soon.
var errNotComparable = errors.New("another page stood in its place")

// failedAs reports whether fetching a source failed with an error of this kind.
func failedAs(err error, kind snapshot.FetchErrorKind) bool {
	e, ok := errors.AsType[*snapshot.FetchError](err)
	return ok && e.Kind == kind
}

// after returns the interval between a check and the next.
func (f *Freshness) after(job *store.Recheck, err error) time.Duration {
	usual := f.options.Every
	if err == nil {
		return usual
	}
	d := min(recheckSoon, usual) << min(job.Failures, 10)
	if e, ok := errors.AsType[*snapshot.FetchError](err); ok {
		if e.Kind != snapshot.Unreachable {
			d = usual << min(job.Failures, 3)
		}
		d = max(d, e.RetryAfter)
	}
	return min(d, recheckLatest*usual)
}

// jittered returns d, give or take a tenth, so that sources stored together are not fetched together for ever.
func jittered(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1) //nolint:gosec // not security-sensitive
}

// rests returns the pins of a source; those recorded by runs before it was fetched; and the answers that cite it but
// are not fully pinned yet: those without a manifest whose source was not fetched so far, or that got citations since.
func (f *Freshness) rests(
	ctx context.Context, job *store.Recheck,
) (pins, noted []store.Pin, unpinned []string, err error) {
	if pins, err = f.options.Store.Pins(ctx, job.Tenant, job.URL); err != nil {
		return nil, nil, nil, err
	}
	pinned, published, seen := make(map[string]int, len(pins)), make(map[string]bool, len(pins)), make(map[string]bool)
	for i := range pins {
		if id := pins[i].AnswerID; id != "" {
			pinned[id]++
			published[id] = published[id] || pins[i].Path != ""
		}
		if pins[i].Noted() {
			noted = append(noted, pins[i])
		}
	}
	// A manifest may be built while the source is fetched for its answer; the manifest then takes precedence.
	pins = slices.DeleteFunc(pins, func(p store.Pin) bool { return p.Path == "" && published[p.AnswerID] || p.Noted() })
	q := &store.SourceQuery{URL: job.URL, Limit: usesAtOnce}
	for {
		uses, err := f.options.Store.Sources(ctx, job.Tenant, q)
		if err != nil {
			return nil, nil, nil, err
		}
		for i := range uses.Items {
			use := &uses.Items[i]
			if clean, err := snapshot.CleanURL(use.URL); err != nil || clean != job.URL {
				continue // the same source at another address, which is read at that
			}
			if id := use.AnswerID; !published[id] && !seen[id] && pinned[id] < len(use.Citations) {
				seen[id] = true
				unpinned = append(unpinned, use.AnswerID)
			}
		}
		if q.Cursor = uses.Next; q.Cursor == "" {
			return pins, noted, unpinned, nil
		}
	}
}

// pin records what an answer cites of a source in its current state or, if it is gone, what its provider quoted.
func (f *Freshness) pin(ctx context.Context, job *store.Recheck, answerID string, snap *snapshot.Snapshot) error {
	call, err := f.options.Store.Call(ctx, job.Tenant, answerID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	pinner := manifest.Pinner{Texts: f.options.Texts, Checker: f.options.Checker}
	var list []store.Pin
	a := call.Answer
	for i := range a.Citations {
		c := &a.Citations[i]
		for k := range c.Refs {
			s := a.Source(c.Refs[k].Source)
			if s == nil {
				continue
			}
			if clean, err := snapshot.CleanURL(s.URL); err != nil || clean != job.URL {
				continue
			}
			one, err := pinner.Pin(ctx, a, c, &c.Refs[k], snap)
			if err != nil {
				return err
			}
			forgetHash(&one)
			claim := c.Claim
			if claim.Len() == 0 {
				claim = c.Span
			}
			list = append(list, store.Pin{
				URL: job.URL, AnswerID: call.AnswerID, Run: call.Run, Citation: c.ID,
				ClaimID: manifest.ClaimID(a.Text[claim.Start:claim.End]), SourceID: s.ID, Claim: one,
				Source: manifest.Source{
					ID: s.ID, URL: one.URL, Title: s.Title, Hash: one.Hash, RetrievedAt: one.RetrievedAt,
				},
			})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return f.options.Store.AddPins(ctx, job.Tenant, list)
}

// forgetHash removes the hash of what was read from a citation whose quote is not in it: that is not what was cited, so
// that the quote is missing there, or altered, but not misquoted.
func forgetHash(c *manifest.ClaimSource) {
	if c.Unavailable == manifest.ExcerptNotFound {
		c.Hash = ""
	}
}

// complete finds the passages that runs recorded in a source; if the source is gone, it keeps their quotes.
func (f *Freshness) complete(
	ctx context.Context, job *store.Recheck, noted []store.Pin, snap *snapshot.Snapshot,
) error {
	if len(noted) == 0 {
		return nil
	}
	pinner := manifest.Pinner{Texts: f.options.Texts, Checker: f.options.Checker}
	for i := range noted {
		p := &noted[i]
		quote := ""
		if p.Claim.Excerpt != nil {
			quote = p.Claim.Excerpt.Exact
		}
		one, err := pinner.Quote(ctx, p.URL, quote, p.Claim.ExcerptOrigin, p.Words, snap)
		if err != nil {
			return err
		}
		forgetHash(&one)
		p.Claim = one
		p.Source = manifest.Source{URL: p.URL, Hash: one.Hash, RetrievedAt: one.RetrievedAt}
	}
	return f.options.Store.SetPins(ctx, job.Tenant, noted)
}

// compare compares the pins of a source with its current state and stores the results. Incidents are stored first: if
// it is interrupted after that, the next check does not repeat them. It reports whether the document was the source.
func (f *Freshness) compare(
	ctx context.Context, job *store.Recheck, pins []store.Pin, snap *snapshot.Snapshot, failed error,
) (compared bool, err error) {
	compared = true
	now := f.options.Store.Now()
	statuses := make([]store.PinStatus, 0, len(pins))
	incidents := map[string]verify.Incident{} // by subject
	// The manifests that declare the source unreadable although it can be read now, with their answers.
	away := map[string]string{}
	for i := range pins {
		p := &pins[i]
		// The manifest of a run with a captured final answer is built with that answer's.
		isOwn := strings.Contains(p.Path, "/cite/") || p.AnswerID == "" && p.Path != ""
		if snap != nil && snap.Whole() && isOwn && p.Claim.Hash == "" && p.Source.Hash == "" {
			away[p.Path] = p.AnswerID
		}
		// A source that could not be reached is no finding about it.
		if p.Status != "" && failedAs(failed, snapshot.Unreachable) && job.Failures < recheckPatience-1 {
			continue
		}
		r := verify.Compare(
			&p.Claim, &p.Source, snap, failed,
			&verify.CompareOptions{Texts: f.options.Texts, TextProfile: manifest.TextProfile},
		)
		if r.Status == verify.NotComparable {
			compared = false
			if p.Status != "" && job.Failures < recheckPatience-1 {
				continue
			}
		}
		f.checks.WithLabelValues(string(r.Counts)).Inc()
		detail, err := json.Marshal(&r)
		if err != nil {
			return false, fmt.Errorf("encoding the result of a check: %w", err)
		}
		statuses = append(
			statuses, store.PinStatus{ID: p.ID, Status: r.Status, Counts: r.Counts, CheckedAt: now, Detail: detail},
		)
		of := fmt.Sprintf("%020d", p.ID)                   // in the order of the pins
		if p.AnswerID == "" && p.Claim.ExcerptHash != "" { // reported once if a run repeats it
			of = strings.Join([]string{p.Run, p.Claim.ExcerptHash, string(r.Status)}, "\x00")
		}
		if r.Counts == verify.CountFailure && r.Status != p.Status {
			if _, there := incidents[of]; !there || p.Path != "" {
				incidents[of] = f.incident(p, &r, now)
			}
		}
	}
	if err := f.addIncidents(ctx, job.Tenant, incidents); err != nil {
		return false, err
	}
	if err := f.options.Store.SetStatuses(ctx, job.Tenant, statuses); err != nil {
		return false, err
	}
	for _, path := range slices.Sorted(maps.Keys(away)) {
		if err := f.options.Store.PublishAgain(ctx, job.Tenant, away[path], path); err != nil {
			return false, err
		}
	}
	return compared, nil
}

// addIncidents stores incidents in the order of their subjects, and counts those that are new.
func (f *Freshness) addIncidents(ctx context.Context, tenant string, bySubject map[string]verify.Incident) error {
	if len(bySubject) == 0 {
		return nil
	}
	list := make([]verify.Incident, 0, len(bySubject))
	for _, of := range slices.Sorted(maps.Keys(bySubject)) {
		list = append(list, bySubject[of])
	}
	added, err := f.options.Store.AddIncidents(ctx, tenant, list)
	if err != nil {
		return err
	}
	f.incidents.Add(float64(len(added)))
	return nil
}

// incident returns the record of a failure.
func (f *Freshness) incident(p *store.Pin, r *verify.SourceResult, now time.Time) verify.Incident {
	in := verify.Incident{
		ObservedAt:      now.UTC().Round(0),
		Verifier:        f.options.Verifier,
		VerifierVersion: f.options.Version,
		ResponseURL:     f.options.Origin + "/v1/answers/" + url.PathEscape(p.AnswerID),
		ManifestSHA256:  p.Digest,
		ClaimID:         p.ClaimID,
		SourceURL:       p.URL,
		Status:          r.Status,
		Detail:          r.Note,
		Expected: verify.Expected{
			Hash:        cmp.Or(p.Claim.Hash, p.Source.Hash),
			TextHash:    p.Source.TextHash,
			ExcerptHash: p.Claim.ExcerptHash,
		},
		Observed: verify.IncidentObserved{
			HTTPStatus: r.HTTPStatus,
			FinalURL:   r.FinalURL,
			Hash:       r.Hash,
			TextHash:   r.TextHash,
			FetchedAt:  r.CheckedAt.UTC().Round(0),
		},
	}
	if p.AnswerID == "" {
		in.ResponseURL = f.options.Origin + "/v1/runs/" + url.PathEscape(p.Run)
	}
	if p.Path != "" {
		in.ManifestURL = f.options.Origin + p.Path
	}
	if r.Near != nil {
		in.Observed.Nearest, in.Observed.Edits = r.Near.Text, r.Near.Edits
	}
	return in
}
