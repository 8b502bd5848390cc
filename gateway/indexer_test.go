package gateway_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store/journal"
)

// A record that cannot be set aside stays in the journal, and is retried, as with an unavailable store.
func TestSetAsideAgain(t *testing.T) {
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged")
	testenv.OK(t, os.WriteFile(damaged, nil, 0o600)) // a file in place of the directory
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{idle: true, options: gateway.Options{Damaged: damaged}})
	testenv.Must(w.journal.Append([]byte("no call")))(t)
	run(t, w.gateway)
	w.logs(t, "cannot be set aside")
	if n := w.journal.Stats().Records; n != 1 {
		t.Errorf("the journal has %d records", n)
	}
	testenv.OK(t, os.Remove(damaged))
	res, _ := w.do(t, w.request(t, "POST", chat, strings.NewReader(chatRequest)))
	w.stored(t, res.Header.Get("Ibid-Answer"))
	files, err := filepath.Glob(filepath.Join(damaged, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("set aside: %v, %v", files, err)
	}
	if b, _ := os.ReadFile(files[0]); string(b) != "no call" {
		t.Errorf("set aside: %q", b)
	}
	if n := w.metric(t, "set_aside_total"); n != 1 {
		t.Errorf("%v are counted", n)
	}
}

// logs waits until the log contains a word.
func (w *world) logs(tb testing.TB, word string) {
	tb.Helper()
	testenv.Until(tb, "the log says "+word, func() bool { return strings.Contains(w.log.String(), word) })
}

// Records lost from the journal on disk are stored from memory, if they are still there.
func TestDamageWhileRunning(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{idle: true})
	var ids []string
	for range 4 {
		res, _ := w.do(t, w.request(t, "POST", chat, strings.NewReader(chatRequest)))
		ids = append(ids, res.Header.Get("Ibid-Answer"))
	}
	log := filepath.Join(w.dir, "journal", "journal.db-wal") // where SQLite keeps few rows
	b := testenv.Must(os.ReadFile(log))(t)
	f := testenv.Must(os.OpenFile(log, os.O_WRONLY, 0))(t)
	defer f.Close()
	for _, id := range ids[1:3] {
		testenv.Must(f.WriteAt([]byte("x"), int64(bytes.LastIndex(b, []byte(id)))))(t)
	}
	run(t, w.gateway)
	for _, id := range ids {
		w.stored(t, id)
		if _, ok := w.gateway.Find("default", id); ok {
			t.Error("a stored answer is still in memory")
		}
	}
	if n := w.metric(t, "journal_damaged_records"); n != 2 {
		t.Errorf("%v were damaged", n)
	}
}

// Everything that is decoded can be kept.
func TestLargeAnswer(t *testing.T) {
	text := strings.Repeat("So it is. ", 31<<20/10)
	w := newWorld(t, answerJSON(chatBody(text)), nil)
	res, body := w.do(t, w.request(t, "POST", chat, strings.NewReader(chatRequest)))
	if len(body) < len(text) {
		t.Fatalf("got %d bytes", len(body))
	}
	if a := w.stored(t, res.Header.Get("Ibid-Answer")).Answer; a.Text != text || !a.Complete {
		t.Errorf("%d bytes of text are stored", len(a.Text))
	}
	// A longer answer passes, and is kept as far as it was decoded.
	w = newWorld(t, answerParts(chatParts(strings.Repeat("x", 600<<10), strings.Repeat("y", 600<<10))...), &setup{options: gateway.Options{
		Limits: gateway.Limits{Decoded: 1 << 20},
	}})
	res, body = w.do(t, w.request(t, "POST", chat, strings.NewReader(chatRequest)))
	if len(body) < 1200<<10 {
		t.Fatalf("got %d bytes", len(body))
	}
	if a := w.stored(t, res.Header.Get("Ibid-Answer")).Answer; a.Complete || len(a.Text) < 600<<10 || len(a.Text) > 1<<20 {
		t.Errorf("%d bytes of text are stored", len(a.Text))
	}
	if n := w.metric(t, "tee_off_total"); n != 1 {
		t.Errorf("%v are counted", n)
	}
}

// An answer whose record is too large for the journal is lost, which is counted separately and logged.
func TestRecordTooLarge(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody(strings.Repeat("So it is. ", 3000))), &setup{journal: journal.Options{MaxBytes: 20 << 10}})
	res, body := w.do(t, w.request(t, "POST", chat, strings.NewReader(chatRequest)))
	if res.StatusCode != 200 || len(body) < 30_000 {
		t.Fatalf("got %d, %d bytes", res.StatusCode, len(body))
	}
	if log := w.log.String(); !strings.Contains(log, "cannot keep an answer") || !strings.Contains(log, "too large") {
		t.Errorf("the log: %s", log)
	}
	testenv.Equal(t, "counted", 1.0, w.metric(t, "capture_failures_total", "too-large"))
}

// A promised length reserves nothing: connections that only open their requests do not block others.
func TestPromisedLengths(t *testing.T) {
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{options: gateway.Options{Limits: gateway.Limits{Memory: 2<<20 + oneStep}}})
	for range 16 {
		w.raw(t, "POST "+chat+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 33554432\r\n\r\n{")
	}
	w.holds(t, 16)
	res, body := w.do(t, w.request(t, "POST", chat, strings.NewReader(chatRequest)))
	if res.StatusCode != 200 {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
	for _, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 100_000, 1 << 20} { // the same bytes must arrive
		if res, body := w.do(t, w.request(t, "POST", chat, bytes.NewReader(make([]byte, size)))); res.StatusCode != 200 {
			t.Errorf("%d bytes: got %d %s", size, res.StatusCode, body)
		}
	}
}

// holds waits until that many calls are being served.
func (w *world) holds(tb testing.TB, calls float64) {
	tb.Helper()
	testenv.Until(tb, fmt.Sprint(calls, " calls are served"), func() bool { return w.metric(tb, "in_flight") == calls })
}

// A proxy that is down is not reported as the upstream's failure.
func TestProxyDown(t *testing.T) {
	l := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	proxy := l.Addr().String()
	_ = l.Close()
	for _, address := range []string{proxy, "proxy.invalid:3128"} {
		w := newWorld(t, answerJSON("{}"), &setup{options: gateway.Options{Proxy: proxyAt(address)}})
		res, body := w.do(t, w.request(t, "POST", chat, strings.NewReader(chatRequest)))
		if res.StatusCode != 502 || !strings.Contains(string(body), "its proxy cannot be reached") ||
			!strings.Contains(string(body), "HTTPS_PROXY") {
			t.Errorf("%s: got %d %s", address, res.StatusCode, body)
		}
		if !strings.Contains(w.log.String(), "proxyconnect") {
			t.Errorf("the log: %s", w.log)
		}
	}
}

func proxyAt(address string) func(*http.Request) (*url.URL, error) {
	return http.ProxyURL(&url.URL{Scheme: "http", Host: address})
}

// The upstream cannot set headers that concern ibid's host.
func TestOtherHostsWords(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		w.Header().Set("Clear-Site-Data", `"*"`)
		w.WriteHeader(http.StatusNoContent)
	}, nil)
	for _, path := range []string{captured, streamed} {
		res, _ := w.do(t, w.request(t, "GET", path, nil))
		for _, name := range []string{"Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data"} {
			if v := res.Header.Get(name); v != "" {
				t.Errorf("%s: %s: %s", path, name, v)
			}
		}
	}
}
