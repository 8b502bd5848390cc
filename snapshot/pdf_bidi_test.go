package snapshot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// hebrew is a font whose codes from 0x80 on are the letters of the Hebrew alphabet; those below are ASCII.
func hebrew() (font, toUnicode string) {
	return "<</Type/Font/Subtype/Type1/ToUnicode 6 0 R>>", stream("", "1 begincodespacerange <00> <ff> endcodespacerange "+
		"2 beginbfrange <20> <7e> <0020> <80> <9a> <05D0> endbfrange")
}

// hexOf returns the codes of a text in that font.
func hexOf(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0x5D0 {
			r += 0x80 - 0x5D0
		}
		fmt.Fprintf(&b, "%02x", r)
	}
	return b.String()
}

// reversed returns the letters of a text from the last to the first.
func reversed(s string) string {
	var out string
	for _, r := range s {
		out = string(r) + out
	}
	return out
}

// A page shows its glyphs from left to right; text that is read from the right is put in the order in which it is read.
func TestPDFFromRight(t *testing.T) {
	shalom, olam := "שלום", "עולם"
	for _, test := range []struct{ name, shown, want string }{
		{"words", reversed(shalom + " " + olam + "."), shalom + " " + olam + "."},
		{"a number", reversed(olam) + " 1,204 " + reversed(shalom), shalom + " 1,204 " + olam},
		{"two numbers", "2004 - 1999 " + reversed(shalom), shalom + " 1999 - 2004"},
		{"words from the left in brackets", ".)Ardea cinerea( 1999 " + reversed(shalom+" "+olam+" "+shalom), shalom + " " + olam + " " + shalom + " 1999 (Ardea cinerea)."},
		{"few words of many letters", ".)Ardea cinerea alba( " + reversed("של ים של ים"), "של ים של ים (Ardea cinerea alba)."},
		{"words and a number", "Windows 11 " + reversed(shalom+" "+olam), shalom + " " + olam + " Windows 11"},
		{"brackets among words from the left", "f(x) = y " + reversed(shalom+" "+olam+" "+shalom), shalom + " " + olam + " " + shalom + " f(x) = y"},
		{"in a line from the left", "The words " + reversed(olam) + " 12 " + reversed(shalom) + " mean it.", "The words " + shalom + " 12 " + olam + " mean it."},
		{"none", "Only 12 (twelve) words", "Only 12 (twelve) words"},
	} {
		font, toUnicode := hebrew()
		text := testenv.Must(snapshot.Extract([]byte(withObject(font, stream("", "BT /F1 10 Tf 50 700 Td <"+hexOf(test.shown)+"> Tj ET"), "", toUnicode)), nil))(t)
		testenv.Diff(t, test.name, text.Content, test.want)
	}
}

// Some programs write such text in the order in which it is read, each glyph left of the one before.
func TestPDFFromRightInOrder(t *testing.T) {
	var list strings.Builder
	for _, r := range "שלום" {
		fmt.Fprintf(&list, "<%s> 1080 ", hexOf(string(r)))
	}
	font, toUnicode := hebrew()
	text, err := snapshot.Extract([]byte(withObject(font, stream("", "BT /F1 10 Tf 250 700 Td ["+list.String()+"] TJ ET"), "", toUnicode)), nil)
	if err != nil || text.Content != "שלום" {
		t.Errorf("%q, %v", text.Content, err)
	}
}
