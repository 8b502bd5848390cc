package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// Unfinished uploads use up their tenant's share, not that of others.
func TestOneTenantStarvesNobody(t *testing.T) {
	tokens := openTokens(t)
	acme, _ := newSecret(t, tokens, store.Token{Name: "a", Tenant: "acme", Scopes: []string{store.ScopeProxy}})
	acme2, _ := newSecret(t, tokens, store.Token{Name: "b", Tenant: "acme", Scopes: []string{store.ScopeProxy}})
	other, _ := newSecret(t, tokens, store.Token{Name: "c", Tenant: "other", Scopes: []string{store.ScopeProxy}})
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{options: gateway.Options{
		Guard:  gateway.NewGuard(&gateway.GuardOptions{Store: tokens}),
		Limits: gateway.Limits{Request: 1 << 20, Decoded: 64 << 10, Memory: 8 << 20},
	}})
	for range 17 {
		w.raw(t, "POST "+chat+" HTTP/1.1\r\nHost: localhost\r\nIbid-Token: "+acme+"\r\nContent-Length: 1000000\r\n\r\n"+
			strings.Repeat("x", 600_000))
	}
	status := func(token string, size int) (int, string) {
		r := w.request(t, "POST", chat, bytes.NewReader(make([]byte, size)))
		r.Header.Set(gateway.TokenHeader, token)
		res, _ := w.do(t, r)
		return res.StatusCode, res.Header.Get("Retry-After")
	}
	testenv.Until(t, "the token is told that it has too much", func() bool {
		code, retry := status(acme, 900_000)
		if code == http.StatusTooManyRequests && retry == "" {
			t.Error("no Retry-After")
		}
		return code == http.StatusTooManyRequests
	})
	for range 3 {
		if code, _ := status(other, 900_000); code != http.StatusOK {
			t.Errorf("another tenant got %d", code)
		}
		if code, _ := status(acme2, 900_000); code != http.StatusOK {
			t.Errorf("another token of the tenant got %d", code)
		}
	}
}

// A body that stops arriving times out sooner than one that arrives slowly.
func TestSlowBody(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{options: gateway.Options{
		Limits: gateway.Limits{RequestPace: 100 * time.Millisecond},
	}})
	conn := w.raw(t, "POST "+chat+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("x", 40_000))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testenv.OK(t, err)
	_ = res.Body.Close()
	testenv.Equal(t, "status", http.StatusRequestTimeout, res.StatusCode)
}

// Calls being served count too, and so do responses being decoded: the latter pass all the same.
func TestBudgets(t *testing.T) {
	leave, entered := make(chan struct{}), make(chan struct{}, 9)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-leave
		answerJSON(chatBody("So it is."))(rw, r)
	}, &setup{options: gateway.Options{Limits: gateway.Limits{Calls: 4}}})
	done := make(chan int)
	for range 2 {
		go func() {
			res, err := w.client.Do(w.request(t, "POST", chat, strings.NewReader(chatRequest)))
			if err != nil {
				done <- 0
				return
			}
			_ = res.Body.Close()
			done <- res.StatusCode
		}()
		<-entered
	}
	res, _ := w.do(t, w.request(t, "POST", chat, strings.NewReader(chatRequest)))
	testenv.Equal(t, "status of one too many", http.StatusTooManyRequests, res.StatusCode)
	close(leave)
	testenv.Equal(t, "status of those before", fmt.Sprint(200, 200), fmt.Sprint(<-done, <-done))

	long := chatBody(strings.Repeat("So it is. ", 10_000))
	w = newWorld(t, answerJSON(long), &setup{options: gateway.Options{
		Limits: gateway.Limits{Memory: 40_000, Request: 1000, Decoded: 1_000_000},
	}})
	res, body := w.ask(t, nil)
	testenv.Equal(t, "what is not decoded", long, string(body))
	testenv.Equal(t, "its status", http.StatusOK, res.StatusCode)
	testenv.Equal(t, "what is held afterwards", int64(0), w.gateway.Memory().Held())
}

// A budget can be used up again after Release.
func TestBudgetRelease(t *testing.T) {
	b := gateway.NewBudget("things", 8, 1)
	a, c := gateway.Identity{Tenant: "a", Token: "1"}, gateway.Identity{Tenant: "c"}
	for range 3 {
		testenv.OK(t, b.Hold(a, 2))
		testenv.OK(t, b.Hold(c, 4))
		for who, want := range map[string]error{"a": b.Hold(a, 1), "c": b.Hold(c, 1)} {
			rec := httptest.NewRecorder()
			gateway.WriteProblem(rec, httptest.NewRequest(http.MethodGet, "/", nil), want)
			if rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") == "" {
				t.Errorf("%s: %d", who, rec.Code)
			}
		}
		b.Release(a, 2)
		b.Release(c, 4)
		testenv.Equal(t, "held", int64(0), b.Held())
	}
}
