package snapshot

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestSurelyNFC(t *testing.T) {
	sure := 0
	for r := range rune(unicode.MaxRune + 1) {
		if !utf8.ValidRune(r) || !surelyNFC(utf8.AppendRune(nil, r)) {
			continue
		}
		sure++
		if s := string(r); !norm.NFC.IsNormalString(s) || !norm.NFC.PropertiesString(s).BoundaryBefore() {
			t.Errorf("%U is not", r)
		}
	}
	if sure < 20_000 {
		t.Errorf("only %d characters are sure", sure)
	}
}
