package httpsig

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/dunglas/httpsfv"
)

// ContentDigest returns the value of Content-Digest for the octets of a body as it is sent, by sha-256.
func ContentDigest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// CheckDigest returns an error unless the lines of a Content-Digest field are of this body: RFC 9530. Each digest by
// sha-256 or sha-512 must be right, and there must be one, and one by each of the algorithms in must. Those by other
// algorithms prove nothing and are passed over.
func CheckDigest(field []string, body []byte, must ...string) error {
	lines, err := fieldLines(http.Header{"Content-Digest": field}, "Content-Digest")
	if err != nil {
		return fmt.Errorf("reading Content-Digest: %w", err)
	}
	d, err := parseDictionary(lines)
	if err != nil {
		return fmt.Errorf("reading Content-Digest: %w", err)
	}
	known := false
	for _, name := range d.Names() {
		var sum []byte
		switch name {
		case "sha-256":
			s := sha256.Sum256(body)
			sum = s[:]
		case "sha-512":
			s := sha512.Sum512(body)
			sum = s[:]
		default:
			continue
		}
		v, _ := d.Get(name)
		item, _ := v.(httpsfv.Item)
		if said, ok := item.Value.([]byte); !ok || !bytes.Equal(said, sum) {
			return fmt.Errorf("checking Content-Digest: the body does not have this %s", name)
		}
		known = true
	}
	if !known {
		return errors.New("checking Content-Digest: it has neither sha-256 nor sha-512")
	}
	for _, name := range must {
		if _, has := d.Get(name); !has {
			return fmt.Errorf("checking Content-Digest: it has no %s", name)
		}
	}
	return nil
}
