package curl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const body = `{"answer":"Otters hold hands – always."}` + "\n"

// read reads a printed response to its end, byte by byte and at once, which must give the same.
func read(tb testing.TB, printed string) (*Response, string, error) {
	tb.Helper()
	r, got, err := readFrom(strings.NewReader(printed))
	r2, got2, err2 := readFrom(iotest.OneByteReader(strings.NewReader(printed)))
	if got != got2 || fmt.Sprint(err) != fmt.Sprint(err2) {
		tb.Errorf("%q: %q, %v at once, %q, %v byte by byte", printed, got, err, got2, err2)
	}
	if r != nil && r2 != nil {
		r.Body, r2.Body = nil, nil
		if diff := cmp.Diff(r, r2); diff != "" {
			tb.Errorf("%q: at once and byte by byte differ: %s", printed, diff)
		}
	}
	return r, got, err
}

func readFrom(in io.Reader) (*Response, string, error) {
	r, err := Read(in)
	if err != nil {
		return nil, "", err
	}
	b, err := io.ReadAll(r.Body)
	return r, string(b), err
}

// chunked returns text in chunks of the given size.
func chunked(text string, size int, end, trailer string) string {
	var b strings.Builder
	for len(text) > 0 {
		n := min(size, len(text))
		fmt.Fprintf(&b, "%x%s%s%s", n, end, text[:n], end)
		text = text[n:]
	}
	return b.String() + "0" + end + trailer + end
}

// With both line ends, whatever precedes, separates or follows.
func TestRead(t *testing.T) {
	const ok, json = "HTTP/1.1 200 OK\n", "Content-Type: application/json\n"
	for name, c := range map[string]struct {
		head, body, trailer string
		status              int
	}{
		"HTTP/1.1":       {ok + json + "\n", body, "", 200},
		"HTTP/2":         {"HTTP/2 200 \ncontent-type: application/json\n\n", body, "", 200},
		"HTTP/3":         {"HTTP/3 429\nretry-after: 3\n\n", body, "", 429},
		"own reason":     {"HTTP/1.1 429 Slow down\nRetry-After: 3\n\n", body, "", 429},
		"no field":       {"HTTP/1.0 500 Internal Server Error\n\n", body, "", 500},
		"no reason":      {"HTTP/1.0 500\n\n", body, "", 500},
		"folded":         {ok + "X-A: b\n  c\n" + json + "\n", body, "", 200},
		"BOM":            {"\xef\xbb\xbf" + ok + json + "\n", body, "", 200},
		"blank lines":    {"\n\n \n" + ok + json + "\n", body, "", 200},
		"BOM and blanks": {"\xef\xbb\xbf\n\t\n" + ok + json + "\n", body, "", 200},
		"100":            {"HTTP/1.1 100 Continue\n\n" + ok + json + "\n", body, "", 200},
		"103":            {"HTTP/1.1 103 Early Hints\nLink: <a>\n\n" + ok + json + "\n", body, "", 200},
		"CONNECT":        {"HTTP/1.1 200 Connection established\n\n" + ok + json + "\n", body, "", 200},
		"redirects":      {"HTTP/1.1 301 Moved Permanently\nLocation: /a\n\nHTTP/2 302\nLocation: /b\n\nHTTP/2 503\nx: y\n\n", body, "", 503},
		"password":       {"HTTP/1.1 407 Proxy Authentication Required\nX: y\n\nHTTP/1.1 200 Connection established\n\nHTTP/1.1 401 Unauthorized\nWWW-Authenticate: Digest\n\n" + ok + json + "\n", body, "", 200},
		"not redirected": {"HTTP/1.1 302 Found\nLocation: /a\n\n", body, "", 302},
		"final":          {ok + json + "\n", "HTTP/1.1 302 Found\nLocation: /a\n\n", "", 200},
		"length":         {ok + fmt.Sprintf("Content-Length: %d\n\n", len(body)), body, "", 200},
		"trailer":        {ok + "Trailer: X-Sum, X-Other\n\n", body, "X-Sum: 1\nX-Other: 2\n", 200},
		"length, trailer": {
			ok + fmt.Sprintf("Trailer: X-Sum\nContent-Length: %d\n\n", len(body)), body, "X-Sum: 1\n", 200,
		},
		"no trailer":      {ok + "Trailer: X-Sum\n\n", "X-Sum: 1 is a field,\nand this is text.", "", 200},
		"empty":           {ok + json + "\n", "", "", 200},
		"twice in a line": {ok + "Trailer: X-Sum\n\n", "Otters: X-Sum: 2, ", "X-Sum: 1\n", 200},
		"no name":         {ok + "Trailer: X\x85, (, X-Sum\n\n", body, "X-Sum: 1\n", 200},
		"not in pieces":   {ok + "Transfer-Encoding: chunked\n\n", body, "", 200},
		"a number":        {ok + "Transfer-Encoding: chunked\n\n", "42\nis the answer.", "", 200},
		"a long text":     {ok + "Trailer: X-Sum\n\n", strings.Repeat("X-Sum: 1\nOtters. X-Su", 2000), "", 200},
		"long trailer":    {ok + "Trailer: X-Sum\n\n", "Otters.\n" + strings.Repeat("X-Sum: 1\n", 3000), "", 200},
	} {
		for end, with := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
			head, trailer := strings.ReplaceAll(c.head, "\n", with), strings.ReplaceAll(c.trailer, "\n", with)
			r, got, err := read(t, head+c.body+trailer)
			if err != nil || r.Status != c.status || got != c.body {
				t.Errorf("%s, %s: %+v, %q, %v", name, end, r, got, err)
				continue
			}
			if sum := r.Trailer.Get("X-Sum"); (c.trailer != "") != (sum == "1") {
				t.Errorf("%s, %s: the trailer is %v", name, end, r.Trailer)
			}
		}
	}
}

// The output of curl --raw, also with changed line ends.
func TestChunks(t *testing.T) {
	long := strings.Repeat(body, 10_000)
	for end, with := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
		head := "HTTP/1.1 200 OK" + with + "Transfer-Encoding: chunked" + with + "Trailer: X-Sum" + with + with
		for _, text := range []string{body, "data: {}\n\ndata: [DONE]\n\n", long, ""} {
			for _, size := range []int{1, 10, 1 << 20} {
				r, got, err := readFrom(strings.NewReader(head + chunked(text, size, with, "X-Sum: 1"+with)))
				if err != nil || got != text || r.Trailer.Get("X-Sum") != "1" {
					t.Errorf("%s, %d of %d: %.60q, %v, %v", end, size, len(text), got, err, r)
				}
			}
		}
		bare := strings.Replace(head, "Trailer: X-Sum"+with, "", 1) // nothing announces the trailer
		if r, got, err := read(t, bare+chunked(body, 10, with, "X-Sum: 1"+with)); err != nil || got != body || r.Trailer.Get("X-Sum") != "1" {
			t.Errorf("%s, a trailer that is not announced: %q, %v, %v", end, got, err, r)
		}
		whole := chunked(body, 10, with, "")
		for n := 14; n < len(whole)-2*len(with)-1; n++ { // cut after the first chunk
			r, got, err := read(t, head+whole[:n])
			if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(body, got) || len(got) < 10 {
				t.Errorf("%s, cut at %d: %q, %v, %v", end, n, got, err, r)
			}
		}
		for _, damaged := range []string{"3" + with + "abc" + with + "x" + with, "3" + with + "abc" + with + "3" + with + "abcdef" + with, whole + "x"} {
			if _, _, err := read(t, head+damaged); !errors.Is(err, errChunks) {
				t.Errorf("%s, %q: %v", end, damaged, err)
			}
		}
		if _, got, err := read(t, head+"ff"+with+body); got != body || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: the first chunk breaks off: %q, %v", end, got, err)
		}
	}
}

// A text that begins like a header, or has parts of one, is left unchanged.
func TestNoHeader(t *testing.T) {
	for _, text := range []string{
		"", "H", "HTTP", "HTTP/", "HTTP/2", "HTTP/2 multiplexes streams.\n\nSo it does.", "HTTP/1.1 is older.",
		"HTTP/1.1 404 is what a server answers.", "HTTP/1.1 404 is what a server answers.\n",
		"HTTP/1.1 404 is what a server answers.\n\nIt means: not found.", "HTTP/2 429 and HTTP/2 503\nboth pass.\n\n",
		"HTTP/1.1 200 OK\nis the status line\n\nof HTTP.", "HTTP/1.1 20 x\n\n", "HTTP/1.1 099 x\na: b\n\n", "HTTPS/1.1 200 OK\na: b\n\n",
		"\xef\xbb\xbf\n" + body, body, "\n\n" + body, strings.Repeat("\n", maxLead+1) + "HTTP/1.1 200 OK\na: b\n\n",
		"HTTP/1.1 200 OK\n" + strings.Repeat("a: b\n", maxHeader/5) + "\n",
	} {
		if r, got, err := read(t, text); err != nil || r.Status != 0 || got != text {
			t.Errorf("%.60q: %+v, %.60q, %v", text, r, got, err)
		}
	}
}

func TestCut(t *testing.T) {
	for _, text := range []string{"HTTP/1.1 200 OK", "HTTP/2 200\n", "HTTP/2 200\ncontent-type: text/plain", "HTTP/1.1 429 Slow down\na: b\n"} {
		if r, _, err := read(t, text); !errors.Is(err, ErrHeader) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
	if _, got, err := read(t, "HTTP/2 200\ncontent-length: 99\n\n"+body); got != body || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("shorter than its length: %q, %v", got, err)
	}
	if _, got, err := read(t, "HTTP/2 200\ncontent-length: 99\ncontent-encoding: br\n\n"+body); got != body || err != nil {
		t.Errorf("unpacked by curl --compressed: %q, %v", got, err)
	}
	broken := errors.New("broken")
	if _, got, err := readFrom(io.MultiReader(strings.NewReader("HTTP/2 200\ntrailer: x\n\n"+body), iotest.ErrReader(broken))); got != body || !errors.Is(err, broken) {
		t.Errorf("an error of the input: %q, %v", got, err)
	}
}

func TestURL(t *testing.T) {
	const to = "HTTP/2 302\nlocation: https://a.example/\n\n"
	for text, want := range map[string]string{
		to + "HTTP/2 200\na: b\n\n": "https://a.example/", to + "HTTP/1.1 100 Continue\n\nHTTP/2 200\na: b\n\n": "https://a.example/",
		to: "", to + "Moved.": "", "HTTP/2 302\nlocation: /a\n\nHTTP/2 200\na: b\n\n": "", "HTTP/2 200\nlocation: https://a.example/\n\n": "",
	} {
		if r, _, err := read(t, text); err != nil || r.URL != want {
			t.Errorf("%q: %+v, %v, want %q", text, r, err, want)
		}
	}
}

// What arrives is passed on before the end is known.
func TestLive(t *testing.T) {
	for _, head := range []string{
		"HTTP/2 200\na: b\n\n", "HTTP/2 200\ntrailer: X-Sum\n\n", "HTTP/1.1 200 OK\ntransfer-encoding: chunked\n\n",
	} {
		out, in := io.Pipe()
		go func() { _, _ = io.WriteString(in, head+"data: 1\n\n") }()
		r, err := Read(out)
		if err != nil || r.Status != http.StatusOK {
			t.Fatal(r, err)
		}
		got := make([]byte, 9)
		if n, err := io.ReadFull(r.Body, got); string(got) != "data: 1\n\n" {
			t.Errorf("%q: %q, %v", head, got[:n], err)
		}
		_ = out.Close()
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("HTTP/1.1 302 Found\nLocation: https://a.example/\n\nHTTP/2 200\nTrailer: X\n\nxX: 1\r\n"))
	f.Add([]byte("\xef\xbb\xbf\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nCitation-Source: \"https://a.example/\"\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabCitation-Source: \"https://a.example/\"\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, got, err := read(t, string(b))
		if r != nil && r.Status == 0 && (got != string(b) || err != nil) {
			t.Errorf("%q without a header became %q, %v", b, got, err)
		}
		if len(got) > len(b) || !bytes.Contains(b, []byte(got)) && r.Header.Get("Transfer-Encoding") == "" {
			t.Errorf("%q became %q", b, got)
		}
	})
}
