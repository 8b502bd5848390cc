package page

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
)

// A text runs as its first letter does, whatever marks and numbers stand before it.
func TestDirection(t *testing.T) {
	for text, want := range map[string]string{
		"": "auto", "1. – «": "auto", "Herons": "ltr", "**2** אנפה": "rtl", "- البلشون nests": "rtl", "蒼鷺 البلشون": "ltr", "٣ herons": "ltr",
	} {
		if got := direction(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// What is told again from the beginning, for somebody who came later, adds what was missing and nothing twice.
func TestPartialAgain(t *testing.T) {
	say := func(h *partial, at int, text string) {
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		h.take(&bus.Live{Kind: gateway.LiveText, At: at, Data: b})
	}
	var h partial
	var got []string
	for _, d := range []struct {
		at   int
		text string
	}{
		{7, "nest "},        // who came late has a gap
		{0, "Herons nest "}, // and is told again
		{12, "in "},         // what goes on
		{0, "Herons nest "}, // somebody else came
		{7, "nest in trees"},
		{40, "gap"},
	} {
		say(&h, d.at, d.text)
		got = append(got, h.text.String())
	}
	want := []string{"", "Herons nest ", "Herons nest in ", "Herons nest in ", "Herons nest in trees", "Herons nest in trees"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	cite := func(key string) {
		b, err := json.Marshal(gateway.LiveCitations{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		h.take(&bus.Live{Kind: gateway.LiveCitation, Data: b})
	}
	for _, key := range []string{"a", "b", "a", "b"} {
		cite(key)
	}
	var keys []string
	for _, row := range h.rows {
		keys = append(keys, row.key)
	}
	if diff := cmp.Diff([]string{"a", "b"}, keys); diff != "" {
		t.Errorf("citations (-want +got):\n%s", diff)
	}
}
