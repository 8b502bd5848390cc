package snapshot_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/snapshot"
)

func TestCleanURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://example.com":                              "https://example.com/",
		"HTTPS://EXAMPLE.Com:443/A?B#C":                    "https://example.com/A?B",
		"http://example.com:80/":                           "http://example.com/",
		"http://example.com:0080/":                         "http://example.com/",
		"http://example.com:443/":                          "http://example.com:443/",
		"http://example.com:/":                             "http://example.com/",
		"https://user:secret@example.com/x":                "https://example.com/x",
		"https://bücher.example/straße?q=ü#x":              "https://xn--bcher-kva.example/stra%C3%9Fe?q=%C3%BC",
		"https://faß.example/":                             "https://xn--fa-hia.example/",
		"https://xn--bcher-kva.example/":                   "https://xn--bcher-kva.example/",
		"https://EXA\u00adMPLE.com/":                       "https://example.com/",
		"https://example。com/":                             "https://example.com/",
		"https://r3---sn-apo3qvuo.video.example/":          "https://r3---sn-apo3qvuo.video.example/",
		"https://under_score.example./":                    "https://under_score.example./",
		"https://example.com/a%2Fb c/":                     "https://example.com/a%2Fb%20c/",
		"https://example.com/\"<>\\^`{|}":                  "https://example.com/%22%3C%3E%5C%5E%60%7B%7C%7D",
		"https://example.com/?a=\"<ü>&b=%zz'":              "https://example.com/?a=%22%3C%C3%BC%3E&b=%zz'",
		"https://example.com/?":                            "https://example.com/?",
		"https://example.com/a/./b/../c":                   "https://example.com/a/c",
		"https://example.com/a/%2E%2e/b/.":                 "https://example.com/b/",
		"https://example.com/../..":                        "https://example.com/",
		"https://example.com/a//../b/...":                  "https://example.com/a/b/...",
		"http://[2001:DB8:0::1]:80/":                       "http://[2001:db8::1]/",
		"http://[::FFFF:127.0.0.1]/":                       "http://[::ffff:127.0.0.1]/",
		"http://127.0.0.1:8080/":                           "http://127.0.0.1:8080/",
		"https://example.com/a?x=http://other.example/#..": "https://example.com/a?x=http://other.example/",
	} {
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
func hostileURLs() map[string]string {
	return map[string]string{
		// Loopback, and its spellings.
		"http://127.0.0.1/":                        "network",
		"http://127.1.2.3/":                        "network",
		"http://127.0.0.1:443/":                    "network",
		"http://127.0.0.1:8080/":                   "network",
		"http://0.0.0.0/":                          "network",
		"http://127.1/":                            "host",
		"http://127.0.1/":                          "host",
		"http://2130706433/":                       "host",
		"http://0x7f000001/":                       "host",
		"http://0x7f.1/":                           "host",
		"http://0x7f.0x0.0x0.0x1/":                 "host",
		"http://0177.0.0.1/":                       "host",
		"http://017700000001/":                     "host",
		"http://127.0.0.1./":                       "host",
		"http://127.0.0.01/":                       "host",
		"http://0/":                                "host",
		"http://0x/":                               "host",
		"http://1.1.1.1.1/":                        "host",
		"http://256.256.256.256/":                  "host",
		"http://[::1]/":                            "network",
		"http://[::]/":                             "network",
		"http://[0:0:0:0:0:0:0:1]/":                "network",
		"http://[::127.0.0.1]/":                    "network",
		"http://[::ffff:127.0.0.1]/":               "network",
		"http://[::ffff:7f00:1]/":                  "network",
		"http://[0:0:0:0:0:ffff:169.254.169.254]/": "network",
		// Private, shared, link-local, metadata, benchmarks, multicast, reserved, documentation.
		"http://10.0.0.1/":                         "network",
		"http://172.16.0.1/":                       "network",
		"http://192.168.1.1/":                      "network",
		"http://100.64.0.1/":                       "network",
		"http://100.100.100.200/":                  "network",
		"http://169.254.169.254/latest/meta-data/": "network",
		"http://169.254.170.2/":                    "network",
		"http://192.0.0.192/":                      "network",
		"http://198.18.0.1/":                       "network",
		"http://224.0.0.1/":                        "network",
		"http://240.0.0.1/":                        "network",
		"http://255.255.255.255/":                  "network",
		"http://203.0.113.7/":                      "network",
		"http://[fe80::1]/":                        "network",
		"http://[fc00::1]/":                        "network",
		"http://[fd00:ec2::254]/":                  "network",
		"http://[fec0::1]/":                        "network",
		"http://[ff02::1]/":                        "network",
		"http://[2001:db8::1]/":                    "network",
		"http://[3fff::1]/":                        "network",
		"http://[5f00::1]/":                        "network",
		"http://[100::1]/":                         "network",
		// Addresses within addresses.
		"http://[64:ff9b::7f00:1]/":          "network",
		"http://[64:ff9b::169.254.169.254]/": "network",
		"http://[64:ff9b:1::10.0.0.1]/":      "network",
		"http://[2002:7f00:1::]/":            "network",
		"http://[2002:a9fe:a9fe::1]/":        "network",
		"http://[2001:0:7f00:1::]/":          "network",
		"http://[::ffff:0:127.0.0.1]/":       "network",
		// Zones.
		"http://[fe80::1%25eth0]/": "zone",
		"http://[::1%25lo]/":       "zone",
		"http://[2600::1%25eth0]/": "zone",
		"http://[fe80::1%eth0]/":   "url",
		// Users and passwords.
		"http://user@example.com/":         "userinfo",
		"http://user:secret@example.com/":  "userinfo",
		"http://@example.com/":             "userinfo",
		"http://example.com@127.0.0.1/":    "userinfo",
		"http://127.0.0.1%2f@example.com/": "userinfo",
		"http://example.com\\@127.0.0.1/":  "url",
		// Ports.
		"http://example.com:22/":    "port",
		"http://example.com:8080/":  "port",
		"http://example.com:6379/":  "port",
		"https://example.com:8443/": "port",
		"http://example.com:0/":     "port",
		"http://example.com:65616/": "port",
		"http://93.184.215.14:25/":  "port",
		"http://example.com:-1/":    "url",
		"http://example.com:80:80/": "url",
		// Schemes.
		"file:///etc/passwd":                "scheme",
		"file://127.0.0.1/etc/passwd":       "scheme",
		"gopher://127.0.0.1:6379/_FLUSHALL": "scheme",
		"data:text/html,hello":              "scheme",
		"ftp://example.com/":                "scheme",
		"javascript:alert(1)":               "scheme",
		"dict://127.0.0.1:11211/stats":      "scheme",
		"ldap://127.0.0.1/":                 "scheme",
		"ws://example.com/":                 "scheme",
		"urn:ibid:src:s1":                   "scheme",
		"jar:http://example.com/!/":         "scheme",
		"//example.com/":                    "scheme",
		"/etc/passwd":                       "scheme",
		"example.com":                       "scheme",
		"":                                  "scheme",
		// Hosts.
		"http:///x":                           "url",
		"http:/127.0.0.1/":                    "url",
		"http:127.0.0.1":                      "url",
		"http:\\\\127.0.0.1/":                 "url",
		"http://:80/":                         "host",
		"http://a..b/":                        "host",
		"http://.example.com/":                "host",
		"http://exam ple.com/":                "url",
		"http://example.com%00.evil.example/": "url",
		"http://example.com%2f.evil.example/": "url",
		"http://%31%32%37.0.0.1/":             "url",
		"http://a\r\nHost: b/":                "url",
		"http://a\x00b/":                      "url",
		"http://[127.0.0.1]/":                 "url|host",
		"http://[::1/":                        "url",
		"http://" + strings.Repeat("a", 64) + ".example/":              "host",
		"http://" + strings.Repeat("a.", 127) + "example/":             "host",
		"http://example.com/" + strings.Repeat("ü", snapshot.MaxURL/3): "url",
		"http://example.com/" + strings.Repeat("a", snapshot.MaxURL):   "url",
		"http://example.com/%zz":                                       "url",
		// Names that only look like others: what they map to counts.
		"http://①②⑦.⓪.⓪.①/":                       "network",
		"http://１２７.０.０.１/":                       "network",
		"http://127。0。0。1/":                       "network",
		"http://１６９．２５４．１６９．２５４/":                 "network",
		"http://0x7f。1/":                          "host",
		"http://2130706433\u00ad/":                "host",
		"http://xn--/":                            "host",
		"http://xn--a/":                           "host",
		"http://xn--127-0/":                       "host",
		"http://a\u200d.example/":                 "host",
		"http://example.com\uff0fx.evil.example/": "host",
		"http://example.com\uff1a80/":             "host|url",
		"http://\u202eexample.com/":               "host",
	}
}

func TestCheckURLRefuses(t *testing.T) {
	for in, reasons := range hostileURLs() {
		err := snapshot.CheckURL(in, nil)
		ferr, ok := errors.AsType[*snapshot.FetchError](err)
		if !ok {
			t.Errorf("CheckURL(%.60q): %v, want a FetchError", in, err)
			continue
		}
		found := false
		for reason := range strings.SplitSeq(reasons, "|") {
			found = found || reason == ferr.Reason
		}
		if ferr.Kind != snapshot.Blocked || !found {
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
	for in := range hostileURLs() {
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
