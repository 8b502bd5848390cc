package api

import (
	"bufio"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/ibidhq/ibid/gateway"
)

// maxWindow is how far back a zstd body may refer, which is memory that its unpacking needs.
const maxWindow = 8 << 20

// unpack returns what a body holds that is compressed as Content-Encoding says.
func unpack(r io.Reader, encoding string) (io.ReadCloser, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return io.NopCloser(r), nil
	case "gzip", "x-gzip":
		return opened(gzip.NewReader(r))
	case "deflate":
		return inflate(r)
	case "br":
		return io.NopCloser(brotli.NewReader(r)), nil
	case "zstd":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, badBody(err)
		}
		return d.IOReadCloser(), nil
	}
	return nil, &gateway.Problem{
		Status: http.StatusUnsupportedMediaType, Code: gateway.CodeMediaType, Detail: "the body's Content-Encoding cannot be unpacked",
		Hint: "it is one of gzip, deflate, br, zstd", Header: http.Header{"Accept-Encoding": {"gzip, deflate, br, zstd"}},
	}
}

// inflate unpacks "deflate", which by the RFC has the head and the end of zlib; not all who send it know that.
func inflate(r io.Reader) (io.ReadCloser, error) {
	head := bufio.NewReader(r)
	first, err := head.Peek(2)
	if err == nil && first[0]&0x0f == 8 && (int(first[0])<<8|int(first[1]))%31 == 0 {
		return opened(zlib.NewReader(head))
	}
	return flate.NewReader(head), nil
}

func opened(r io.ReadCloser, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, badBody(err)
	}
	return r, nil
}

// bounded reads at most left bytes; if there are more, that is an error.
type bounded struct {
	io.Reader

	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &http.MaxBytesError{Limit: MaxDecode}
	}
	return n, err
}
