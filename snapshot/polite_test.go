package snapshot

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"

	"code.dny.dev/ssrf"
)

// Requests with a waiting caller go first, and scheduled ones leave half of the places.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := places{size: 4}
		var mu sync.Mutex
		var order []string
		work := func(name string, scheduled bool) {
			if err := p.acquire(t.Context(), scheduled); err != nil {
				t.Error(err)
			}
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			<-time.After(time.Second)
			p.release(scheduled)
		}
		var group sync.WaitGroup
		for i := range 6 {
			group.Go(func() { work("later", true) })
			synctest.Wait()
			if i == 3 && p.taken != 2 {
				t.Errorf("scheduled work has %d places of 4", p.taken)
			}
		}
		for range 6 {
			group.Go(func() { work("asked", false) })
			synctest.Wait()
		}
		group.Wait()
		// After a second all four places are free again, and four requests with callers get them; then two of each
		// kind.
		want := "later later asked asked asked asked asked asked later later later later"
		slices.Sort(order[4:8]) // the order within one moment does not matter
		if got := strings.Join(order, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if p.taken != 0 || p.scheduled != 0 || p.asked.Len() != 0 || p.later.Len() != 0 {
			t.Errorf("left: %d, %d, %d, %d", p.taken, p.scheduled, p.asked.Len(), p.later.Len())
		}
	})
}

// A caller that stops waiting takes no place.
func TestPlacesLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := places{size: 1}
		_ = p.acquire(t.Context(), false)
		left := errors.New("left")
		var group sync.WaitGroup
		for i := range 20 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(1+i%4)*time.Second, left)
			defer cancel()
			group.Go(func() {
				if err := p.acquire(ctx, i%2 == 0); err == nil {
					p.release(i%2 == 0)
				} else if !errors.Is(err, left) {
					t.Error(err)
				}
			})
		}
		<-time.After(2 * time.Second) // at the moment when some leave
		p.release(false)
		group.Wait()
		if p.taken != 0 || p.scheduled != 0 || p.asked.Len() != 0 || p.later.Len() != 0 {
			t.Errorf("left: %d, %d, %d, %d", p.taken, p.scheduled, p.asked.Len(), p.later.Len())
		}
	})
}

// Requests to one host start a gap apart, whatever else delays them.
func TestHostGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts{perHost: 2, gap: 100 * time.Millisecond, maxDelay: 30 * time.Second}
		all := places{size: 2}
		begin := time.Now()
		var mu sync.Mutex
		starts := map[string][]int{}
		var group sync.WaitGroup
		for i := range 12 {
			group.Go(func() {
				name := []string{"a", "b"}[i%2]
				one := h.open(name)
				defer h.close(one)
				_ = one.places.acquire(t.Context(), false)
				defer one.places.release(false)
				if err := h.wait(t.Context(), one, &all, false); err != nil {
					t.Error(err)
				}
				defer all.release(false)
				mu.Lock()
				starts[name] = append(starts[name], int(time.Since(begin).Milliseconds()))
				mu.Unlock()
				<-time.After(30 * time.Millisecond)
			})
		}
		group.Wait()
		want := "map[a:[0 100 200 300 400 500] b:[0 100 200 300 400 500]]"
		if got := fmt.Sprint(starts); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// A host that asks for a delay is left alone; one that asks for a longer one than the limit is not waited for.
func TestHostBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts{perHost: 2, maxDelay: 30 * time.Second}
		var all places
		one := h.open("a")
		one.setBusy(429, 20*time.Second)
		one.setBusy(503, 5*time.Second) // a later request does not shorten it
		begin := time.Now()
		if err := h.wait(t.Context(), one, &all, false); err != nil || time.Since(begin) != 20*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		one.setBusy(503, 1000*time.Hour)
		err := h.wait(t.Context(), one, &all, false)
		if ferr, ok := errors.AsType[*FetchError](err); !ok || ferr.Reason != reason5xx || ferr.Status != 503 || ferr.RetryAfter != maxBusy {
			t.Errorf("%v", err)
		}
		<-time.After(maxBusy)
		if err := h.wait(t.Context(), one, &all, false); err != nil {
			t.Error(err)
		}
	})
}

// Unused hosts are dropped, others are not.
func TestHostsForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hosts{gap: time.Second}
		busy, used := h.open("busy"), h.open("used")
		busy.setBusy(429, time.Minute)
		h.close(busy)
		for i := range 5 * minSweep {
			one := h.open(fmt.Sprint(i))
			_ = h.wait(t.Context(), one, &places{}, false)
			h.close(one)
			<-time.After(time.Millisecond)
			if len(h.all) > 3*minSweep {
				t.Fatalf("there are %d", len(h.all))
			}
		}
		if h.open("busy") != busy || h.open("used") != used {
			t.Error("a host in use was dropped")
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "120": 2 * time.Minute, "99999999999999999999999999": 366 * 24 * time.Hour,
		"Sat, 21 Nov 2026 10:00:30 GMT": 30 * time.Second, "Saturday, 21-Nov-26 10:00:30 GMT": 30 * time.Second,
		"Sat, 21 Nov 2026 09:00:00 GMT": 0, "-1": 0, "1.5": 0, "soon": 0, "+5": 0, "Sat, 21 Nov 9999 10:00:00 GMT": 366 * 24 * time.Hour,
	} {
		if got := RetryAfter(v, now); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}

// Allowed networks are allowed for TCP only, and an address with a zone never is.
func TestGuard(t *testing.T) {
	g := &guard{[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fe80::/10"), {}}, ssrf.New()}
	for _, row := range testenv.Cases(t, "testdata/guard.txt", 2) {
		at, ok := row[0], row[1] == "true"
		network, address, _ := strings.Cut(at, " ")
		if err := g.check(network, address); (err == nil) != ok {
			t.Errorf("%s: %v", at, err)
		} else if kind, _ := errorKind(err); err != nil && kind != Blocked {
			t.Errorf("%s: %s: %v", at, kind, err)
		}
	}
}

// A hostile robots.txt takes a second at worst, and garbage does no harm. The bound is generous, for slow machines.
func TestRobotsHostile(t *testing.T) {
	url := "http://example.com/" + strings.Repeat("a", maxRobotsPath-19)
	for name, line := range map[string]string{
		"long":   "Disallow: *" + strings.Repeat("a", 900) + "b\n",
		"agents": "User-agent: *\n", "binary": "\x00\xff: \xc3(\n",
	} {
		body := "User-agent: *\n" + strings.Repeat(line, maxRobots/4/len(line))
		begin := time.Now()
		ok := allows(body, "ibid", url)
		if took := time.Since(begin); !ok || took > time.Minute {
			t.Errorf("%s: %t after %v", name, ok, took)
		}
	}
}
