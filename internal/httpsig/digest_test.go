package httpsig_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/httpsig"
)

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func TestCheckDigest(t *testing.T) {
	// The examples of RFC 9530, appendix B and D: the body is with its line end.
	const (
		body   = "{\"hello\": \"world\"}\n"
		sha256 = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
		sha512 = "sha-512=:YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCsyRZOtw8MjkM7iw7yZ/WkppmM44T3qg==:"
	)
	if got := httpsig.ContentDigest([]byte(body)); got != sha256 {
		t.Errorf("ContentDigest = %s, want %s", got, sha256)
	}
	for about, test := range map[string]struct {
		field []string
		ok    bool
	}{
		"sha-256":                {[]string{sha256}, true},
		"sha-512":                {[]string{sha512}, true},
		"both":                   {[]string{sha256 + ", " + sha512}, true},
		"both in lines":          {[]string{" " + sha512 + "\t", sha256}, true},
		"with an unknown":        {[]string{"md5=:AAAA:, " + sha256 + ", crc=1"}, true},
		"folded":                 {[]string{sha256 + ",\r\n " + sha512}, true},
		"none":                   {nil, false},
		"empty":                  {[]string{""}, false},
		"only unknown":           {[]string{"md5=:AAAA:"}, false},
		"another":                {[]string{httpsig.ContentDigest([]byte("heron"))}, false},
		"one right":              {[]string{sha256 + ", sha-512=:AAAA:"}, false},
		"the other right":        {[]string{sha512 + ", sha-256=:AAAA:"}, false},
		"twice, the last right":  {[]string{httpsig.ContentDigest(nil) + ", " + sha256}, false},
		"twice, the first right": {[]string{sha256, httpsig.ContentDigest(nil)}, false},
		"text":                   {[]string{strings.ReplaceAll(sha256, ":", `"`)}, false},
		"a list":                 {[]string{strings.Replace(sha256, "=:", "=(:", 1) + ")"}, false},
		"half":                   {[]string{"sha-256=:RK/0qy18MlBSVnWgjwz6lQ==:"}, false},
		"no dictionary":          {[]string{"SHA-256=" + sha256[8:]}, false},
		"line break":             {[]string{sha256 + "\n" + sha512}, false},
		"long":                   {[]string{sha256 + ", md5=:" + strings.Repeat("AAAA", httpsig.MaxField/4) + ":"}, false},
	} {
		if err := httpsig.CheckDigest(test.field, []byte(body)); (err == nil) != test.ok {
			t.Errorf("%s: %v", about, err)
		}
		want := test.ok && strings.Contains(strings.Join(test.field, ""), "sha-256=")
		if err := httpsig.CheckDigest(test.field, []byte(body), "sha-256"); (err == nil) != want {
			t.Errorf("%s, with sha-256: %v", about, err)
		}
	}
}
