package page

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

const (
	// progressAfter is how long a reader waits for a report before being shown how far it is, and progressAgain how
	// many seconds later the page is loaded again.
	progressAfter = 700 * time.Millisecond
	progressAgain = 1
	// reportKept is how long a report that nobody came back for is kept.
	reportKept = time.Minute
)

// verifyings are the verifications of this server's answers that readers wait for: a page shows how far one is, and the
// next its report. The zero value is ready to use.
type verifyings struct {
	mu      sync.Mutex
	all     map[string]*verifying
	running sync.WaitGroup
}

// verifying is one of them.
type verifying struct {
	done   chan struct{}
	report *reportView // this and the rest are set when it is done
	err    error
	ended  time.Time

	mu    sync.Mutex
	stage verify.Progress // the last that was reported
	found []countedBadge  // the results for the sources so far
}

// verifyProgress is how far a verification is.
type verifyProgress struct {
	Words       string
	Done, Total int
	Found       []countedBadge
}

// verifyOwn verifies an answer of this server, or joins the verification that is running. It waits for the report for
// a moment: if it is not done by then, progress says how far it is. A report is handed out once.
func (p *Page) verifyOwn(
	r *httpx.Request, call *store.Call, pins []store.Pin, age time.Duration, keep bool,
) (report *reportView, progress *verifyProgress, err error) {
	key := r.Who.Tenant + "\x00" + call.AnswerID + "\x00" + strconv.FormatBool(r.Who.Token != "")
	one := p.verifyings.start(key, func(one *verifying) (*reportView, error) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer context.AfterFunc(p.closing, cancel)()
		defer cancel()
		own := *r // its reader may be loading the next page
		own.Request = r.WithContext(ctx)
		return p.reportOwn(&own, call, pins, age, one.take)
	})
	timer := time.NewTimer(progressAfter)
	defer timer.Stop()
	select {
	case <-one.done:
		if !keep || one.err != nil {
			p.verifyings.drop(key, one)
		}
		return one.report, nil, one.err
	case <-timer.C:
		return nil, one.progress(), nil
	case <-r.Context().Done():
		return nil, nil, context.Cause(r.Context())
	}
}

// start returns the verification with a key, which it begins if there is none.
func (v *verifyings) start(key string, run func(*verifying) (*reportView, error)) *verifying {
	v.mu.Lock()
	defer v.mu.Unlock()
	for other, one := range v.all {
		if one.isDone() && time.Since(one.ended) > reportKept {
			delete(v.all, other)
		}
	}
	if one := v.all[key]; one != nil {
		return one
	}
	one := &verifying{done: make(chan struct{})}
	if v.all == nil {
		v.all = map[string]*verifying{}
	}
	v.all[key] = one
	v.running.Go(func() {
		defer close(one.done)
		one.report, one.err = run(one)
		one.ended = time.Now()
	})
	return one
}

// drop forgets a verification.
func (v *verifyings) drop(key string, one *verifying) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all[key] == one {
		delete(v.all, key)
	}
}

func (o *verifying) isDone() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// take is told of each step.
func (o *verifying) take(step verify.Progress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stage = step
	if step.Status != "" {
		o.found = countBadge(o.found, statusBadge(step.Status, time.Time{}))
	}
}

func (o *verifying) progress() *verifyProgress {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := &verifyProgress{
		Words: "Reading the manifest", Done: o.stage.Done, Total: o.stage.Total, Found: slices.Clone(o.found),
	}
	switch {
	case o.stage.Stage == "source" && o.stage.Done == o.stage.Total:
		v.Words = "Comparing the quotes with what the answer says"
	case o.stage.Stage != "manifest" && o.stage.Total > 0:
		v.Words = "Comparing with the sources: " + strconv.Itoa(v.Done) + " of " + strconv.Itoa(v.Total)
	}
	return v
}
