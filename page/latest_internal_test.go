package page

import "testing"

func TestManifestWords(t *testing.T) {
	for address, want := range map[string]string{
		"":                                    "",
		"https://a.example/runs/r/cite":       "in the manifest of the run",
		"https://a.example/runs/r/cite.2":     "in the manifest of the run",
		"https://a.example/runs/r/cite/ans_1": "in the manifest of the answer",
		"https://a.example/cited":             "",
	} {
		if got := manifestWords(address); got != want {
			t.Errorf("%q: %q, not %q", address, got, want)
		}
	}
}

// An answer that was found is shown as it reads.
func TestHitReads(t *testing.T) {
	const text = "## Herons\n\n**Grey herons** nest in [tall trees](https://a.example)."
	if got, want := newFinder("nest ").excerpt(text), "Herons Grey herons <mark>nest</mark> in tall trees."; string(got) != want {
		t.Errorf("%q, not %q", got, want)
	}
}
