package httpsig_test

import (
	"crypto"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/internal/testenv"
)

func FuzzVerify(f *testing.F) {
	const signature = "sig=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"
	f.Add(`sig=("date" "@method" "@path" "x-a";key="k");created=1;keyid="k"`, signature, "https://a.example/a?b=c", "k=1;a, l=(1 2)")
	f.Add(`sig=("@query-param";name="b";req "x-a";bs "x-a";tr "@status"), b=()`, "sig=:AAAA:, b=:AAAA:", "https://a.example?b=%20", "a\r\n b")
	f.Add(`sig=("signature";sf "priority";sf)`, "sig=?1", "http://[::1]:80/", `%"%c3%a4", "\\"`)
	keys := []any{newKey(1).Public(), newP256(f).Public()}
	f.Fuzz(func(t *testing.T, input, signature, uri, field string) {
		header := http.Header{"Signature-Input": {input}, "Signature": {signature}, "X-A": {field, field}, "Priority": {field}, "Date": {field}}
		for _, m := range []*httpsig.Message{
			{Method: "GET", TargetURI: uri, Header: header, Trailer: header},
			{Status: 200, Header: header, Request: &httpsig.Message{Method: "GET", TargetURI: uri, Header: header}},
		} {
			list, err := httpsig.Parse(m)
			if err != nil {
				continue
			}
			for _, s := range list {
				for _, key := range keys {
					if s.Verify(m, key) == nil {
						t.Errorf("%s verifies", s.Label)
					}
				}
				base, err := s.Base(m)
				if err != nil {
					continue
				}
				if n := strings.Count(string(base), "\n"); n != len(s.Components) {
					t.Errorf("%d components make %d lines:\n%s", len(s.Components), n+1, base)
				}
			}
		}
		_ = httpsig.CheckDigest([]string{field}, []byte(input))
	})
}

func BenchmarkVerify(b *testing.B) {
	for _, bench := range []struct {
		alg string
		key crypto.Signer
	}{{httpsig.Ed25519, newKey(1)}, {httpsig.ECDSAP256, newP256(b)}} {
		b.Run(bench.alg, func(b *testing.B) {
			m := manifestResponse(b, bench.key)
			b.ReportAllocs()
			for b.Loop() {
				list := testenv.Must(httpsig.Parse(m))(b)
				testenv.OK(b, list[0].Verify(m, bench.key.Public()))
			}
		})
	}
}
