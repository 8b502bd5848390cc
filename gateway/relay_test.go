package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
)

const (
	captured = "/up/v1/responses"
	streamed = "/up/v1/files"
)

// The rest of the path is forwarded unchanged.
func TestPath(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }, nil)
	for _, path := range []string{
		"/v1/responses", "/v1/models?a=b&a=%20&c", "/v1/a%2Fb/c%20d", "//v1///x", "/v1/../x/./y", "/v1/é", "/v1/%C3%A9?q=é",
		"/", "/?", "/v1/x?;%zz", "/v1/a;b,c=d", "/v1/a:predict",
	} {
		c := w.raw(t, "GET /up"+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		_, got := readRaw(t, bufio.NewReader(c))
		want := strings.ReplaceAll(path, "/é", "/%C3%A9") // invalid URIs are escaped
		if string(got) != want {
			t.Errorf("%s arrived as %s", path, got)
		}
	}
}

// An upstream's URL may have a path, including an escaped one.
func TestUpstreamPath(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }))
	defer upstream.Close()
	var ups []gateway.Upstream
	for name, path := range map[string]string{"plain": "/base", "slash": "/base/", "escaped": "/b%2Fc"} {
		u, _ := url.Parse(upstream.URL + path)
		ups = append(ups, gateway.Upstream{Name: name, URL: u})
	}
	w := newWorld(t, nil, &setup{options: gateway.Options{Upstreams: ups}})
	for path, want := range map[string]string{
		"/plain/v1?x=1": "/base/v1?x=1", "/plain": "/base", "/plain/a%2Fb": "/base/a%2Fb", "/slash/v1": "/base/v1",
		"/escaped/v1": "/b%2Fc/v1", "/escaped/a%2Fb": "/b%2Fc/a%2Fb",
	} {
		if _, got := w.do(t, w.request(t, "GET", path, nil)); string(got) != want {
			t.Errorf("%s arrived as %s, want %s", path, got, want)
		}
	}
}

// Request headers are forwarded unchanged, except ibid's own and hop-by-hop headers.
func TestRequestHeader(t *testing.T) {
	for _, path := range []string{captured, streamed} {
		t.Run(path, func(t *testing.T) {
			got := make(chan http.Header, 1)
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				r.Header["Host"] = []string{r.Host}
				r.Header["Encoding"] = r.TransferEncoding
				got <- r.Header
			}, nil)
			c := w.raw(t, "POST "+path+" HTTP/1.1\r\nHost: ibid.localhost\r\nAuthorization: Bearer key\r\nX-A: 1\r\nX-A: 2\r\n"+
				"X-Forwarded-For: 192.0.2.1\r\nIbid-Run: r\r\nIbid-Step: 1\r\nIbid-Agent: a\r\nIbid-Conversation: c\r\nIbid-Follows: none\r\nIbid-Token: secret\r\n"+
				"Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: x\r\nTe: trailers\r\nAccept-Encoding: gzip, br\r\n"+
				"Content-Length: 2\r\n\r\n{}")
			if res, body := readRaw(t, bufio.NewReader(c)); res.StatusCode != 200 {
				t.Fatalf("got %d %s", res.StatusCode, body)
			}
			u, _ := url.Parse(w.upstream.URL)
			want := http.Header{
				"Authorization": {"Bearer key"}, "X-A": {"1", "2"}, "X-Forwarded-For": {"192.0.2.1"}, "Te": {"trailers"},
				"Accept-Encoding": {"identity"}, "Content-Length": {"2"}, "Host": {u.Host}, "Encoding": nil,
			}
			if path == streamed {
				want["Accept-Encoding"] = []string{"gzip, br"}
			}
			testenv.Equal(t, "what arrived", want, <-got)
		})
	}
}

// The response's status, headers and body are forwarded unchanged: only ids are added on captured routes, and the
// upstream cannot set ibid's headers.
func TestResponseHeader(t *testing.T) {
	for _, path := range []string{captured, streamed} {
		t.Run(path, func(t *testing.T) {
			w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
				h := w.Header()
				h["Date"], h["Content-Type"] = nil, nil
				h["X-A"] = []string{"1", "2"}
				h.Set("Ibid-Run", "forged")
				h.Set("Ibid-Answer", "forged")
				h.Set("Ibid-Other", "forged")
				h.Set("Connection", "X-Hop")
				h.Set("X-Hop", "1")
				h.Set("Keep-Alive", "timeout=1")
				h.Set("Set-Cookie", "a=b")
				w.WriteHeader(418)
				fmt.Fprint(w, "<html>teapot")
			}, nil)
			r := w.request(t, "POST", path, strings.NewReader("{}"))
			r.Header.Set("Ibid-Run", "mine")
			res, body := w.do(t, r)
			want := http.Header{"X-A": {"1", "2"}, "Set-Cookie": {"a=b"}, "Content-Length": {"12"}}
			if path == captured {
				want.Set("Ibid-Run", "mine")
			}
			testenv.Equal(t, "headers", want, res.Header)
			if res.StatusCode != 418 || string(body) != "<html>teapot" {
				t.Errorf("got %d %q", res.StatusCode, body)
			}
		})
	}
}

func TestInformational(t *testing.T) {
	for _, path := range []string{captured, streamed} {
		t.Run(path, func(t *testing.T) {
			w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Link", "</style.css>")
				w.Header().Set("Ibid-Run", "forged")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Del("Link")
				fmt.Fprint(w, "{}")
			}, nil)
			r := w.request(t, "POST", path, strings.NewReader("{}"))
			var early []string
			r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
					early = append(early, strconv.Itoa(code)+h.Get("Link")+h.Get("Ibid-Run"))
					return nil
				},
			}))
			res, body := w.do(t, r)
			testenv.Equal(t, "1xx responses", []string{"103</style.css>"}, early)
			if res.Header.Get("Link") != "" || string(body) != "{}" {
				t.Errorf("got %v %q", res.Header, body)
			}
		})
	}
}

// A client that waits for permission to send its body gets it once, or a final response without it; other informational
// responses of the upstream are forwarded.
func TestExpect(t *testing.T) {
	for _, path := range []string{captured, streamed} {
		for _, refuses := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s refuses=%t", path, refuses), func(t *testing.T) {
				w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusProcessing)
					if refuses {
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					_, _ = io.Copy(w, r.Body)
				}, nil)
				c := w.raw(t, "POST "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
				b := bufio.NewReader(c)
				var early []int
				res, body := readRaw(t, b)
				for ; res.StatusCode < 200; res, body = readRaw(t, b) {
					if early = append(early, res.StatusCode); res.StatusCode == http.StatusContinue {
						_, _ = io.WriteString(c, "{}")
					}
				}
				slices.Sort(early)
				want, status := []int{100, 102}, http.StatusOK
				if refuses {
					status = http.StatusUnauthorized
					if path == streamed { // the upstream did not ask for the body
						want = []int{102}
					}
				}
				if diff := cmp.Diff(want, early); diff != "" || res.StatusCode != status || !refuses && string(body) != "{}" {
					t.Errorf("got %d %q; before (-want +got):\n%s", res.StatusCode, body, diff)
				}
			})
		}
	}
}

func TestTrailers(t *testing.T) {
	for _, path := range []string{captured, streamed} {
		t.Run(path, func(t *testing.T) {
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Trailer", "X-Sum, Ibid-Run")
				_, _ = io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, "{}")
				w.Header().Set("X-Sum", "1")
				w.Header().Set("Ibid-Run", "forged")
				if r.URL.RawQuery != "" {
					w.Header().Set(http.TrailerPrefix+"X-Late", "2")
				}
			}, nil)
			for query, want := range map[string]http.Header{
				"": {"X-Sum": {"1"}}, "?late": {"X-Sum": {"1"}, "X-Late": {"2"}},
			} {
				res, _ := w.do(t, w.request(t, "POST", path+query, strings.NewReader("{}")))
				testenv.Equal(t, query+": trailers", want, res.Trailer)
			}
		})
	}
}

// Every byte of a body arrives, at any pace and with any version of HTTP on either side.
func TestBytes(t *testing.T) {
	h2c := func() *http.Client {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		return &http.Client{Transport: transport}
	}
	for _, test := range []struct {
		name      string
		tls, up2  bool
		client    func() *http.Client
		protoSeen string
	}{
		{name: "http1", protoSeen: "HTTP/1.1"},
		{name: "h2c in", client: h2c, protoSeen: "HTTP/2.0"},
		{name: "tls h2 in", tls: true, protoSeen: "HTTP/2.0"},
		{name: "h2 upstream", up2: true, protoSeen: "HTTP/1.1"},
		{name: "h2 both", tls: true, up2: true, protoSeen: "HTTP/2.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &setup{tls: test.tls}
			if test.up2 {
				s.overTLS()
			}
			w := newWorld(t, sendRandom, s)
			if test.client != nil {
				w.client = test.client()
				t.Cleanup(w.client.CloseIdleConnections)
			}
			for _, path := range []string{captured, streamed} {
				for _, chunk := range []int{1, 7, 100, 4096, 5000, 64 << 10} {
					for _, sized := range []bool{false, true} {
						size := min(chunk*50, 1<<20) + 3
						query := fmt.Sprintf("?size=%d&chunk=%d&sized=%t", size, chunk, sized)
						res, body := w.do(t, w.request(t, "POST", path+query, strings.NewReader(strings.Repeat("x", chunk))))
						if res.Proto != test.protoSeen {
							t.Fatalf("spoke %s", res.Proto)
						}
						if len(body) != size || hash(body) != res.Header.Get("X-Sum") {
							t.Errorf("%s%s: %d bytes, not those that were sent", path, query, len(body))
						}
					}
				}
			}
		})
	}
}

// sendRandom sends a body of the requested size in chunks, with its hash in the header.
func sendRandom(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("early") == "" {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	size, _ := strconv.Atoi(q.Get("size"))
	chunk, _ := strconv.Atoi(q.Get("chunk"))
	body := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = random.Read(body)
	w.Header().Set("X-Sum", hash(body))
	w.Header().Set("Content-Type", "text/event-stream")
	if q.Get("sized") == "true" {
		w.Header().Set("Content-Length", strconv.Itoa(size))
	}
	for len(body) > 0 {
		n := min(chunk, len(body))
		if _, err := w.Write(body[:n]); err != nil {
			return
		}
		flush(w)
		body = body[n:]
	}
}

// An upstream that answers an upload before it has read it may cost the client its connection, as without a gateway,
// but never corrupts data or costs more: the transport's last read must not collide with the connection's next request.
func TestEarlyAnswer(t *testing.T) {
	s := &setup{}
	s.overTLS()
	w := newWorld(t, sendRandom, s)
	whole := 0
	for i := range 150 {
		query := fmt.Sprintf("?early=1&size=%d&chunk=%d", 350+i*100, 7+i)
		res, err := w.client.Do(w.request(t, "POST", streamed+query, strings.NewReader(strings.Repeat("x", 7+40*i))))
		if err != nil {
			continue
		}
		if r, body := readReply(t, res); hash(body) != r.Header.Get("X-Sum") {
			t.Errorf("%s: %d bytes, not those that were sent", query, len(body))
		}
		whole++
	}
	if whole < 100 {
		t.Errorf("only %d of 150 answers came", whole)
	}
}

func hash(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// A client with a body loses nothing if the upstream answers at once (golang/go#40747).
func TestInstant(t *testing.T) {
	body := bytes.Repeat([]byte("data: {\"a\":1}\n\n"), 200)
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { // without reading the request
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; i < len(body); i += 150 {
			_, _ = w.Write(body[i : i+150])
			flush(w)
		}
	}, nil)
	const workers, each = 4, 250
	failed := make(chan error, workers)
	for range workers {
		go func() {
			for range each {
				res, err := w.client.Post(w.url+captured, "application/json", strings.NewReader(strings.Repeat("x", 2000)))
				if err != nil {
					failed <- err
					return
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || !bytes.Equal(got, body) {
					failed <- fmt.Errorf("%d of %d bytes: %w", len(got), len(body), err)
					return
				}
			}
			failed <- nil
		}()
	}
	for range workers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// A chunk is forwarded when it arrives, and the header before the first chunk.
func TestNothingWaits(t *testing.T) {
	for _, path := range []string{captured, streamed} {
		t.Run(path, func(t *testing.T) {
			next := make(chan string)
			w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				flush(w)
				for s := range next {
					fmt.Fprint(w, s)
					flush(w)
				}
			}, nil)
			res, err := w.client.Do(w.request(t, "POST", path, strings.NewReader("{}"))) // returns with the header
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			buf := make([]byte, 100)
			for range 3 {
				next <- "data: {}\n\n"
				if n, err := res.Body.Read(buf); n != 10 || err != nil {
					t.Fatalf("read %d, %v", n, err)
				}
			}
			close(next)
			if rest, err := io.ReadAll(res.Body); len(rest) > 0 || err != nil {
				t.Errorf("then %q, %v", rest, err)
			}
		})
	}
}

// Uploads stream in both directions.
func TestUpload(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintln(w, "got "+lines.Text())
			flush(w)
		}
	}, nil)
	body, send := io.Pipe()
	go func() { _, _ = io.WriteString(send, "one\n") }()
	res, err := w.client.Do(w.request(t, "PUT", streamed, body))
	testenv.OK(t, err)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for _, word := range []string{"one", "two", "three"} {
		if word != "one" {
			_, _ = io.WriteString(send, word+"\n")
		}
		if !lines.Scan() || lines.Text() != "got "+word {
			t.Fatalf("got %q, %v", lines.Text(), lines.Err())
		}
	}
	_ = send.Close()
	if lines.Scan() {
		t.Errorf("then %q", lines.Text())
	}
}

// When a client leaves, its upstream call ends.
func TestClientLeaves(t *testing.T) {
	for _, path := range []string{captured, streamed} {
		t.Run(path, func(t *testing.T) {
			ended := make(chan struct{})
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, "data: {}\n\n")
				flush(w)
				<-r.Context().Done()
				close(ended)
			}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			res, err := w.client.Do(w.request(t, "POST", path, strings.NewReader("{}")).WithContext(ctx))
			testenv.OK(t, err)
			cancel()
			_ = res.Body.Close()
			<-ended
		})
	}
}

// If the upstream breaks off, so does the response: it never looks complete.
func TestUpstreamBreaks(t *testing.T) {
	for name, answer := range map[string]string{
		"chunked":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n",
		"inside a chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\ndata:",
		"length too big": "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ndata:",
		"bad chunk":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\nxyz\r\n",
	} {
		for _, path := range []string{captured, streamed} {
			t.Run(name+path, func(t *testing.T) {
				w := newWorld(t, hijack(answer), nil)
				res, err := w.client.Do(w.request(t, "POST", path, strings.NewReader("{}")))
				testenv.OK(t, err)
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err == nil {
					t.Error("the response looks complete")
				}
				if string(body) != "data:" {
					t.Errorf("got %q", body)
				}
			})
		}
	}
}

// hijack answers with raw bytes and closes the connection.
func hijack(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, answer)
	}
}

// Bytes that an upstream sends beyond its Content-Length are dropped.
func TestLengthTooSmall(t *testing.T) {
	w := newWorld(t, hijack("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"), nil)
	for range 2 {
		if _, body := w.do(t, w.request(t, "POST", captured, strings.NewReader("{}"))); string(body) != "{}" {
			t.Errorf("got %q", body)
		}
	}
}

// An invalid HTTP response is a 502 that does not reveal the upstream's address or the request.
func TestNoResponse(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing": "", "no HTTP": "secret words\r\n\r\n", "status 099": "HTTP/1.1 099 Odd\r\n\r\n", "switching": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
		"two lengths":  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"bad header":   "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
		"split header": "HTTP/1.1 200 OK\r\nX: a\rIbid-Run: b\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hijack(answer), nil)
			res, body := w.do(t, w.request(t, "POST", captured+"?key=secret", strings.NewReader(`{"q":"secret"}`)))
			if res.StatusCode != 502 || res.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("got %d %s", res.StatusCode, body)
			}
			if all := string(body) + w.log.String(); strings.Contains(all, "secret") {
				t.Errorf("a secret got out: %s", all)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	u, _ := url.Parse("http://127.0.0.1:1/")
	w := newWorld(t, nil, &setup{options: gateway.Options{Upstreams: []gateway.Upstream{{Name: "up", URL: u, Provider: "openai"}}}})
	for _, path := range []string{captured, streamed} {
		res, body := w.do(t, w.request(t, "POST", path, strings.NewReader("{}")))
		if res.StatusCode != 502 || !strings.Contains(string(body), "cannot be reached") {
			t.Errorf("got %d %s", res.StatusCode, body)
		}
	}
	timeout := gateway.NewTransport(nil)
	timeout.ResponseHeaderTimeout = time.Millisecond
	w = newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, &setup{options: gateway.Options{Transport: timeout}})
	if res, body := w.do(t, w.request(t, "POST", captured, strings.NewReader("{}"))); res.StatusCode != 504 {
		t.Errorf("got %d %s", res.StatusCode, body)
	}
}

// Ambiguous requests are refused, or reach the upstream with one meaning.
func TestSmuggling(t *testing.T) {
	for name, test := range map[string]struct {
		request string
		status  int
	}{
		"length and chunked": {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200},
		"two lengths":        {"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"odd encoding":       {"Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 501},
		"encoding, space":    {"Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400},
		"signed length":      {"Content-Length: +2\r\n\r\n{}", 400},
		"bad chunk size":     {"Transfer-Encoding: chunked\r\n\r\n2x\r\n{}\r\n0\r\n\r\n", 400},
		"bare line feed":     {"Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n", 400},
		"second request":     {"Content-Length: 2\r\nConnection: close\r\n\r\n{}POST /smuggled HTTP/1.1\r\n\r\n", 200},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan string, 10)
			w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				seen <- fmt.Sprintf("%s %d %v %s", r.URL.Path, r.ContentLength, r.TransferEncoding, body)
			}, nil)
			c := w.raw(t, "POST "+captured+" HTTP/1.1\r\nHost: localhost\r\n"+test.request)
			res, _ := readRaw(t, bufio.NewReader(c))
			if res.StatusCode != test.status {
				t.Errorf("got %d, want %d", res.StatusCode, test.status)
			}
			if test.status == 200 {
				if got := <-seen; got != "/v1/responses 2 [] {}" {
					t.Errorf("the upstream saw %s", got)
				}
			}
			if len(seen) > 0 {
				t.Errorf("the upstream saw another request: %s", <-seen)
			}
		})
	}
}

// A request that is not encoded as it says is the client's fault, also if its body is streamed to the upstream.
func TestClientFaults(t *testing.T) {
	const chunked = "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
	for _, path := range []string{captured, "/up/v1/files"} {
		for name, rest := range map[string]string{
			"size of a chunk":   chunked + "2x\r\n{}\r\n0\r\n\r\n",
			"end of a chunk":    chunked + "2\r\n{}xx0\r\n\r\n",
			"negative size":     chunked + "-2\r\n{}\r\n0\r\n\r\n",
			"not a second size": chunked + "2\r\n{}\r\nzz\r\n\r\n",
		} {
			w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, nil)
			c := w.raw(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+rest)
			if res, body := readRaw(t, bufio.NewReader(c)); res.StatusCode != 400 {
				t.Errorf("%s, %s: got %d %s", path, name, res.StatusCode, body)
			}
		}
	}
}

// Over HTTP/2 a request can have a method with a space, and a body of another length than announced.
func TestClientFaultsHTTP2(t *testing.T) {
	for _, path := range []string{captured, "/up/v1/files"} {
		for name, test := range map[string]struct{ method, length string }{
			"method": {"PO ST", ""}, "length": {"POST", "5"},
		} {
			w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, nil)
			c := w.raw(t, http2.ClientPreface)
			framer := http2.NewFramer(c, c)
			testenv.OK(t, framer.WriteSettings())
			var block bytes.Buffer
			encoder := hpack.NewEncoder(&block)
			for _, field := range [][2]string{
				{":method", test.method}, {":scheme", "http"}, {":authority", "localhost"}, {":path", path}, {"content-length", test.length},
			} {
				if field[1] != "" {
					testenv.OK(t, encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
				}
			}
			testenv.OK(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}))
			testenv.OK(t, framer.WriteData(1, true, []byte("{}")))
			framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
			for {
				frame, err := framer.ReadFrame()
				testenv.OK(t, err)
				if r, ok := frame.(*http2.RSTStreamFrame); ok {
					if name == "method" && r.ErrCode == http2.ErrCodeProtocol {
						break // the server refused it
					}
					t.Fatalf("%s, %s: reset with %v", path, name, r.ErrCode)
				}
				if h, ok := frame.(*http2.MetaHeadersFrame); ok {
					if status := h.PseudoValue("status"); status != "400" {
						t.Errorf("%s, %s: got %s", path, name, status)
					}
					break
				}
			}
		}
	}
}

// Clients that send nonsense cannot flood the log.
func TestBrokenConnectionsAreLimitedInLog(t *testing.T) {
	var log bytes.Buffer
	server := gateway.NewServer("", http.NotFoundHandler(), &gateway.ServerOptions{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for range 500 {
		server.ErrorLog.Print("http2: server: error reading preface from client 127.0.0.1:1: nonsense")
	}
	server.ErrorLog.Print("http: panic serving 127.0.0.1:1: a fault\ngoroutine 1")
	if n := strings.Count(log.String(), "nonsense"); n == 0 || n > 20 {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(log.String(), "panic serving") || !strings.Contains(log.String(), "lines_left_out=480") {
		t.Errorf("the log ends with %s", log.String()[max(0, len(log.String())-300):])
	}
}

func TestWebSocket(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Ibid-Run") != "" || r.Header.Get("X-Forwarded-For") != "1" || r.RequestURI != "/v1/realtime?a=%zz" {
			t.Errorf("the upstream saw %s %v", r.RequestURI, r.Header)
		}
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, buf)
	}, nil)
	c := w.raw(t, "GET /up/v1/realtime?a=%zz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nIbid-Run: r\r\nX-Forwarded-For: 1\r\n\r\n")
	buf := bufio.NewReader(c)
	if res, _ := readRaw(t, buf); res.StatusCode != 101 || res.Header.Get("Upgrade") != "websocket" {
		t.Fatalf("got %d %v", res.StatusCode, res.Header)
	}
	for _, word := range []string{"one", "two"} {
		_, _ = io.WriteString(c, word)
		got := make([]byte, 3)
		if _, err := io.ReadFull(buf, got); err != nil || string(got) != word {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // tunnels end with the gateway
	if err := w.gateway.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	if _, err := buf.ReadByte(); err == nil {
		t.Error("the tunnel is still there")
	}
	var timeout net.Error
	if _, err := buf.ReadByte(); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the tunnel is still there")
	}
}

// A client that offers HTTP/2, as the JDK's does with every request, makes an ordinary call: it is captured, with any
// version of HTTP upstream.
func TestUpgradeOffered(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			var s setup
			if proto == "HTTP/2.0" {
				s.overTLS()
			}
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
					if v := r.Header[name]; v != nil {
						t.Errorf("%s reached the upstream: %v", name, v)
					}
				}
				if r.Proto != proto {
					t.Errorf("the upstream speaks %s", r.Proto)
				}
				answerJSON(chatBody("So it is."))(w, r)
			}, &s)
			for _, connection := range []string{"Upgrade, HTTP2-Settings", "Upgrade"} { // the second does not list all of its fields
				for _, path := range []string{chat, streamed} {
					c := w.raw(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: "+connection+"\r\nUpgrade: h2c\r\n"+
						"HTTP2-Settings: AAEAAEAAAAIAAAAA\r\nContent-Length: 2\r\n\r\n{}")
					res, body := readRaw(t, bufio.NewReader(c))
					if res.StatusCode != 200 || string(body) != chatBody("So it is.") {
						t.Fatalf("%s: got %d %s", path, res.StatusCode, body)
					}
					if path == chat {
						w.stored(t, res.Header.Get("Ibid-Answer"))
					}
				}
			}
		})
	}
}

// An offer of any other protocol is forwarded where no answer would be missed.
func TestUpgradeToAnother(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Upgrade")) }, nil)
	for path, want := range map[string]string{streamed: "irc/6.9", chat: ""} {
		c := w.raw(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: irc/6.9\r\nContent-Length: 2\r\n\r\n{}")
		if res, body := readRaw(t, bufio.NewReader(c)); res.StatusCode != 200 || string(body) != want {
			t.Errorf("%s: got %d %q", path, res.StatusCode, body)
		}
	}
}
