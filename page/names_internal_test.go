package page

import "testing"

func TestShortName(t *testing.T) {
	for site, want := range map[string]string{
		"127.0.0.1": "Herons", "127.0.0.1:8080": "Herons", "localhost": "Herons", "birds.localhost:80": "Herons",
		"": "Herons", "birds.example": "birds.example", "10.0.0.7": "10.0.0.7",
		"localhost.example": "localhost.example",
	} {
		if got := shortName(site, "Herons"); got != want {
			t.Errorf("%q: %q, want %q", site, got, want)
		}
	}
}

func TestPlainWords(t *testing.T) {
	for markdown, want := range map[string]string{
		"Herons nest high up in trees.":              "Herons nest high up in trees.",
		"**Herons** nest _high up_ in `trees`.":      "Herons nest high up in trees.",
		"Her**on**s nest [here](https://a.example).": "Herons nest here.",
		"## Herons\n\n- nest\n- croak":               "Herons nest croak",
		"2 < 3 & 4 > 3 <b>bold</b>":                  "2 < 3 & 4 > 3 <b>bold</b>",
		"snake_case_name  has\ttwo":                  "snake_case_name has two",
		"1. first":                                   "first",
		"":                                           "",
	} {
		if got := plainWords(markdown); got != want {
			t.Errorf("%q reads %q, not %q", markdown, got, want)
		}
	}
}

func TestDirection(t *testing.T) {
	for s, want := range map[string]string{
		"": "auto", "1. – «": "auto", "Herons": "ltr", "**2** אנפה": "rtl", "- البلشون nests": "rtl",
		"蒼鷺 البلشون": "ltr", "٣ herons": "ltr",
	} {
		if got := direction(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 1. / 300: "under 1 %", 0.005: "under 1 %", 0.01: "1 %", 0.5: "50 %", 0.99: "99 %",
		299. / 300: "over 99 %", 0.9999999: "over 99 %", 1: "100 %",
	} {
		if got := percent(share); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
		}
	}
}

func TestOpenablePort(t *testing.T) {
	for address, want := range map[string]bool{
		"https://a.example:1/": true, "https://a.example:65535/": true, "https://a.example:/": true,
		"https://a.example:0/": false, "https://a.example:65536/": false, "https://a.example:99999/": false,
	} {
		if got := openable(address) != nil; got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

func TestManifestWords(t *testing.T) {
	for address, want := range map[string]string{
		"":                                    "",
		"https://a.example/runs/r/cite":       "its run",
		"https://a.example/runs/r/cite.2":     "its run",
		"https://a.example/runs/r/cite/ans_1": "the answer",
		"https://a.example/cited":             "",
	} {
		if got := manifestWords(address); got != want {
			t.Errorf("%q: %q, not %q", address, got, want)
		}
	}
}

// A host is shown in its own script if it has only one, and as it is looked up if its letters are mixed or look like
// others.
func TestShownHost(t *testing.T) {
	for host, want := range map[string]string{
		"birds.example": "birds.example", "bücher.example": "bücher.example", "xn--bcher-kva.example": "bücher.example", "例え.jp": "例え.jp",
		"яндекс.рф": "яндекс.рф", "ελλάδα.example": "ελλάδα.example", "مثال.example": "مثال.example", "한국어.example": "한국어.example", "דוגמה.example": "דוגמה.example",
		"аррӏе.com": "xn--80ak6aa92e.com", "pаypal.com": "xn--pypal-4ve.com", "例яе.jp": asciiHost("例яе.jp"), "a‿b.example": asciiHost("a‿b.example"),
		"xn--zzzzzzzz.example": "xn--zzzzzzzz.example", "127.0.0.1:8080": "127.0.0.1:8080",
	} {
		if got := shownHost(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	for words, want := range map[string]string{
		"": "", "not signed": "Not signed.", "is it signed?": "Is it signed?", "élan vital…": "Élan vital…", "a “quote”": "A “quote”.",
	} {
		if got := sentence(words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}
