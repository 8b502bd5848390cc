package snapshot_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

func TestCleanURL(t *testing.T) {
	for _, test := range testenv.Cases(t, "testdata/clean_urls.txt", 2) {
		in, want := test[0], test[1]
		got, err := snapshot.CleanURL(in)
		if err != nil {
			t.Errorf("CleanURL(%q): %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("CleanURL(%q): %s", in, diff)
		}
		if again, err := snapshot.CleanURL(got); err != nil || again != got {
			t.Errorf("CleanURL(%q) = %q, %v: it is not clean", got, again, err)
		}
	}
}

// hostileURLs are refused before anything is resolved, with the reason.
func hostileURLs(tb testing.TB) map[string]string {
	tb.Helper()
	urls := map[string]string{
		"http://" + strings.Repeat("a", 64) + ".example/":              "host",
		"http://" + strings.Repeat("a.", 127) + "example/":             "host",
		"http://example.com/" + strings.Repeat("ü", snapshot.MaxURL/3): "url",
		"http://example.com/" + strings.Repeat("a", snapshot.MaxURL):   "url",
	}
	for _, row := range testenv.Cases(tb, "testdata/hostile_urls.txt", 2) {
		urls[row[0]] = row[1]
	}
	return urls
}

func TestCheckURLRefuses(t *testing.T) {
	for in, reasons := range hostileURLs(t) {
		err := snapshot.CheckURL(in, nil)
		ferr, ok := errors.AsType[*snapshot.FetchError](err)
		if !ok {
			t.Errorf("CheckURL(%.60q): %v, want a FetchError", in, err)
			continue
		}
		if ferr.Kind != snapshot.Blocked || !slices.Contains(strings.Split(reasons, "|"), ferr.Reason) {
			t.Errorf("CheckURL(%.60q): %s (%s), want blocked (%s)", in, ferr.Kind, ferr.Reason, reasons)
		}
		if strings.Contains(err.Error(), "secret") || len(err.Error()) > 2000 {
			t.Errorf("CheckURL(%.60q) says %q", in, err)
		}
	}
}

func TestCheckURLAllows(t *testing.T) {
	private := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	for in, allow := range map[string][]netip.Prefix{
		"https://example.com/":           nil,
		"http://example.com:443/":        nil,
		"https://[2606:2800:21f::1]/":    nil,
		"http://93.184.215.14/":          nil,
		"https://xn--bcher-kva.example/": nil,
		"http://localhost/":              nil, // it depends on what it resolves to
		"http://10.1.2.3:8080/":          private,
		"http://[::ffff:10.1.2.3]:8080/": private,
		"http://[fd12::1]:9/":            private,
		"http://intranet.example:8080/":  private,
	} {
		if err := snapshot.CheckURL(in, allow); err != nil {
			t.Errorf("CheckURL(%q): %v", in, err)
		}
	}
	for _, in := range []string{
		"http://10.2.0.1/", "http://127.0.0.1/", "http://93.184.215.14:8080/", "http://[fe80::1]/", "http://u@10.1.2.3/", "ftp://10.1.2.3/",
	} {
		if err := snapshot.CheckURL(in, private); err == nil {
			t.Errorf("CheckURL(%q) with %v: no error", in, private)
		}
	}
}

func FuzzCleanURL(f *testing.F) {
	for in := range hostileURLs(f) {
		f.Add(in)
	}
	f.Add("https://bücher.example:443/a/../b c?q=ü#x")
	f.Fuzz(func(t *testing.T, in string) {
		checked := snapshot.CheckURL(in, nil)
		got, err := snapshot.CleanURL(in)
		if err != nil {
			if ferr, ok := errors.AsType[*snapshot.FetchError](err); !ok || ferr.Kind != snapshot.Blocked {
				t.Fatalf("%q: %v", in, err)
			}
			if checked == nil {
				t.Fatalf("%q is checked, but not clean: %v", in, err)
			}
			return
		}
		if again, err := snapshot.CleanURL(got); err != nil || again != got {
			t.Fatalf("%q: %q, then %q, %v", in, got, again, err)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '#' }) {
			t.Fatalf("%q: %q", in, got)
		}
		// What is clean says the same of where it leads, but for the user that it lost.
		if checked == nil && snapshot.CheckURL(got, nil) != nil {
			t.Fatalf("%q is checked, %q is not", in, got)
		}
	})
}
