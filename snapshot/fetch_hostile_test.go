package snapshot_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// nameServer resolves every name with answer, over UDP on 127.0.0.1.
func nameServer(tb testing.TB, answer func(name string) []netip.Addr) *net.Resolver {
	tb.Helper()
	conn := testenv.Must(net.ListenPacket("udp", "127.0.0.1:0"))(tb)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}
			m.Additionals = nil
			q := m.Questions[0]
			h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
			for _, ip := range answer(strings.TrimSuffix(q.Name.String(), ".")) {
				switch {
				case ip.Is4() && q.Type == dnsmessage.TypeA:
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: ip.As4()}})
				case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
				}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	tb.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// counted returns a context that counts the connections made for it.
func counted(ctx context.Context) (context.Context, *atomic.Int32) {
	var n atomic.Int32
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ConnectDone: func(_, _ string, err error) {
		if err == nil {
			n.Add(1)
		}
	}}), &n
}

// victim listens at a forbidden address and counts connections.
func victim(t *testing.T, address string) *atomic.Int32 {
	t.Helper()
	var n atomic.Int32
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this machine does not listen on %s: %v", address, err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); group.Wait() })
	return &n
}

// special returns addresses that no name may resolve to.
func special() []string {
	return []string{
		"127.0.0.1", "127.0.0.2", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "169.254.169.254",
		"192.0.0.170", "192.88.99.1", "198.19.0.1", "203.0.113.1", "224.0.0.251", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::1", "100::1", "2001::1",
		"2001:db8::1", "2002:7f00:1::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
	}
}

// No forbidden address is connected to: neither directly, nor through a name that resolves to it, nor through a
// redirect.
func TestFetchHostile(t *testing.T) {
	resolver := nameServer(t, func(name string) []netip.Addr {
		hexed, ok := strings.CutSuffix(name, ".special.example")
		if !ok {
			return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("::1")}
		}
		var ip netip.Addr
		var b []byte
		fmt.Sscanf(hexed, "x%x", &b)
		_ = ip.UnmarshalBinary(b)
		return []netip.Addr{ip}
	})
	urls := []string{"http://localhost/", "http://localhost./", "https://example.com/", "https://a.localhost/"}
	for in := range hostileURLs(t) {
		urls = append(urls, in)
	}
	for _, s := range special() {
		b, _ := netip.MustParseAddr(s).MarshalBinary()
		urls = append(urls, fmt.Sprintf("http://x%x.special.example/", b), fmt.Sprintf("https://x%x.special.example/", b))
	}
	if len(urls) < 60 {
		t.Fatalf("only %d", len(urls))
	}

	t.Run("asked", func(t *testing.T) {
		f := snapshot.NewFetcher(&snapshot.FetchOptions{Limits: rude(), Resolver: resolver})
		defer f.Close()
		for _, u := range urls {
			ctx, n := counted(t.Context())
			for _, r := range []snapshot.FetchRequest{{}, {Scheduled: true}, {NoRedirect: true, Identity: true}} {
				r.URL = u
				_, err := f.Fetch(ctx, &r)
				want := snapshot.Blocked
				if r.Scheduled && mustReason(t, err) == "unreachable" { // its robots.txt was refused first
					want = snapshot.RobotsDisallowed
				}
				wantError(t, err, want, mustReason(t, err))
			}
			_, err := f.Location(ctx, u)
			wantError(t, err, snapshot.Blocked, mustReason(t, err))
			if n.Load() != 0 {
				t.Errorf("%.60q: %d connections", u, n.Load())
			}
		}
	})

	t.Run("redirected", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.3:0")
		if err != nil {
			t.Skipf("this machine has one loopback address only: %v", err)
		}
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Location"] = []string{r.URL.Query().Get("to")}
			w.WriteHeader(http.StatusFound)
		})}}
		s.Start()
		defer s.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		caught := victim(t, "127.0.0.2:"+port)
		f := fetcher(t, snapshot.FetchOptions{
			Limits: rude(), Resolver: resolver, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")},
		})
		for _, u := range append(urls, "http://127.0.0.2:"+port+"/", "http://[::1]:"+port+"/", "http://victim.example:"+port+"/") {
			switch {
			case strings.ContainsAny(u, "\r\n\x00"), u == "", u == "example.com", u == "/etc/passwd":
				continue // not expressible in a field, or another page of the same server
			}
			ctx, n := counted(t.Context())
			_, err := f.Fetch(ctx, &snapshot.FetchRequest{URL: s.URL + "/?to=" + url.QueryEscape(u)})
			wantError(t, err, snapshot.Blocked, mustReason(t, err))
			if n.Load() > 1 { // the redirecting server itself
				t.Errorf("%.60q: %d connections", u, n.Load())
			}
		}
		if caught.Load() != 0 {
			t.Errorf("%d connections to the victim", caught.Load())
		}
	})
}

// A name that resolved to an allowed address now resolves to another.
func TestFetchRebinding(t *testing.T) {
	good, bad := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	var answers atomic.Pointer[[]netip.Addr]
	resolver := nameServer(t, func(string) []netip.Addr { return *answers.Load() })
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that the name is resolved again
		if r.URL.Path == "/turn" {
			answers.Store(&[]netip.Addr{bad}) // between two hops
			http.Redirect(w, r, "/there", http.StatusFound)
			return
		}
		io.WriteString(w, "good")
	})
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	caught := victim(t, "127.0.0.2:"+port)
	f := fetcher(t, snapshot.FetchOptions{Limits: rude(), Resolver: resolver})
	fetch := func(path string, ips ...netip.Addr) error {
		answers.Store(&ips)
		got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: "http://rebinding.example:" + port + path})
		if err == nil && string(got.Octets) != "good" {
			t.Errorf("got %q", got.Octets)
		}
		return err
	}
	if err := fetch("/", good); err != nil {
		t.Error(err)
	}
	wantError(t, fetch("/", bad), snapshot.Blocked, "port") // the address is special too; the port is checked first
	if err := fetch("/", bad, good); err != nil {           // of several addresses an allowed one is used
		t.Error(err)
	}
	wantError(t, fetch("/turn", good), snapshot.Blocked, "port")
	if err := fetch("/", good); err != nil {
		t.Error(err)
	}
	if err := fetch("/"); err == nil {
		t.Error("a name without addresses is fetched")
	} else {
		wantError(t, err, snapshot.Unreachable, "dns")
	}
	if caught.Load() != 0 {
		t.Errorf("%d connections to the victim", caught.Load())
	}
}

// A proxy from the environment is not used, as it would connect to any address for us.
func TestFetchNoProxy(t *testing.T) {
	var asked atomic.Int32
	proxy := site(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	f := fetcher(t, snapshot.FetchOptions{
		Limits: rude(), Resolver: nameServer(t, func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.1")} }),
	})
	_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: "http://example.com/"})
	wantError(t, err, snapshot.Blocked, "network")
	if asked.Load() != 0 {
		t.Error("the proxy was used")
	}
}

// rawSite answers each connection with write once a request has arrived.
func rawSite(t *testing.T, write func(c net.Conn, path string)) string {
	t.Helper()
	l := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			group.Go(func() {
				defer c.Close()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err == nil {
					write(c, r.URL.Path)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		group.Wait()
	})
	return "http://" + l.Addr().String()
}

// tight returns limits that a test can wait for.
func tight() snapshot.FetchLimits {
	l := rude()
	l.Connect, l.Header, l.Idle, l.Total = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond, 500*time.Millisecond
	l.Retries = -1
	return l
}

// bounded runs do and fails if it takes too much memory, or hangs. The time is generous, for slow machines.
func bounded(t *testing.T, most uint64, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	do()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		t.Errorf("it took %d bytes of memory", got)
	}
}

// 256 MiB in 261 KB.
func TestFetchBomb(t *testing.T) {
	member := packed(strings.Repeat("\x00", 1<<20))
	bomb := bytes.Repeat(member, 256)
	t.Logf("the bomb has %d bytes", len(bomb))
	s := site(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb)
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	bounded(t, 64<<20, func() {
		_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL})
		wantError(t, err, snapshot.TooLarge, "decoded")
	})
	limits := rude()
	limits.Compressed = 1000
	small := fetcher(t, snapshot.FetchOptions{Limits: limits})
	_, err := small.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL})
	wantError(t, err, snapshot.TooLarge, "sent")
}

func TestFetchSizes(t *testing.T) {
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		body := strings.Repeat("x", 1000)
		if r.URL.Path == "/chunked" {
			io.WriteString(w, body[:500])
			http.NewResponseController(w).Flush()
			body = body[500:]
		}
		io.WriteString(w, body)
	})
	limits := rude()
	limits.Bytes, limits.Compressed = 1000, 2000
	f := fetcher(t, snapshot.FetchOptions{Limits: limits})
	for _, path := range []string{"/", "/chunked"} {
		for most, ok := range map[int64]bool{0: true, 1000: true, 5000: true, 999: false, 1: false} {
			got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + path, MaxBytes: most})
			if ok && (err != nil || len(got.Octets) != 1000) {
				t.Errorf("%s, %d: %v, %v", path, most, got, err)
			} else if !ok {
				wantError(t, err, snapshot.TooLarge, "decoded")
			}
		}
	}
}

// Servers that stall, send slowly, never end or lie.
func TestFetchSlowAndLying(t *testing.T) {
	endless := func(c net.Conn, piece string, every time.Duration) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for b := []byte(piece); ; {
			if _, err := c.Write(b); err != nil {
				return
			}
			<-tick.C
		}
	}
	const ok, chunked = "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	answers := map[string]struct {
		begins  string        // what the server sends
		piece   string        // what it then sends repeatedly; empty to wait, "close" to close
		every   time.Duration // how often
		outcome string
	}{
		"stalled-header":    {"", "", 0, "timeout"},
		"stalled-in-header": {ok + "X-A: b\r\nX-B", "", 0, "timeout"},
		"dripping-header":   {ok + "X-A: ", "a", time.Millisecond, "timeout"},
		"huge-header":       {ok, "X-A: " + strings.Repeat("a", 4000) + "\r\n", time.Microsecond, "protocol"},
		"endless-1xx":       {"", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", time.Microsecond, "protocol"},
		"stalled-body":      {ok + "Content-Length: 10\r\n\r\nabc", "", 0, "timeout"},
		// As much as a server can promise within the limit, and more.
		"lying-long":     {ok + "Content-Length: 8388608\r\n\r\nabc", "", 0, "timeout"},
		"lying-too-long": {ok + "Content-Length: 1099511627776\r\n\r\nabc", "", 0, "too-large"},
		// Without close, excess bytes could be taken for the response to the next request.
		"lying-short":          {ok + "Connection: close\r\nContent-Length: 3\r\n\r\nabcdef", "close", 0, ""},
		"lying-twice":          {ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "close", 0, "protocol"},
		"lying-negative":       {ok + "Content-Length: -1\r\n\r\nabcd", "close", 0, "protocol"},
		"dripping":             {ok + "\r\n", "a", time.Millisecond, "timeout"},
		"dripping-chunks":      {chunked, "1\r\na\r\n", time.Millisecond, "timeout"},
		"endless-chunk-header": {chunked + "1;", strings.Repeat("a", 1000), time.Microsecond, "protocol"},
		"flood":                {ok + "\r\n", strings.Repeat("a", 1<<16), time.Nanosecond, "too-large"},
		"gzip-drip": {
			ok + "Content-Encoding: gzip\r\n\r\n" + string(packed(strings.Repeat("a", 100))[:12]), "", 0, "timeout",
		},
		"stalled-redirect": {
			"HTTP/1.1 302 Found\r\nLocation: /lying-short\r\nContent-Length: 100\r\n\r\nabc", "", 0, "",
		},
		"no-http": {"SSH-2.0-OpenSSH_9.2\r\n", "close", 0, "protocol"},
		"old":     {"HTTP/0.9 200 OK\r\n\r\n", "close", 0, "protocol|ok"},
		"switch": {
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "close", 0, "protocol",
		},
	}
	base := rawSite(t, func(c net.Conn, path string) {
		answer := answers[path[1:]]
		io.WriteString(c, answer.begins)
		switch answer.piece {
		case "":
			_, _ = io.Copy(io.Discard, c)
		case "close":
		default:
			endless(c, answer.piece, answer.every)
		}
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: tight()})
	for path, answer := range answers {
		want := answer.outcome
		t.Run(path, func(t *testing.T) {
			bounded(t, 48<<20, func() {
				got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: base + "/" + path})
				switch {
				case want == "":
					if err != nil || string(got.Octets) != "abc" {
						t.Errorf("%v, %v", got, err)
					}
				case want == "too-large":
					wantError(t, err, snapshot.TooLarge, "sent")
				case err == nil && strings.HasSuffix(want, "|ok"):
				default:
					wantError(t, err, snapshot.Unreachable, strings.TrimSuffix(want, "|ok"))
				}
			})
		})
	}
}

// A server that accepts connections and sends nothing, where TLS should begin.
func TestFetchStalledHandshake(t *testing.T) {
	base := rawSite(t, func(net.Conn, string) {})
	f := fetcher(t, snapshot.FetchOptions{Limits: tight()})
	bounded(t, 8<<20, func() {
		_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: "https" + strings.TrimPrefix(base, "http")})
		reason := mustReason(t, err)
		if reason != "timeout" && reason != "tls" && reason != "connect" { // the raw site may close first, it reads no TLS
			t.Error(err)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepted by the kernel, never read
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = f.Fetch(t.Context(), &snapshot.FetchRequest{URL: "https://" + l.Addr().String()})
	wantError(t, err, snapshot.Unreachable, "timeout")
}

// Neither a redirecting server nor its target learns anything about the other, or about the client.
func TestFetchTellsNothing(t *testing.T) {
	var seen atomic.Pointer[http.Header]
	var s *httptest.Server
	s = site(t, func(w http.ResponseWriter, r *http.Request) {
		h := r.Header.Clone()
		seen.Store(&h)
		http.SetCookie(w, &http.Cookie{Name: "track", Value: "1", Path: "/"})
		if r.URL.Path == "/a" {
			http.Redirect(w, r, s.URL+"/b", http.StatusSeeOther)
		}
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	for range 2 {
		got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/a", Accept: "text/html"})
		if err != nil || got.Header.Get("Set-Cookie") != "" {
			t.Errorf("%v, %v", got, err)
		}
		h := *seen.Load()
		if h.Get("Cookie") != "" || h.Get("Referer") != "" || h.Get("Authorization") != "" || h.Get("Accept") != "text/html" {
			t.Errorf("it was sent %v", h)
		}
	}
}

// The same over HTTP/2, where requests share a connection.
func TestFetchSlowHTTP2(t *testing.T) {
	s, roots := tlsSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/header":
			<-r.Context().Done()
		case "/body":
			io.WriteString(w, "abc")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/huge":
			w.Header().Set("X-Huge", strings.Repeat("a", 100_000))
		case "/short":
			w.Header().Set("Content-Length", "10")
			io.WriteString(w, "abc")
		}
		io.WriteString(w, r.Proto)
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: tight(), TLS: roots})
	for path, reason := range map[string]string{"/header": "timeout", "/body": "timeout", "/huge": "protocol", "/short": "protocol|connect"} {
		_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + path})
		if got := mustReason(t, err); !strings.Contains(reason, got) {
			t.Errorf("%s: %v, want %s", path, err, reason)
		}
		if got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL}); err != nil || string(got.Octets) != "HTTP/2.0" {
			t.Errorf("after %s: %v, %v", path, got, err)
		}
	}
}
