package snapshot_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// warcRecord is a record as read by a strict reader.
type warcRecord struct {
	fields map[string]string
	block  []byte
}

// readWARC reads WARC 1.1 strictly: every record is alone in a gzip member, with the required fields and correct
// digests.
func readWARC(t *testing.T, file []byte) (list []warcRecord) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(file))
	zip, err := gzip.NewReader(in)
	for ids := map[string]bool{}; err == nil; err = zip.Reset(in) {
		zip.Multistream(false)
		b, err := io.ReadAll(zip)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, ok := strings.Cut(string(b), "\r\n\r\n")
		lines := strings.Split(head, "\r\n")
		if !ok || lines[0] != "WARC/1.1" {
			t.Fatalf("a record begins with %q", lines[0])
		}
		r := warcRecord{fields: map[string]string{}}
		for _, line := range lines[1:] {
			name, value, ok := strings.Cut(line, ": ")
			if !ok || strings.ContainsAny(line, "\r\n") || r.fields[name] != "" {
				t.Fatalf("the line %q", line)
			}
			r.fields[name] = value
		}
		size, err := strconv.Atoi(r.fields["Content-Length"])
		if err != nil || len(rest) != size+4 || rest[size:] != "\r\n\r\n" {
			t.Fatalf("a block of %d bytes, said %d (%v)", len(rest)-4, size, err)
		}
		r.block = []byte(rest[:size])
		id := r.fields["WARC-Record-ID"]
		if !regexp.MustCompile(`^<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>$`).MatchString(id) || ids[id] {
			t.Errorf("the id %q", id)
		}
		ids[id] = true
		for _, ref := range []string{"WARC-Warcinfo-ID", "WARC-Concurrent-To"} {
			if to := r.fields[ref]; to != "" && !ids[to] {
				t.Errorf("%s points to nothing", ref)
			}
		}
		if _, err := time.Parse(time.RFC3339Nano, r.fields["WARC-Date"]); err != nil || !strings.HasSuffix(r.fields["WARC-Date"], "Z") {
			t.Errorf("the date %q", r.fields["WARC-Date"])
		}
		if r.fields["WARC-Block-Digest"] != snapshot.Hash(r.block) {
			t.Errorf("the digest %q", r.fields["WARC-Block-Digest"])
		}
		list = append(list, r)
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return list
}

// archived returns documents of all kinds.
func archived() []*snapshot.Snapshot {
	at := time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.FixedZone("", 3600))
	page := []byte("<p>Herons\r\n\r\nnest</p>\r\n\r\nWARC/1.1\r\n")
	return []*snapshot.Snapshot{
		{
			URL: "https://example.com/a", FinalURL: "https://example.com/c", Hops: []string{"https://example.com/b"}, Status: 200,
			Header: http.Header{
				"Content-Type": {"text/html"}, "Content-Encoding": {"gzip"}, "Content-Length": {"17"}, "X-Two": {"1", "2"},
				"X-Evil": {"a\r\nInjected: yes\r\n\r\nbody"}, "Bad Name:": {"x"},
			},
			MediaType: "text/html", FetchedAt: at, UserAgent: "ibid", Octets: page, Hash: snapshot.Hash(page),
		},
		{URL: "https://example.com/empty", FinalURL: "https://example.com/empty", Status: 204, FetchedAt: at},
		{URL: "https://example.com/copy", FinalURL: "https://example.com/copy", Status: 200, NotModified: true, MediaType: "text/plain", FetchedAt: at, Octets: page},
		{URL: "https://bücher.example/ü", FetchedAt: at, Octets: []byte{0, 1, 2, 0xff}},
	}
}

func TestWriteWARC(t *testing.T) {
	var file bytes.Buffer
	testenv.OK(t, snapshot.WriteWARC(&file, "ibid/1.0\nof two lines", archived()...))
	records := readWARC(t, file.Bytes())
	var got []string
	for _, r := range records {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.fields["WARC-Type"], r.fields["WARC-Target-URI"], r.fields["Content-Type"])))
	}
	if diff := cmp.Diff([]string{
		"warcinfo  application/warc-fields",
		"response https://example.com/c application/http;msgtype=response",
		"metadata https://example.com/c application/warc-fields",
		"response https://example.com/empty application/http;msgtype=response",
		"metadata https://example.com/empty application/warc-fields",
		"resource https://example.com/copy text/plain",
		"metadata https://example.com/copy application/warc-fields",
		"resource https://xn--bcher-kva.example/%C3%BC application/octet-stream",
		"metadata https://xn--bcher-kva.example/%C3%BC application/warc-fields",
	}, got); diff != "" {
		t.Fatal(diff)
	}
	const info = "software: ibid/1.0 of two lines\r\nformat: WARC File Format 1.1\r\n" +
		"conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n"
	if diff := cmp.Diff(info, string(records[0].block)); diff != "" {
		t.Error(diff)
	}
	first := archived()[0]
	if records[1].fields["WARC-Date"] != "2026-11-21T09:00:00.123456Z" || records[1].fields["WARC-Payload-Digest"] != first.Hash {
		t.Errorf("the record says %v", records[1].fields)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(records[1].block)), nil)
	testenv.OK(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(body, first.Octets) || resp.StatusCode != 200 {
		t.Errorf("its body is %q, %v", body, err)
	}
	if diff := cmp.Diff(http.Header{
		"Content-Type": {"text/html"}, "X-Archive-Orig-Content-Encoding": {"gzip"}, "X-Archive-Orig-Content-Length": {"17"}, "X-Two": {"1", "2"},
		"X-Evil": {"a  Injected: yes    body"}, "Content-Length": {strconv.Itoa(len(first.Octets))},
	}, resp.Header); diff != "" {
		t.Error(diff)
	}
	const about = "ibid-hash: %s\r\nibid-requested-url: https://example.com/a\r\nibid-hop: https://example.com/b\r\n" +
		"ibid-final-url: https://example.com/c\r\nibid-user-agent: ibid\r\nibid-content-coding-removed: gzip\r\n"
	if diff := cmp.Diff(fmt.Sprintf(about, first.Hash), string(records[2].block)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(archived()[3].Octets, records[7].block); diff != "" {
		t.Error(diff)
	}
}

// An error of the writer ends the file and is returned.
func TestWriteWARCErrors(t *testing.T) {
	oh := errors.New("oh")
	for room := range 9 {
		if err := snapshot.WriteWARC(&fullWriter{100 * room, oh}, "ibid", archived()[0]); !errors.Is(err, oh) {
			t.Fatalf("of the file after %d bytes: %v", room, err)
		}
	}
	if err := snapshot.WriteWARC(io.Discard, "ibid", &snapshot.Snapshot{URL: "urn:x:y"}); err == nil {
		t.Error("a snapshot without an address is written")
	}
}

// fullWriter accepts a limited number of bytes.
type fullWriter struct {
	room int
	err  error
}

func (w *fullWriter) Write(b []byte) (int, error) {
	if w.room -= len(b); w.room < 0 {
		return 0, w.err
	}
	return len(b), nil
}
