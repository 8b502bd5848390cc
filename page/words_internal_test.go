package page

import "testing"

func TestPlainWords(t *testing.T) {
	for text, want := range map[string]string{
		"Herons nest high up in trees.":              "Herons nest high up in trees.",
		"**Herons** nest _high up_ in `trees`.":      "Herons nest high up in trees.",
		"Her**on**s nest [here](https://a.example).": "Herons nest here.",
		"## Herons\n\n- nest\n- croak":               "Herons nest croak",
		"2 < 3 & 4 > 3 <b>bold</b>":                  "2 < 3 & 4 > 3 <b>bold</b>",
		"snake_case_name  has\ttwo":                  "snake_case_name has two",
		"1. first":                                   "first",
		"":                                           "",
	} {
		if got := plainWords(text); got != want {
			t.Errorf("%q reads %q, not %q", text, got, want)
		}
	}
}
