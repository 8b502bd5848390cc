package unpack

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const text = "Herons nest in the old mill. They come back in März."

func packed(t *testing.T, c Coding) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch c {
	case Gzip:
		w = gzip.NewWriter(&b)
	case Zstd:
		w, err = zstd.NewWriter(&b)
	case Brotli:
		w = brotli.NewWriter(&b)
	case Deflate, Zlib:
		w = zlib.NewWriter(&b)
	case Flate:
		w, err = flate.NewWriter(&b, 5)
	case Plain:
		return []byte(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReader(t *testing.T) {
	for c := Plain; c <= Flate; c++ {
		unpacking := []Coding{c}
		if c == Zlib || c == Flate {
			unpacking = append(unpacking, Deflate)
		}
		for _, as := range unpacking {
			r, err := as.Reader(iotest.OneByteReader(bytes.NewReader(packed(t, c))), MaxWindow)
			if err != nil {
				t.Errorf("%d as %d: %v", c, as, err)
				continue
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != text {
				t.Errorf("%d as %d: %q, %v", c, as, got, err)
			}
		}
	}
}

// Damaged, truncated or empty input is an error sooner or later, and never a panic.
func TestReaderBroken(t *testing.T) {
	for c := Gzip; c <= Flate; c++ {
		whole := packed(t, c)
		for _, in := range []string{"", "\xff\xff\xffno such thing", string(whole[:1]), string(whole[:len(whole)-5])} {
			if in == "" && c == Zstd { // an empty zstd input is valid
				continue
			}
			r, err := c.Reader(strings.NewReader(in), MaxWindow)
			if err == nil {
				_, err = io.ReadAll(r)
			}
			if err == nil {
				t.Errorf("%v reads %q", c, in)
			}
		}
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]Coding{
		"": Plain, "identity": Plain, " X-GZip": Gzip, "gzip": Gzip, "deflate": Deflate, "BR": Brotli, "zstd ": Zstd,
	} {
		if got, ok := Find(name); !ok || got != want {
			t.Errorf("Find(%q) = %v, %t, want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"compress", "gzip, gzip", "br;q=1"} {
		if got, ok := Find(name); ok {
			t.Errorf("Find(%q) = %v", name, got)
		}
	}
}

func TestLimit(t *testing.T) {
	over := errors.New("over")
	for most, want := range map[int64]error{0: over, 9: over, 10: nil, 11: nil} {
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader("0123456789"), "byte by byte": iotest.OneByteReader(strings.NewReader("0123456789")),
		} {
			limited := Limit(r, most, over)
			got, err := io.ReadAll(limited)
			if !errors.Is(err, want) || string(got) != "0123456789"[:min(10, most)] {
				t.Errorf("%d, %s: %q, %v", most, name, got, err)
			}
			if n, err := limited.Read(make([]byte, 4)); want != nil && (n != 0 || !errors.Is(err, want)) {
				t.Errorf("%d, %s: again %d, %v", most, name, n, err)
			}
		}
	}
}
