package tlog_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/tlog/tlogtest"
)

func TestHandler(t *testing.T) {
	const size = 70_000 // C2SP's own example: 273 full tiles, one of 112; above them one full, one of 17; above these one of 1
	l := open(t, tlog.Options{})
	digests := make([]tlog.Leaf, size)
	for i := range digests {
		digests[i] = tlogtest.Digest(i)
	}
	if _, err := l.Append(t.Context(), digests...); err != nil {
		t.Fatal(err)
	}
	h := http.StripPrefix("/log", l.Handler())
	for _, test := range []struct {
		method, path string
		status       int
		octets       int
	}{
		{"GET", "/log/checkpoint", 200, len(checkpoint(t, l).Note)},
		{"GET", "/log/tile/0/000", 200, 8192},
		{"HEAD", "/log/tile/0/000", 200, 8192},
		{"GET", "/log/tile/0/272", 200, 8192},
		{"GET", "/log/tile/0/273", 404, -1},
		{"GET", "/log/tile/0/273.p/112", 200, 112 * 32},
		{"GET", "/log/tile/0/273.p/111", 200, 111 * 32},
		{"GET", "/log/tile/0/273.p/113", 404, -1},
		{"GET", "/log/tile/0/000.p/1", 200, 32},
		{"GET", "/log/tile/1/000", 200, 8192},
		{"GET", "/log/tile/1/001.p/17", 200, 17 * 32},
		{"GET", "/log/tile/1/001.p/18", 404, -1},
		{"GET", "/log/tile/2/000.p/1", 200, 32},
		{"GET", "/log/tile/2/000.p/2", 404, -1},
		{"GET", "/log/tile/3/000.p/1", 404, -1},
		{"GET", "/log/tile/entries/000", 200, 256 * 34},
		{"GET", "/log/tile/entries/273.p/112", 200, 112 * 34},
		{"GET", "/log/tile/entries/273", 404, -1},
		// Paths that are not a log's, or not in canonical form.
		{"GET", "/log/", 404, -1},
		{"GET", "/log/checkpoint/", 404, -1},
		{"GET", "/log/tile/0/0", 404, -1},
		{"GET", "/log/tile/0/x000/000", 404, -1},
		{"GET", "/log/tile/00/000", 404, -1},
		{"GET", "/log/tile/-1/000", 404, -1},
		{"GET", "/log/tile/+0/000", 404, -1},
		{"GET", "/log/tile/8/0/000", 404, -1},
		{"GET", "/log/tile/data/000", 404, -1},
		{"GET", "/log/tile/0/000.p/0", 404, -1},
		{"GET", "/log/tile/0/000.p/256", 404, -1},
		{"GET", "/log/tile/0/000.p/01", 404, -1},
		{"GET", "/log/tile/0/000.p/", 404, -1},
		{"GET", "/log/tile/63/000.p/1", 404, -1},
		{"GET", "/log/tile/64/000.p/1", 404, -1},
		{"GET", "/log/tile/7/x999/x999/x999/x999/x999/999", 404, -1},
		{"GET", "/log/tile/0/" + strings.Repeat("x999/", 400) + "999", 404, -1},
		{"GET", "/log/tile/0/../../checkpoint", 404, -1},
		{"POST", "/log/checkpoint", 405, -1},
		{"DELETE", "/log/tile/0/000", 405, -1},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), test.method, test.path, http.NoBody))
		if w.Code != test.status {
			t.Errorf("%s %s: status %d, want %d", test.method, test.path, w.Code, test.status)
			continue
		}
		want := map[string]string{"Cache-Control": "no-store", "Content-Type": "text/plain; charset=utf-8"}
		switch {
		case test.status == 405:
			want["Allow"] = "GET, HEAD"
		case test.status == 200 && strings.HasSuffix(test.path, "/checkpoint"):
			want["Cache-Control"] = "no-cache"
		case test.status == 200:
			want = map[string]string{"Cache-Control": "public, max-age=31536000, immutable", "Content-Type": "application/octet-stream"}
		}
		want["Access-Control-Allow-Origin"] = "*"
		for name, value := range want {
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s %s: %s is %q, want %q", test.method, test.path, name, got, value)
			}
		}
		if test.method == "GET" && test.octets >= 0 && w.Body.Len() != test.octets {
			t.Errorf("%s: %d octets, want %d", test.path, w.Body.Len(), test.octets)
		}
	}
	entry, err := local(l)(t.Context(), "tile/entries/x000/273.p/1")
	if !errors.Is(err, tlog.ErrNotFound) {
		t.Errorf("an index with too many digits: %x, %v", entry, err)
	}
	entry, err = local(l)(t.Context(), "tile/entries/273.p/2")
	want := digests[273*256 : 273*256+2]
	if err != nil || binary.BigEndian.Uint16(entry) != 32 || !bytes.Equal(entry[2:34], want[0][:]) || !bytes.Equal(entry[36:], want[1][:]) {
		t.Errorf("the bundle is %x, %v, want %x with their lengths", entry, err, want)
	}
}

// A second process serves what the first has appended.
func TestHandlerFollows(t *testing.T) {
	tiles := new(tlog.MemoryTiles)
	writer, reader := open(t, tlog.Options{Tiles: tiles}), open(t, tlog.Options{Tiles: tiles})
	get := local(reader)
	if _, err := get(t.Context(), "tile/0/000.p/1"); !errors.Is(err, tlog.ErrNotFound) {
		t.Errorf("a tile of an empty log: %v, want ErrNotFound", err)
	}
	appendN(t, writer, 0, 257)
	for _, path := range []string{"tile/0/000", "tile/0/001.p/1", "tile/1/000.p/1", "tile/entries/001.p/1"} {
		if _, err := get(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
	if got, want := checkpoint(t, reader), checkpoint(t, writer); !bytes.Equal(got.Note, want.Note) {
		t.Errorf("the second process serves\n%s\nwant\n%s", got.Note, want.Note)
	}
}

// A foreign log may answer anything.
func TestHostileLog(t *testing.T) {
	l := open(t, tlog.Options{})
	appendN(t, l, 0, 10)
	older := checkpoint(t, l)
	appendN(t, l, 10, 300)
	newer := checkpoint(t, l)
	honest := l.Handler()

	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}
	for _, test := range []struct {
		name  string
		serve http.HandlerFunc
		want  error
	}{
		{"honest", honest.ServeHTTP, nil},
		{"nothing", http.NotFound, tlog.ErrNotFound},
		{"endless", endless, tlog.ErrMalformed},
		{"empty", func(http.ResponseWriter, *http.Request) {}, tlog.ErrMalformed},
		{"zeros", func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			honest.ServeHTTP(rec, r)
			w.Write(make([]byte, rec.Body.Len()))
		}, tlog.ErrRewritten},
		{"full tiles only", func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/000.p/") && strings.HasPrefix(r.URL.Path, "/tile/1/") {
				honest.ServeHTTP(w, r)
				return
			}
			if strings.Contains(r.URL.Path, ".p/") {
				http.NotFound(w, r)
				return
			}
			honest.ServeHTTP(w, r)
		}, tlog.ErrNotFound},
	} {
		server := httptest.NewServer(test.serve)
		err := tlog.VerifyConsistency(t.Context(), older, newer, tlog.HTTP(server.Client(), server.URL))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: VerifyConsistency = %v, want %v", test.name, err, test.want)
		}
		server.CloseClientConnections()
		server.Close()
	}
	if err := tlog.VerifyConsistency(t.Context(), newer, older, local(l)); !errors.Is(err, tlog.ErrShorter) {
		t.Errorf("VerifyConsistency = %v backwards, want ErrShorter", err)
	}
	foreign := *newer
	foreign.Origin = "other.example/log"
	if err := tlog.VerifyConsistency(t.Context(), older, &foreign, local(l)); !errors.Is(err, tlog.ErrForeign) {
		t.Errorf("VerifyConsistency = %v of two logs, want ErrForeign", err)
	}
}

// A log may have dropped a partial tile that is full by now.
func TestForgottenPart(t *testing.T) {
	l := open(t, tlog.Options{})
	appendN(t, l, 0, 100)
	m := &tlog.Monitor{VerifierKey: l.VerifierKey(), Get: local(l)}
	if _, err := m.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	appendN(t, l, 100, 256)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/000.p/100") {
			http.NotFound(w, r)
			return
		}
		l.Handler().ServeHTTP(w, r)
	}))
	defer server.Close()
	m.Get = tlog.HTTP(nil, server.URL)
	n := 0
	for leaf, err := range m.Leaves(t.Context(), 0) {
		if err != nil || leaf != tlogtest.Digest(n) {
			t.Fatalf("leaf %d is %x, %v", n, leaf, err)
		}
		n++
	}
	if n != 100 {
		t.Errorf("%d leaves, want those of the checkpoint that was seen, 100", n)
	}
}

func TestHTTPStatus(t *testing.T) {
	for _, status := range []int{201, 204, 206, 301, 403, 500} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			if status != 204 {
				io.WriteString(w, "no checkpoint")
			}
		}))
		if b, err := tlog.HTTP(server.Client(), server.URL)(t.Context(), "checkpoint"); err == nil {
			t.Errorf("status %d: %q, want an error", status, b)
		}
		server.Close()
	}
}

func FuzzParseProof(f *testing.F) {
	l := open(f, tlog.Options{})
	appendN(f, l, 0, 5)
	proof, err := l.Proof(f.Context(), tlogtest.Digest(2))
	if err != nil {
		f.Fatal(err)
	}
	vkey := l.VerifierKey()
	f.Add(proof)
	f.Add([]byte("c2sp.org/tlog-proof@v1\nextra \nindex 0\n\nnote\n"))
	f.Add([]byte("c2sp.org/tlog-proof@v1\nextra AA==\nindex 0\n\nnote\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := tlog.ParseProof(b)
		if err != nil {
			return
		}
		if got := p.Format(); !bytes.Equal(got, b) {
			t.Errorf("%q is written %q", b, got)
		}
		if c, err := tlog.VerifyProof(b, tlogtest.Digest(9), vkey); err == nil {
			t.Errorf("%q proves what is not in the log: %+v", b, c)
		}
	})
}

func FuzzParseCheckpoint(f *testing.F) {
	l := open(f, tlog.Options{})
	appendN(f, l, 0, 5)
	signed := checkpoint(f, l).Note
	vkey := l.VerifierKey()
	f.Add(signed)
	f.Add(append(bytes.Clone(signed), "— witness.example AAAAAAAAAAAA\n"...))
	f.Add([]byte("a\n1\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := tlog.ParseCheckpoint(b, vkey)
		if err != nil {
			return
		}
		if c.Size > 5 || !bytes.HasPrefix(b, []byte(origin+"\n")) {
			t.Errorf("%q was never signed", b)
		}
	})
}

// Whatever sizes a log signs and whatever tiles it serves, a forgery is detected in bounded time.
func FuzzVerifyConsistency(f *testing.F) {
	f.Add(int64(10), int64(300), []byte("seed"))
	f.Add(int64(1), int64(tlog.MaxSize), []byte{})
	f.Add(int64(tlog.MaxSize-1), int64(tlog.MaxSize), []byte{1})
	f.Add(int64(256), int64(65_536), []byte{2})
	f.Fuzz(func(t *testing.T, older, newer int64, seed []byte) {
		if older == newer {
			return // nothing is read
		}
		asked := 0
		get := func(_ context.Context, path string) ([]byte, error) {
			asked++
			width := 256
			if _, w, partial := strings.Cut(path, ".p/"); partial {
				width, _ = strconv.Atoi(w)
			}
			tile := make([]byte, 0, width*32)
			for len(tile) < width*32 {
				sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(len(tile))), seed...))
				tile = append(tile, sum[:]...)
			}
			return tile, nil
		}
		a := &tlog.Checkpoint{Origin: origin, Size: older, Root: tlog.Hash{1}}
		b := &tlog.Checkpoint{Origin: origin, Size: newer, Root: tlog.Hash{2}}
		if err := tlog.VerifyConsistency(t.Context(), a, b, get); err == nil {
			t.Errorf("sizes %d and %d: roots that are made up are consistent", older, newer)
		}
		if asked > 24 {
			t.Errorf("sizes %d and %d: %d tiles were read", older, newer, asked)
		}
	})
}
