package ibid

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNumbering(t *testing.T) {
	var n Numbering
	for _, tt := range []struct {
		key  string
		want int
	}{{"a", 1}, {"b", 2}, {"a", 1}, {"c", 3}} {
		if got := n.Number(tt.key); got != tt.want {
			t.Errorf("Number(%q) = %d, want %d", tt.key, got, tt.want)
		}
	}
	data, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"a":1,"b":2,"c":3}`, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	edited := Numbering{"x": 7}
	if got := edited.Number("y"); got != 8 {
		t.Errorf("after an edit: %d, want 8", got)
	}
}
