package tee_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/tee"
)

const (
	chunkA  = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	chunkB  = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}` + "\n\n"
	done    = "data: [DONE]\n\n"
	geminiA = `data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"modelVersion":"m"}` + "\n\n"
	geminiB = `data: {"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}],"modelVersion":"m"}` + "\n\n"
	body    = `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"ab"},"finish_reason":"stop"}]}`
	unasked = `{"output":{"text":"ab"},"sessionId":"s","citations":[]}` // has no end mark
)

// upstream is a response body whose reads are scripted: each returns the next piece, the last err as well.
type upstream struct {
	pieces   []string
	err      error
	withLast bool // err comes with the last piece
	closed   int
}

func (u *upstream) Read(p []byte) (int, error) {
	if len(u.pieces) == 0 {
		return 0, u.err
	}
	n := copy(p, u.pieces[0])
	if u.pieces[0] = u.pieces[0][n:]; u.pieces[0] == "" {
		u.pieces = u.pieces[1:]
	}
	if len(u.pieces) == 0 && u.withLast {
		return n, u.err
	}
	return n, nil
}

func (u *upstream) Close() error {
	u.closed++
	return nil
}

// When bytes are passed on: each line is the result of one Read, or a call of Done.
func TestBodyOrder(t *testing.T) {
	broken := errors.New("reset by peer")
	for _, tc := range []struct {
		name string
		up   upstream
		opts tee.Options
		size int // of the reads; 0 means large
		want []string
	}{
		{
			name: "an end mark of its own read is held until Done",
			up:   upstream{pieces: []string{chunkA, chunkB, done}},
			want: []string{chunkA, chunkB, "Done: mark ab", done, "EOF"},
		},
		{
			name: "what comes before it in the same read is not",
			up:   upstream{pieces: []string{chunkA, chunkB + done}},
			want: []string{chunkA, chunkB, "Done: mark ab", done, "EOF"},
		},
		{
			name: "with the end of the body, and what nobody expects behind",
			up:   upstream{pieces: []string{chunkA + chunkB + done + "junk"}, withLast: true},
			want: []string{chunkA + chunkB, "Done: mark ab", done + "junk", "EOF"},
		},
		{
			name: "an end mark in pieces",
			up:   upstream{pieces: []string{chunkA + chunkB + done[:7], done[7:]}},
			want: []string{chunkA + chunkB + done[:7], "Done: mark ab", done[7:], "EOF"},
		},
		{
			name: "a reader with a small buffer",
			up:   upstream{pieces: []string{chunkA + chunkB + done}},
			size: len(chunkA + chunkB + "data"),
			want: []string{chunkA + chunkB + "data", "Done: mark ab", ": [DONE]\n\n", "EOF"},
		},
		{
			name: "the last read of a JSON body in one piece",
			up:   upstream{pieces: []string{body[:40], body[40:] + "\n"}},
			want: []string{body[:40], "Done: mark ab", body[40:] + "\n", "EOF"},
		},
		{
			name: "an error is an end mark",
			up:   upstream{pieces: []string{chunkA, "data: {\"error\":{\"code\":\"busy\",\"message\":\"m\"}}\n\n"}},
			want: []string{chunkA, "Done: mark a error busy", "data: {\"error\":{\"code\":\"busy\",\"message\":\"m\"}}\n\n", "EOF"},
		},
		{
			name: "an error that is the whole body",
			up:   upstream{pieces: []string{`{"error":{"code":"no-key","message":"m"}}`}},
			want: []string{"Done: mark  error no-key", `{"error":{"code":"no-key","message":"m"}}`, "EOF"},
		},
		{
			name: "an end that may go on is held until the body ends",
			up:   upstream{pieces: []string{geminiA, geminiB}},
			want: []string{geminiA, "Done: mark ab", geminiB, "EOF"},
		},
		{
			name: "what is no document does not confirm it",
			up:   upstream{pieces: []string{geminiA + geminiB, ": ping\n\n", "\n"}},
			want: []string{geminiA, "Done: mark ab", geminiB + ": ping\n\n\n", "EOF"},
		},
		{
			name: "and one that goes on",
			up:   upstream{pieces: []string{geminiB, geminiA, geminiB}},
			want: []string{geminiB + geminiA, "Done: mark bab", geminiB, "EOF"},
		},
		{
			name: "or breaks off",
			up:   upstream{pieces: []string{geminiA, geminiB}, err: broken},
			want: []string{geminiA, "Done: broken ab: read response: reset by peer", geminiB, "reset by peer"},
		},
		{
			name: "more white space than is kept behind it",
			up:   upstream{pieces: []string{geminiB, strings.Repeat("\n", 1<<20), "\n", geminiA}},
			size: 2 << 20,
			want: []string{geminiB + strings.Repeat("\n", 1<<20), "\n" + geminiA, "Done: body ba", "EOF"},
		},
		{
			name: "no end mark: before the end of the body is told",
			up:   upstream{pieces: []string{unasked}},
			want: []string{unasked, "Done: body ab", "EOF"},
		},
		{
			name: "which may be told by its length",
			up:   upstream{pieces: []string{unasked[:30], unasked[30:]}},
			opts: tee.Options{Length: int64(len(unasked))},
			want: []string{unasked[:30], "Done: body ab", unasked[30:], "EOF"},
		},
		{
			name: "or come with the last bytes",
			up:   upstream{pieces: []string{unasked}, withLast: true},
			want: []string{"Done: body ab", unasked, "EOF"},
		},
		{
			name: "a broken upstream",
			up:   upstream{pieces: []string{chunkA, chunkB[:20]}, err: broken},
			want: []string{chunkA, chunkB[:20], "Done: broken a: read response: reset by peer", "reset by peer"},
		},
		{
			name: "a cancelled request",
			up:   upstream{pieces: []string{chunkA}, err: fmt.Errorf("read: %w", context.Canceled)},
			want: []string{chunkA, "Done: closed a: read response: the response was closed before its end", "read: context canceled"},
		},
		{
			name: "a body over the limit passes",
			up:   upstream{pieces: []string{chunkA, chunkB, done}},
			opts: tee.Options{Limit: int64(len(chunkA))},
			want: []string{chunkA, chunkB, done, "Done: body a: decode response: the response exceeds the decoding limit", "EOF"},
		},
		{
			name: "an encoding that nobody knows",
			up:   upstream{pieces: []string{"\x1f\x9d"}},
			opts: tee.Options{Encoding: "gzip, compress"},
			want: []string{"\x1f\x9d", `Done: body : decompress response: unknown content encoding: "compress"`, "EOF"},
		},
		{
			name: "too many encodings",
			up:   upstream{pieces: []string{"x"}},
			opts: tee.Options{Encoding: "br, br, br, br, br"},
			want: []string{"x", "Done: body : decompress response: unknown content encoding: more than 4", "EOF"},
		},
		{
			name: "OnEvent that panics",
			up:   upstream{pieces: []string{chunkA, chunkB, done}},
			opts: tee.Options{OnEvent: func(ibid.Event) { panic("oh") }},
			want: []string{chunkA, chunkB, done, "Done: body : decode response: panic: oh", "EOF"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			if tc.up.err == nil {
				tc.up.err = io.EOF
			}
			tc.opts.Done = func(r tee.Result) { got = append(got, "Done: "+describe(r)) }
			b := tee.NewBody(&tc.up, &tc.opts)
			buf := make([]byte, max(tc.size, 0))
			if tc.size == 0 {
				buf = make([]byte, 4096)
			}
			for {
				n, err := b.Read(buf)
				if n > 0 {
					got = append(got, string(buf[:n]))
				}
				if err != nil {
					got = append(got, err.Error())
					break
				}
			}
			if n, err := b.Read(buf); n != 0 || err == nil {
				t.Errorf("Read after the end = %d, %v", n, err)
			}
			if err := b.Close(); err != nil || tc.up.closed != 1 {
				t.Errorf("Close = %v, and the upstream was closed %d times", err, tc.up.closed)
			}
			testenv.Equal(t, "what was handed out", tc.want, got)
		})
	}
}

func describe(r tee.Result) string {
	s := r.End.String() + " " + r.Answer.Text
	if r.Answer.Error != nil {
		s += " error " + r.Answer.Error.Code
	}
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	return s
}

func TestBodyClose(t *testing.T) {
	for _, tc := range []struct {
		name  string
		up    upstream
		reads int
		want  string
	}{
		{"before anything was read", upstream{pieces: []string{chunkA}}, 0, "closed : read response: the response was closed before its end"},
		{"in the middle", upstream{pieces: []string{chunkA, chunkB}}, 1, "closed a: read response: the response was closed before its end"},
		{"while the end mark is held", upstream{pieces: []string{chunkA + chunkB + done}}, 1, "mark ab"},
		{"while an end is held that may go on", upstream{pieces: []string{geminiA + geminiB}}, 1, "closed ab: read response: the response was closed before its end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			b := tee.NewBody(&tc.up, &tee.Options{Done: func(r tee.Result) { got = append(got, describe(r)) }})
			for range tc.reads {
				_, _ = b.Read(make([]byte, 4096))
			}
			_ = b.Close()
			_ = b.Close()
			if n, err := b.Read(make([]byte, 10)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("Read after Close = %d, %v", n, err)
			}
			testenv.Equal(t, "results", []string{tc.want}, got)
		})
	}
}

// Close from another goroutine unblocks a Read, as on a pipe, and Done is called once.
func TestBodyCloseWhileReading(t *testing.T) {
	for range 200 {
		r, w := io.Pipe()
		var results []tee.Result
		b := tee.NewBody(r, &tee.Options{Done: func(r tee.Result) { results = append(results, r) }})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, b) })
		wg.Go(func() { _, _ = io.WriteString(w, chunkA+chunkB) })
		wg.Go(func() { _ = b.Close() })
		wg.Wait()
		if len(results) != 1 || results[0].End != tee.EndClosed {
			t.Fatalf("results: %+v", results)
		}
	}
}

// A listener may close its body.
func TestBodyCloseFromOnEvent(t *testing.T) {
	var flushed bytes.Buffer
	w := gzip.NewWriter(&flushed)
	_, _ = io.WriteString(w, chunkA)
	_ = w.Flush()
	for encoding, sent := range map[string]string{"": chunkA, "gzip": flushed.String()} {
		var b *tee.Body
		var got []string
		b = tee.NewBody(&upstream{pieces: []string{sent, "x"}, err: io.EOF}, &tee.Options{
			Encoding: encoding,
			OnEvent: func(e ibid.Event) {
				if e.Kind == ibid.EventText {
					_ = b.Close()
				}
			},
			Done: func(r tee.Result) { got = append(got, describe(r)) },
		})
		_, _ = io.ReadAll(b)
		want := []string{"closed a: read response: the response was closed before its end"}
		testenv.Equal(t, fmt.Sprintf("%s: results", encoding), want, got)
	}
}

// A panic of Done is the caller's. The rest of the body can be read, and Done is not called again.
func TestBodyPanicOfDone(t *testing.T) {
	calls := 0
	b := tee.NewBody(&upstream{pieces: []string{chunkA + done}, err: io.EOF}, &tee.Options{Done: func(tee.Result) {
		calls++
		panic("oh")
	}})
	var got []byte
	read := func() (recovered any) {
		defer func() { recovered = recover() }()
		rest, _ := io.ReadAll(b)
		got = append(got, rest...)
		return nil
	}
	buf := make([]byte, 4096)
	n, _ := b.Read(buf)
	got = append(got, buf[:n]...)
	if v := read(); v != "oh" {
		t.Errorf("recovered %v", v)
	}
	if v := read(); v != nil || calls != 1 || string(got) != chunkA+done {
		t.Errorf("recovered %v, Done was called %d times, read %q", v, calls, got)
	}
}

// pack compresses s with the codings of a Content-Encoding, from left to right.
func pack(tb testing.TB, encoding, s string) []byte {
	tb.Helper()
	data := []byte(s)
	for coding := range strings.SplitSeq(encoding, ", ") {
		var buf bytes.Buffer
		var w io.WriteCloser
		switch coding {
		case "", "identity":
			continue
		case "gzip":
			w = gzip.NewWriter(&buf)
		case "deflate":
			w = zlib.NewWriter(&buf)
		case "deflate without a header":
			w, _ = flate.NewWriter(&buf, 6)
		case "br":
			w = brotli.NewWriter(&buf)
		case "zstd":
			z := testenv.Must(zstd.NewWriter(&buf))(tb)
			w = z
		}
		testenv.Must(w.Write(data))(tb)
		testenv.OK(tb, w.Close())
		data = buf.Bytes()
	}
	return data
}

func TestBodyCompressed(t *testing.T) {
	for _, encoding := range []string{"gzip", "deflate", "deflate without a header", "br", "zstd", "gzip, br", "identity, zstd, deflate"} {
		for _, size := range []int{1, 7, 4096} {
			t.Run(fmt.Sprint(encoding, size), func(t *testing.T) {
				packed := pack(t, encoding, chunkA+chunkB+done)
				var got []string
				var given bytes.Buffer
				b := tee.NewBody(&upstream{pieces: []string{string(packed)}, err: io.EOF}, &tee.Options{
					Encoding: strings.TrimSuffix(encoding, " without a header"),
					Done: func(r tee.Result) {
						got = append(got, fmt.Sprint(given.Len(), " ", describe(r)))
					},
				})
				testenv.Must(io.CopyBuffer(struct{ io.Writer }{&given}, b, make([]byte, size)))(t)
				testenv.Equal(t, "results", []string{fmt.Sprint(len(packed), " mark ab")}, got)
				if !bytes.Equal(given.Bytes(), packed) {
					t.Error("the bytes were changed")
				}
			})
		}
	}
}

// A compressed body may expand without end, break off, be something else, or be left alone.
func TestBodyCompressedBadly(t *testing.T) {
	whole := string(pack(t, "gzip", chunkA+chunkB+done))
	for _, tc := range []struct {
		name, encoding, sent string
		broken               error
		want                 string
	}{
		{"a bomb", "gzip", string(pack(t, "gzip", chunkA+strings.Repeat(": \n", 50<<20/3))), nil, "body a: decompress response: the response exceeds the decoding limit"},
		{"a bomb in a bomb", "gzip, br", string(pack(t, "gzip, br", chunkA+strings.Repeat(": \n", 50<<20/3))), nil, "body a: decompress response: the response exceeds the decoding limit"},
		{"a bomb that expands to nothing", "gzip, br", string(pack(t, "br", strings.Repeat(string(pack(t, "gzip", "")), 100_000))), nil, "body : decompress response: the response exceeds the decoding limit"},
		{"broken off", "gzip", whole[:len(whole)-9], nil, "body ab: decompress response: unexpected EOF"},
		{"not compressed", "gzip", chunkA, nil, "body : decompress response: gzip: invalid header"},
		{"not zstd", "zstd", chunkA, nil, "body : decompress response: invalid input: magic number mismatch"},
		{"not brotli", "br", strings.Repeat(chunkA, 3), nil, "body : decompress response: brotli: PADDING_1"},
		{"nothing", "gzip", "", nil, "body : decode response: nothing but white space"},
		{"broken", "gzip", whole[:len(whole)/2], errors.New("reset"), "broken data: {\"id\":\"c\",\"object\":\"chat.compl: read response: reset"},
		{"broken behind the end mark", "gzip", whole[:len(whole)-9], errors.New("reset"), "mark ab"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			up := &upstream{pieces: []string{tc.sent}, err: io.EOF}
			if tc.broken != nil {
				up.err = tc.broken
			}
			if tc.sent == "" {
				up.pieces = nil
			}
			b := tee.NewBody(up, &tee.Options{
				Encoding: tc.encoding, Limit: 1 << 20,
				Done: func(r tee.Result) { got = append(got, describe(r)) },
			})
			given, err := io.ReadAll(b)
			if !errors.Is(err, tc.broken) || string(given) != tc.sent {
				t.Errorf("read %d of %d bytes, %v", len(given), len(tc.sent), err)
			}
			testenv.Equal(t, "results", []string{tc.want}, got)
		})
	}
}

// A compressed body that is closed before its end leaves nothing behind.
func TestBodyCompressedClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var got []string
	packed := pack(t, "zstd, br", chunkA+chunkB+done)
	b := tee.NewBody(&upstream{pieces: []string{string(packed[:20])}, err: io.EOF}, &tee.Options{
		Encoding: "zstd, br",
		Done:     func(r tee.Result) { got = append(got, describe(r)) },
	})
	_, _ = b.Read(make([]byte, 100))
	_ = b.Close()
	want := []string{"closed : read response: the response was closed before its end"}
	testenv.Equal(t, "results", want, got)
}

// What an upstream sends after the end mark passes and is not part of the answer, in any chunks.
func TestBodyAfterTheEnd(t *testing.T) {
	first := "data: {\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Herons.\"}}]}\n\ndata: [DONE]\n\n"
	for name, behind := range map[string]string{
		"another response": strings.ReplaceAll(strings.ReplaceAll(first, "Herons", "Otters"), `"a"`, `"b"`),
		"the same again":   first,
		"an error":         "data: {\"error\":{\"message\":\"too late\"}}\n\n",
		"rubbish":          "<html>",
	} {
		for cut := 1; cut <= len(first)+len(behind); cut += 7 {
			var got tee.Result
			body := tee.NewBody(io.NopCloser(&cuts{rest: first + behind, size: cut}), &tee.Options{Done: func(r tee.Result) { got = r }})
			passed, err := io.ReadAll(body)
			if string(passed) != first+behind || err != nil {
				t.Fatalf("%s: passed %q, %v", name, passed, err)
			}
			if a := got.Answer; a.Text != "Herons." || a.ID != "a" || !a.Complete || got.Err != nil || len(a.Issues) > 0 {
				t.Fatalf("%s, read by %d bytes: %q %q %t %v %v", name, cut, a.ID, a.Text, a.Complete, a.Issues, got.Err)
			}
		}
	}
}

// cuts is read a few bytes at a time.
type cuts struct {
	rest string
	size int
}

func (c *cuts) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.size)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// A stream that only the end of the body ends is complete only if that came.
func TestBodyWithoutEndMark(t *testing.T) {
	stream := "data: {\"say\": \"Herons [1].\", \"found\": {\"name\": \"Page\"}}\n\n"
	for _, end := range []error{io.EOF, errors.New("reset by peer")} {
		var got tee.Result
		o := tee.Options{Done: func(r tee.Result) { got = r }}
		o.Decode.Provider = "own"
		o.Decode.Mappings = []ibid.Mapping{{Provider: "own", Text: "say", List: "found"}}
		_, _ = io.Copy(io.Discard, tee.NewBody(&upstream{pieces: []string{stream}, err: end}, &o))
		if a := got.Answer; a.Text != "Herons [1]." || len(a.Citations) != 1 || a.Complete != errors.Is(end, io.EOF) {
			t.Errorf("%v: %q, %d citations, complete %t", end, a.Text, len(a.Citations), a.Complete)
		}
	}
}
