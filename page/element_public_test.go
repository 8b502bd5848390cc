package page_test

import "testing"

// The element can be loaded by any page, even while the rest is restricted to this machine; signing in and out only
// works from a page of ours.
func TestElementForEveryPage(t *testing.T) {
	w := newWorld(t, nil)
	elsewhere := []string{"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}
	for path, want := range map[string]int{"/ibid.js": 200, "/ui/assets/page.js": 403, "/ui/login": 403, "/": 403} {
		if got := w.get(t, path, elsewhere...); got.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, got.Status, want)
		}
	}
	for _, path := range []string{"/ui/login", "/ui/logout"} {
		for _, site := range []string{"cross-site", "same-site"} {
			if got := w.do(t, "POST", path, "", "Sec-Fetch-Site", site); got.StatusCode != 403 {
				t.Errorf("%s from another page (%s): %s", path, site, got.Status)
			}
		}
	}
}
