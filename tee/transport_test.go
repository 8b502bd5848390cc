package tee_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/tee"
)

// answered is one call of OnAnswer.
type answered struct {
	req    *http.Request
	answer *ibid.Answer
	err    error
}

// calls collects the calls of OnAnswer.
type calls struct {
	mu  sync.Mutex
	all []answered
}

func (c *calls) add(req *http.Request, a *ibid.Answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, answered{req, a, err})
}

// take returns the collected calls, and starts over.
func (c *calls) take() []answered {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

// server is a test server and the way to it.
type server struct {
	name, url string
	base      http.RoundTripper
}

// servers returns one that speaks HTTP/1.1, and one that speaks HTTP/2.
func servers(t *testing.T, handler http.HandlerFunc) []server {
	t.Helper()
	var all []server
	for _, major := range []int{1, 2} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != major {
				t.Errorf("HTTP %d is spoken, not %d", r.ProtoMajor, major)
			}
			handler(w, r)
		}))
		s.EnableHTTP2 = major == 2
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that leave are part of the tests
		s.StartTLS()
		t.Cleanup(s.Close)
		all = append(all, server{fmt.Sprintf("HTTP %d", major), s.URL, s.Client().Transport})
	}
	return all
}

// Every response passes unchanged, in any chunks, and its answer is known once, before its end is seen.
func TestTransportInputs(t *testing.T) {
	inputs := readInputs(t)
	for name, in := range inputs {
		in.mark = marked(in)
		inputs[name] = in
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		in := inputs[r.Header.Get("Input")]
		_, _ = io.Copy(io.Discard, r.Body)
		r2 := rand.New(rand.NewPCG(uint64(len(in.response)), 1))
		if r2.IntN(2) == 0 {
			w.Header().Set("Content-Length", fmt.Sprint(len(in.response)))
		}
		w.Header().Set("Content-Type", "application/json")
		for rest := in.response; len(rest) > 0; {
			n := min(len(rest), 1+r2.IntN(1+r2.IntN(len(in.response))))
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
			_ = http.NewResponseController(w).Flush()
		}
	}
	for _, s := range servers(t, handler) {
		t.Run(s.name, func(t *testing.T) {
			for name, in := range inputs {
				if len(in.response) > 0 {
					t.Run(name, func(t *testing.T) { in.check(t, name, s) })
				}
			}
		})
	}
}

func (in input) check(t *testing.T, name string, s server) {
	t.Helper()
	var got calls
	given, before := 0, -1
	client := &http.Client{Transport: &tee.Transport{Base: s.base, OnAnswer: func(req *http.Request, a *ibid.Answer, err error) {
		before = given
		got.add(req, a, err)
	}}}
	req := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/responses", bytes.NewReader(in.request)))(t)
	req.Header.Set("Input", name)
	res, err := client.Do(req)
	testenv.OK(t, err)
	defer res.Body.Close()
	hash := sha256.New()
	buf := make([]byte, 1+len(in.response)/3)
	for err = nil; err == nil; {
		var n int
		n, err = res.Body.Read(buf)
		hash.Write(buf[:n])
		given += n
	}
	if !errors.Is(err, io.EOF) || given != len(in.response) || [32]byte(hash.Sum(nil)) != sha256.Sum256(in.response) {
		t.Errorf("%d of %d bytes, or others, and %v", given, len(in.response), err)
	}
	all := got.take()
	if len(all) != 1 || all[0].req != req {
		t.Fatalf("OnAnswer was called %d times, or with another request", len(all))
	}
	if in.several {
		return
	}
	if in.mark > 0 && before >= in.mark {
		t.Errorf("%d bytes were handed out before OnAnswer, though the end mark is whole with %d", before, in.mark)
	}
	want, wantErr := ibid.Decode(in.response, &ibid.DecodeOptions{Request: in.request})
	if diff := cmp.Diff(want, all[0].answer); diff != "" || fmt.Sprint(wantErr) != fmt.Sprint(all[0].err) {
		t.Errorf("errors %v and %v; answers (-Decode +Transport):\n%s", wantErr, all[0].err, diff)
	}
}

// marked returns after how many bytes an input's end mark is complete, or 0 if it has none.
func marked(in input) int {
	d := ibid.Decoder{Options: ibid.DecodeOptions{Request: in.request}}
	end, last := 0, int64(-1)
	for i := range in.response {
		_, _ = d.Write(in.response[i : i+1])
		if at, _ := d.End(); at != last {
			end, last = i+1, at
		}
	}
	if last < 0 {
		return 0
	}
	return end
}

// Documents that only the request names are found, whether or not the request can be repeated.
func TestTransportRequest(t *testing.T) {
	const (
		request  = `{"model":"command","documents":[{"id":"mill","data":{"title":"The mill","text":"Herons nest."}}],"messages":[]}`
		response = `{"id":"1","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"Herons"}],"citations":[{"start":0,"end":6,"text":"Herons","sources":[{"type":"document","id":"mill"}]}]}}`
	)
	handler := func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		if string(sent) != request && len(sent) <= tee.MaxRequest {
			t.Errorf("the request arrived as %q", sent)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, response)
	}
	long := request + strings.Repeat(" ", tee.MaxRequest)
	for _, s := range servers(t, handler) {
		t.Run(s.name, func(t *testing.T) {
			for _, tc := range []struct {
				name  string
				body  func() io.Reader
				title string
			}{
				{"can be repeated", func() io.Reader { return strings.NewReader(request) }, "The mill"},
				{"cannot be repeated", func() io.Reader { return io.MultiReader(strings.NewReader(request)) }, "The mill"},
				{"too long", func() io.Reader { return strings.NewReader(long) }, ""},
				{"too long, and cannot be repeated", func() io.Reader { return io.MultiReader(strings.NewReader(long)) }, ""},
			} {
				t.Run(tc.name, func(t *testing.T) {
					var got calls
					client := &http.Client{Transport: &tee.Transport{Base: s.base, OnAnswer: got.add}}
					req := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v2/chat", tc.body()))(t)
					before := *req
					res, err := client.Transport.RoundTrip(req)
					testenv.OK(t, err)
					testenv.Must(io.Copy(io.Discard, res.Body))(t)
					_ = res.Body.Close()
					if req.Body != before.Body || res.ProtoMajor == 1 && res.Request != req { // HTTP/2 always reports a copy
						t.Error("the request was changed, or another is said to have been sent")
					}
					all := got.take()
					if len(all) != 1 || len(all[0].answer.Sources) != 1 || all[0].answer.Sources[0].Title != tc.title {
						t.Errorf("answers: %+v", all)
					}
				})
			}
		})
	}
}

// Which responses are decoded, and which pass unread.
func TestTransportMatch(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = r.Header["Want-Type"]
		status := http.StatusOK
		if _, err := fmt.Sscan(r.Header.Get("Want-Status"), &status); err == nil && status == http.StatusFound {
			w.Header().Set("Location", "/")
		}
		w.WriteHeader(status)
		if status != http.StatusNoContent {
			_, _ = io.WriteString(w, r.Header.Get("Want-Body"))
		}
	}
	for _, s := range servers(t, handler) {
		t.Run(s.name, func(t *testing.T) {
			for _, tc := range testenv.Table[struct {
				Method, Path, Kind string
				Status             int
				Body, Want         string
			}](t, "testdata/match.txt") {
				tc.Body = strings.ReplaceAll(tc.Body, "$body", body)
				t.Run(fmt.Sprint(tc.Method, tc.Path, tc.Kind, tc.Status), func(t *testing.T) {
					var got calls
					transport := &tee.Transport{Base: s.base, OnAnswer: got.add}
					if tc.Path == "/matched" {
						transport.Match = func(req *http.Request) bool { return req.URL.Path == "/matched" }
					}
					req := testenv.Must(http.NewRequestWithContext(t.Context(), tc.Method, s.url+tc.Path, http.NoBody))(t)
					req.Header.Set("Want-Type", tc.Kind)
					req.Header.Set("Want-Status", fmt.Sprint(tc.Status))
					req.Header.Set("Want-Body", tc.Body)
					res, err := transport.RoundTrip(req)
					testenv.OK(t, err)
					sent, err := io.ReadAll(res.Body)
					if err != nil || string(sent) != tc.Body {
						t.Errorf("read %q, %v", sent, err)
					}
					_ = res.Body.Close()
					var answers []string
					for _, a := range got.take() {
						text := a.answer.Text
						if e := a.answer.Error; e != nil {
							text += fmt.Sprintf(" %s: %s", e.Code, e.Message)
						}
						answers = append(answers, fmt.Sprint(text, " ", a.err))
					}
					var want []string
					if tc.Want != "" {
						want = []string{tc.Want}
					}
					testenv.Equal(t, "answers", want, answers)
				})
			}
		})
	}
}

// A thousand calls at once, each with an answer of its own.
func TestTransportConcurrent(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		id := r.Header.Get("Number")
		_, _ = io.WriteString(w, strings.ReplaceAll(chunkA, `"a"`, `"`+id+`"`))
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, done)
	}
	for _, s := range servers(t, handler) {
		t.Run(s.name, func(t *testing.T) {
			var got calls
			var events atomic.Int64
			client := &http.Client{Transport: &tee.Transport{
				Base: s.base, OnAnswer: got.add,
				OnEvent: func(*http.Request, ibid.Event) { events.Add(1) },
			}}
			gate := make(chan struct{}, 100)
			var wg sync.WaitGroup
			for i := range 1000 {
				gate <- struct{}{}
				wg.Go(func() {
					defer func() { <-gate }()
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/chat/completions", strings.NewReader("{}"))
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("Number", fmt.Sprint(i))
					res, err := client.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					defer res.Body.Close()
					if _, err := io.Copy(io.Discard, res.Body); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			seen := map[string]bool{}
			for _, a := range got.take() {
				if number := a.req.Header.Get("Number"); a.answer.Text != number || !a.answer.Complete || a.err != nil {
					t.Errorf("call %s: answer %q, %v", number, a.answer.Text, a.err)
				}
				seen[a.answer.Text] = true
			}
			if len(seen) != 1000 || events.Load() < 2000 {
				t.Errorf("%d answers, %d events", len(seen), events.Load())
			}
		})
	}
}

// A client, or an upstream, that goes away in the middle of a stream.
func TestTransportBreaks(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunkA)
		_ = http.NewResponseController(w).Flush()
		if r.Header.Get("Break") == "" {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler) // or the last bytes of a whole response could overtake a client that leaves
	}
	for _, s := range servers(t, handler) {
		t.Run(s.name, func(t *testing.T) {
			var got calls
			client := &http.Client{Transport: &tee.Transport{Base: s.base, OnAnswer: got.add}}
			first := make([]byte, len(chunkA))
			for name, leave := range map[string]func(cancel func(), res *http.Response){
				"by Close": func(_ func(), res *http.Response) { _ = res.Body.Close() },
				"by its context": func(cancel func(), res *http.Response) {
					cancel()
					_, _ = io.Copy(io.Discard, res.Body)
				},
				"by Close during a Read": func(_ func(), res *http.Response) {
					var wg sync.WaitGroup
					wg.Go(func() { _, _ = io.Copy(io.Discard, res.Body) })
					_ = res.Body.Close()
					wg.Wait()
				},
			} {
				ctx, cancel := context.WithCancel(t.Context())
				req := testenv.Must(http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions", http.NoBody))(t)
				res, err := client.Do(req)
				testenv.OK(t, err)
				testenv.Must(io.ReadFull(res.Body, first))(t)
				leave(cancel, res)
				_ = res.Body.Close()
				cancel()
				if all := got.take(); len(all) != 1 || all[0].answer.Text != "a" || !errors.Is(all[0].err, tee.ErrClosed) {
					t.Errorf("a client that leaves %s: %+v", name, all)
				}
			}
			req := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", http.NoBody))(t)
			req.Header.Set("Break", "yes")
			res, err := client.Do(req)
			testenv.OK(t, err)
			defer res.Body.Close()
			_, err = io.Copy(io.Discard, res.Body)
			all := got.take()
			if err == nil || len(all) != 1 || all[0].answer.Text != "a" || !errors.Is(all[0].err, err) {
				t.Errorf("an upstream that breaks off with %v: %+v", err, all)
			}
		})
	}
}

// Trailers arrive, a compressed body is decoded whoever requested it, and other connections are left alone.
func TestTransportHTTP(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Trailer", "Checksum")
		sent := []byte(body)
		if accepted := r.Header.Get("Accept-Encoding"); strings.HasPrefix(accepted, "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			sent = pack(t, "gzip", body)
		}
		_, _ = w.Write(sent)
		w.Header().Set("Checksum", "7")
	}
	for _, s := range servers(t, handler) {
		t.Run(s.name, func(t *testing.T) {
			for _, accept := range []string{"", "identity", "gzip, br"} {
				var got calls
				client := &http.Client{Transport: &tee.Transport{Base: s.base, OnAnswer: got.add}}
				req := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader("{}")))(t)
				if accept != "" {
					req.Header.Set("Accept-Encoding", accept)
				}
				res, err := client.Do(req)
				testenv.OK(t, err)
				sent, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				want := body
				if accept == "gzip, br" {
					want = string(pack(t, "gzip", body))
				}
				if err != nil || string(sent) != want || res.Trailer.Get("Checksum") != "7" || res.Uncompressed != (accept == "") {
					t.Errorf("Accept-Encoding %q: read %q, %v, trailers %v", accept, sent, err, res.Trailer)
				}
				if all := got.take(); len(all) != 1 || all[0].answer.Text != "ab" || all[0].err != nil {
					t.Errorf("Accept-Encoding %q: %+v", accept, all)
				}
				client.CloseIdleConnections()
			}
		})
	}
}

func TestTransportUpgrade(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString(line)
		_ = rw.Flush()
	}))
	defer s.Close()
	transport := &tee.Transport{OnAnswer: func(*http.Request, *ibid.Answer, error) { t.Error("an answer") }}
	req := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/responses", http.NoBody))(t)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	res, err := transport.RoundTrip(req)
	testenv.OK(t, err)
	defer res.Body.Close()
	rw, ok := res.Body.(io.ReadWriter)
	if !ok {
		t.Fatalf("the body of an upgraded connection is a %T", res.Body)
	}
	_, _ = io.WriteString(rw, "hello\n")
	if got, err := io.ReadAll(rw); string(got) != "hello\n" {
		t.Errorf("read %q, %v", got, err)
	}
	transport.CloseIdleConnections()
}

// Without listeners nothing is wrapped.
func TestTransportIdle(t *testing.T) {
	for _, s := range servers(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }) {
		t.Run(s.name, func(t *testing.T) {
			req := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", http.NoBody))(t)
			res, err := (&tee.Transport{Base: s.base}).RoundTrip(req)
			testenv.OK(t, err)
			defer res.Body.Close()
			if _, ok := res.Body.(*tee.Body); ok {
				t.Error("the body is wrapped")
			}
		})
	}
}
