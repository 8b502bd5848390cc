package page

import "testing"

// The address of the reader's own machine says nothing of a source; any other one does, numbers too.
func TestShortName(t *testing.T) {
	for site, want := range map[string]string{
		"127.0.0.1": "Herons", "127.0.0.1:8080": "Herons", "localhost": "Herons", "birds.localhost:80": "Herons", "": "Herons",
		"birds.example": "birds.example", "10.0.0.7": "10.0.0.7", "localhost.example": "localhost.example",
	} {
		if got := shortName(site, "Herons"); got != want {
			t.Errorf("%q: %q, want %q", site, got, want)
		}
	}
}
