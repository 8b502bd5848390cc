package api_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// vector returns a file of one of the library's vectors.
func vector(t *testing.T, name, file string) string {
	t.Helper()
	archive := testenv.Must(txtar.ParseFile(filepath.Join(testenv.Root(t), "testdata", name)))(t)
	for _, f := range archive.Files {
		if f.Name == file {
			return string(f.Data)
		}
	}
	t.Fatalf("%s has no %s", name, file)
	return ""
}

// document returns the library's document of a response.
func document(t *testing.T, body string, decode *ibid.DecodeOptions, show *ibid.DocumentOptions) string {
	t.Helper()
	a, err := ibid.Decode([]byte(body), decode)
	if err != nil {
		t.Log(err)
	}
	line := testenv.Must(a.Document(show).JSON())(t)
	return string(line) + "\n"
}

func wantBody(t *testing.T, res *response, want string) {
	t.Helper()
	if res.StatusCode != http.StatusOK {
		t.Errorf("status %d: %.300s", res.StatusCode, res.body)
		return
	}
	testenv.Equal(t, "body", want, res.body)
}

// The result is the library's, whatever Content-Type the body has.
func TestDecode(t *testing.T) {
	n := newNode(t, nil)
	body := vector(t, "openai-responses/azure-web-search.txtar", "body.json")
	for _, mediaType := range []string{"", "application/json", "application/x-www-form-urlencoded", "text/event-stream", "no type"} {
		wantBody(t, n.do(t, "POST", "/v1/decode", body, "Content-Type", mediaType), document(t, body, nil, nil))
	}
	stream := vector(t, "openai-responses/azure-web-search.txtar", "stream.sse")
	show := &ibid.DocumentOptions{Unit: ibid.UTF16, Style: ibid.StylePlain}
	wantBody(t, n.do(t, "POST", "/v1/decode?unit=utf-16&style=plain", stream), document(t, stream, nil, show))
	wantBody(t, n.do(t, "POST", "/v1/decode?format=generic", body), document(t, body, &ibid.DecodeOptions{Format: ibid.Generic}, nil))

	cut := stream[:len(stream)*3/4]
	want := document(t, cut, nil, nil)
	if !strings.Contains(want, `"complete":false`) {
		t.Fatal("the stream is not cut")
	}
	wantBody(t, n.do(t, "POST", "/v1/decode", cut), want)
}

func TestDecodeForms(t *testing.T) {
	n := newNode(t, nil)
	body := vector(t, "openai-responses/azure-web-search.txtar", "body.json")
	a := testenv.Must(ibid.Decode([]byte(body), nil))(t)
	for _, style := range []ibid.Style{ibid.StyleMarkdown, ibid.StylePlain, ibid.StyleHTML, ibid.StyleFootnotes, ibid.StyleLaTeX} {
		want := strings.TrimSuffix(a.Render(&ibid.RenderOptions{Style: style, List: true}), "\n") + "\n"
		wantBody(t, n.do(t, "POST", "/v1/decode?as="+string(style), body), want)
	}
	for _, form := range []string{"bibtex", "ris", "csl-json", "apa", "mla", "chicago"} {
		res := n.do(t, "POST", "/v1/decode?as="+form, body)
		if res.StatusCode != 200 || !strings.Contains(res.body, "harbour.example/rules") {
			t.Errorf("%s: %d %s", form, res.StatusCode, res.body)
		}
	}
}

func TestDecodeUnreadable(t *testing.T) {
	n := newNode(t, nil)
	for _, test := range []struct{ query, body string }{
		{"", ""},
		{"", " \n"},
		{"", "\x00\x01\x02\x03"},
		{"?format=gemini-generate", `{"nothing": 1}`},
	} {
		wantProblem(t, n.do(t, "POST", "/v1/decode"+test.query, test.body), 422)
	}
	failed := vector(t, "openai-responses/failed.txtar", "body.json")
	wantBody(t, n.do(t, "POST", "/v1/decode", failed), document(t, failed, nil, nil))
	for _, path := range []string{"/v1/decode?format=openai", "/v1/decode?as=docx", "/v1/decode?as=plain&unit=utf-8"} {
		wantProblem(t, n.do(t, "POST", path, "{}"), 400)
	}
}

// part is one part of a multipart body.
type part struct{ name, data string }

func form(t *testing.T, parts ...part) (body, mediaType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		f := testenv.Must(w.CreateFormFile(p.name, p.name+".json"))(t)
		testenv.Must(io.WriteString(f, p.data))(t)
	}
	testenv.OK(t, w.Close())
	return b.String(), w.FormDataContentType()
}

// Some responses can only be read together with the request.
func TestDecodeMultipart(t *testing.T) {
	n := newNode(t, nil)
	const response = `{"text": "Herons build.", "x": 1}`
	documents := `["one", {"id": "two", "data": "text"}]`
	sources := testenv.Must(ibid.ReadDocuments([]byte(documents)))(t)
	body, mediaType := form(t, part{"documents", documents}, part{"response", response}, part{"request", "{}"})
	want := document(t, response, &ibid.DecodeOptions{Request: []byte("{}"), Documents: sources}, nil)
	wantBody(t, n.do(t, "POST", "/v1/decode", body, "Content-Type", mediaType), want)

	for name, parts := range map[string][]part{
		"none":          {},
		"no response":   {{"request", "{}"}},
		"another":       {{"response", response}, {"answer", "{}"}},
		"twice":         {{"response", response}, {"response", response}},
		"bad documents": {{"response", response}, {"documents", `{"a": 1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			body, mediaType := form(t, parts...)
			wantProblem(t, n.do(t, "POST", "/v1/decode", body, "Content-Type", mediaType), 400)
		})
	}
	wantProblem(t, n.do(t, "POST", "/v1/decode", body[:len(body)-40], "Content-Type", mediaType), 400)
	for _, bad := range []string{"multipart/form-data", "multipart/mixed; boundary=x"} {
		wantProblem(t, n.do(t, "POST", "/v1/decode", body, "Content-Type", bad), 415)
	}
}

// Some responses cite documents that only the request contains.
func TestDecodeWithRequest(t *testing.T) {
	n := newNode(t, nil)
	const name = "bedrock-converse/documents-of-the-request.txtar"
	response, request := vector(t, name, "body.json"), vector(t, name, "request.json")
	body, mediaType := form(t, part{"response", response}, part{"request", request})
	wantBody(t, n.do(t, "POST", "/v1/decode", body, "Content-Type", mediaType),
		document(t, response, &ibid.DecodeOptions{Request: []byte(request)}, nil))
}

func packed(t *testing.T, encoding, body string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	case "flate":
		w, err = flate.NewWriter(&b, 5)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	testenv.Must(io.WriteString(w, body))(t)
	testenv.OK(t, w.Close())
	return b.String()
}

func TestDecodeEncodings(t *testing.T) {
	n := newNode(t, nil)
	body := vector(t, "openai-responses/azure-web-search.txtar", "body.json")
	want := document(t, body, nil, nil)
	for _, test := range []struct{ encoding, header string }{
		{"gzip", "gzip"}, {"gzip", " X-GZip"}, {"zlib", "deflate"}, {"flate", "deflate"}, {"br", "br"}, {"zstd", "zstd"},
	} {
		wantBody(t, n.do(t, "POST", "/v1/decode", packed(t, test.encoding, body), "Content-Encoding", test.header), want)
	}
	wantBody(t, n.do(t, "POST", "/v1/decode", body, "Content-Encoding", "identity"), want)
	for _, encoding := range []string{"gzip", "deflate", "br", "zstd"} {
		wantProblem(t, n.do(t, "POST", "/v1/decode", "\xff\xff\xffno such thing", "Content-Encoding", encoding), 400)
	}
	for _, encoding := range []string{"compress", "gzip, gzip", "br;q=1"} {
		res := n.do(t, "POST", "/v1/decode", body, "Content-Encoding", encoding)
		wantProblem(t, res, 415)
		if got := res.Header.Get("Accept-Encoding"); got != "gzip, deflate, br, zstd" {
			t.Errorf("Accept-Encoding %q", got)
		}
	}
	inForm, mediaType := form(t, part{"response", body})
	wantBody(t, n.do(t, "POST", "/v1/decode", packed(t, "br", inForm), "Content-Encoding", "br", "Content-Type", mediaType), want)
}

// maxDecode is the limit stated in docs/http.md, in bytes.
const maxDecode = 64 << 20

// A decompression bomb does not fill memory, and an oversized body is refused before it has arrived.
func TestDecodeLimits(t *testing.T) {
	n := newNode(t, nil)
	bomb := packed(t, "zstd", strings.Repeat(" ", maxDecode+1))
	wantProblem(t, n.do(t, "POST", "/v1/decode", bomb, "Content-Encoding", "zstd"), 413)

	conn := testenv.Must((&net.Dialer{}).DialContext(t.Context(), "tcp", n.Listener.Addr().String()))(t)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/decode HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", maxDecode+1)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testenv.OK(t, err)
	defer res.Body.Close()
	var p struct{ Detail string }
	testenv.OK(t, json.NewDecoder(res.Body).Decode(&p))
	if want := "the request's body has more than 67108864 bytes"; res.StatusCode != 413 || p.Detail != want {
		t.Errorf("%d %q, want 413 %q", res.StatusCode, p.Detail, want)
	}
}
