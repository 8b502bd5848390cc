package wire

import (
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestAnother(t *testing.T) {
	tests := testenv.Table[struct {
		Format, ID, Doc string
		Want            bool
	}](t, "testdata/tables/another.txt")
	for _, tt := range tests {
		event, data := splitEvent(tt.Doc)
		if got := Another(tt.Format, tt.ID, event, scan.Value(data)); got != tt.Want {
			t.Errorf("Another(%s, %q, %s) = %v, want %v", tt.Format, tt.ID, tt.Doc, got, tt.Want)
		}
	}
}
