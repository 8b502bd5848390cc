package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/unpack"
)

func TestUnpack(t *testing.T) {
	body := `{"id": "otter", "text": "` + strings.Repeat("Otters hold hands – always. ", 200) + `"}`
	for _, coding := range []string{"gzip", "zstd", "deflate", "raw", "br"} {
		for _, text := range []string{"data: {}\n\n", "Otter.", body} {
			packed := testenv.Must(pack(coding, []byte(text)))(t)
			for name, r := range map[string]io.Reader{
				"at once":      bytes.NewReader(packed),
				"byte by byte": iotest.OneByteReader(bytes.NewReader(packed)),
			} {
				if got := unpackAll(t, r, "otter.json"); got != text {
					t.Errorf("%s, %s: %q, want %q", coding, name, got, text)
				}
			}
		}
	}
}

// Uncompressed input is unchanged, whatever it begins with.
func TestUnpackPlain(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                         "",
		"one byte":                      "x",
		"like zlib":                     "x^2 is a power",
		"old encoding":                  "caf\xe9",
		"old encoding, long":            strings.Repeat("caf\xe9 au lait, ", 10_000),
		"damaged JSON":                  `{"text": "` + "\xff\xfe" + `"}`,
		"JSON with one bad byte":        "{\n  \"id\": \"otter\", \"text\": \"Otters hold h\xffnds.\"\n}\n",
		"JSON with one control":         "{\n  \"id\": \"otter\", \"text\": \"Otters hold h\x01nds.\"\n}\n",
		"JSON with a NUL":               "{\n  \"id\": \"otter\", \"text\": \"Otters hold h\x00nds.\"\n}\n",
		"escape sequences":              "\x1b[31mred\x07\x01",
		"cut in a character":            "otter \xe2\x80",
		"byte order mark":               "\xef\xbb\xbf{}",
		"AWS event stream":              "\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2\x48\xeb\x7d\x98\xc8\xff",
		"character over the head's end": strings.Repeat("x", maxHead-1) + "–",
	} {
		for reading, r := range map[string]io.Reader{
			"at once":      strings.NewReader(text),
			"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		} {
			if got := unpackAll(t, r, "note.txt"); got != text {
				t.Errorf("%s, %s: changed: %.60q", name, reading, got)
			}
		}
	}
}

func TestUnpackErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name string
		r    io.Reader
		want error
	}{
		{"picture", strings.NewReader("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), errBinary},
		{"UTF-16", strings.NewReader("\xff\xfe{\x00}\x00"), errUTF16},
		{"UTF-16, big end first", strings.NewReader("\xfe\xff\x00{\x00}"), errUTF16},
		{"unreadable", iotest.ErrReader(broken), broken},
		{"unreadable later", io.MultiReader(strings.NewReader("otter"), iotest.ErrReader(broken)), broken},
	} {
		r, err := unpacked(test.r, "x")
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

// A piece of Brotli too short to be recognised is decompressed only by its file name.
func TestUnpackNamed(t *testing.T) {
	packed := testenv.Must(pack("br", []byte(strings.Repeat("Otters ", 4))))(t)
	cut := packed[:len(packed)-1]
	if _, err := unpacked(bytes.NewReader(cut), "otter.json"); !errors.Is(err, errBinary) {
		t.Errorf("without the name: %v, want %v", err, errBinary)
	}
	r := testenv.Must(unpacked(bytes.NewReader(cut), "otter.json.br"))(t)
	if _, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("with the name: %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

// A few kilobytes that decompress to more than any answer are refused without filling memory.
func TestUnpackBomb(t *testing.T) {
	var bomb bytes.Buffer
	w := testenv.Must(zstd.NewWriter(&bomb))(t)
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	for range maxUnpacked/len(spaces) + 1 {
		testenv.Must(w.Write(spaces))(t)
	}
	testenv.OK(t, w.Close())
	r := testenv.Must(unpacked(&bomb, "bomb"))(t)
	n, err := io.Copy(io.Discard, r)
	if !errors.Is(err, errUnpacked) || n != maxUnpacked {
		t.Errorf("%d bytes, then %v; want %d, then %v", n, err, maxUnpacked, errUnpacked)
	}
}

// Random bytes are not compressed text: codings without a signature are detected by trying, which must not succeed.
func TestUnpackRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	taken := 0
	const tries = 5_000
	for range tries {
		b := make([]byte, 8+random.IntN(400))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		if c, err := recognise(b, false); err == nil && c != unpack.Plain {
			taken++
		}
	}
	if most := tries / 200; taken > most {
		t.Errorf("%d of %d random inputs were taken for compressed, want at most %d", taken, tries, most)
	}
}

func FuzzUnpack(f *testing.F) {
	for _, coding := range []string{"gzip", "zstd", "deflate", "raw", "br"} {
		packed := testenv.Must(pack(coding, []byte("data: {\"text\": \"Otters hold hands.\"}\n\n")))(f)
		f.Add(packed)
		f.Add(packed[:len(packed)/2])
	}
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Add([]byte("\x1f\x8b"))
	f.Add([]byte("x\x9c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := unpacked(bytes.NewReader(data), "x")
		if err != nil {
			return
		}
		n, err := io.Copy(io.Discard, r)
		if n > maxUnpacked {
			t.Errorf("%d bytes", n)
		}
		if isText(data) && (err != nil || n != int64(len(data))) {
			t.Errorf("text was changed: %v", err)
		}
	})
}

func unpackAll(t *testing.T, r io.Reader, name string) string {
	t.Helper()
	plain, err := unpacked(r, name)
	if err != nil {
		t.Errorf("unpack %s: %v", name, err)
		return ""
	}
	data, err := io.ReadAll(plain)
	if err != nil {
		t.Errorf("unpack %s: %v", name, err)
	}
	return string(data)
}
