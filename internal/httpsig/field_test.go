package httpsig_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/httpsig"
)

// Line folds without end end nothing else, and cost no more than their bytes.
func TestFolds(t *testing.T) {
	folds := "a=1" + strings.Repeat("\n ", 1<<19)
	if list, err := httpsig.Parse(&httpsig.Message{Header: http.Header{"Signature-Input": {folds}, "Signature": {"a=:AAAA:"}}}); err == nil {
		t.Errorf("a field of %d bytes is read: %d signatures", len(folds), len(list))
	}
	if err := httpsig.CheckDigest([]string{folds}, nil); err == nil {
		t.Error("a digest of that length is read")
	}
	for length, ok := range map[int]bool{httpsig.MaxField: true, httpsig.MaxField + 1: false, len(folds): false} {
		value := "a" + strings.Repeat("\n ", (length-2)/2)
		value += strings.Repeat("b", length-len(value))
		m := &httpsig.Message{Method: "GET", TargetURI: "https://a.example/", Header: http.Header{"X-Folds": {value}}}
		text, err := httpsig.Base(m, &httpsig.Params{Components: components("x-folds")})
		if (err == nil) != ok {
			t.Errorf("%d bytes: %v", length, err)
		}
		if ok && !strings.HasPrefix(string(text), `"x-folds": a`+strings.Repeat(" ", (length-2)/2)+"b") {
			t.Errorf("the base is %.40q…", text)
		}
	}
}
