package wire

import (
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestReadError(t *testing.T) {
	for _, c := range testenv.Table[struct{ Doc, Code, Message string }](t, "testdata/tables/read-error.txt") {
		code, message, ok := ReadError(nil, scan.Value(c.Doc))
		if code != c.Code || message != c.Message || ok != (c.Code != "") {
			t.Errorf("ReadError(%s) = %q, %q, %t, want %q, %q", c.Doc, code, message, ok, c.Code, c.Message)
		}
	}
}

func FuzzReadError(f *testing.F) {
	f.Add(`{"error":{"message":"m"}}`)
	f.Add(`[{"message":"m","code":[1]}]`)
	f.Fuzz(func(t *testing.T, doc string) {
		code, message, ok := ReadError(nil, scan.Value(doc))
		if ok == (code == "" || message == "") {
			t.Errorf("ReadError(%q) = %q, %q, %v", doc, code, message, ok)
		}
	})
}
