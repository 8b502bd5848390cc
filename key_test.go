package ibid

import (
	"fmt"
	"strings"
	"testing"
)

func ExampleSource_Key() {
	for _, s := range []Source{
		{ID: "web-1", Kind: Web, URL: "https://Example.org:443/tides?utm_source=openai#spring"},
		{ID: "web-9", Kind: Web, URL: "https://example.org/tides"},
		{ID: "file-1", Kind: File, GlobalID: "file-8Kd", Filename: "tides.pdf"},
		{ID: "doc:0", Kind: DocumentKind, Content: "Tides follow the moon."},
	} {
		fmt.Println(s.Key())
	}
	// Output:
	// web:https://example.org/tides
	// web:https://example.org/tides
	// #file-8Kd
	// sha256:6f8c7cc82375f6e5f35a9773e296251e
}

func TestSourceKeyNeverPositional(t *testing.T) {
	a := Source{ID: "doc:0", Kind: DocumentKind, Content: "The harbour froze in 1963."}
	b := Source{ID: "doc:7", Kind: Tool, Content: "The harbour froze in 1963."}
	if a.Key() != b.Key() {
		t.Errorf("the same content has the keys %s and %s", a.Key(), b.Key())
	}
	c := Source{ID: "doc:0", Kind: DocumentKind, Title: "Harbours", Filename: "h.pdf"}
	d := Source{ID: "doc:0", Kind: DocumentKind, Title: "Harboursh", Filename: ".pdf"}
	if c.Key() == d.Key() {
		t.Errorf("title and file name run into each other: %s", c.Key())
	}
	e := Source{ID: "web-1", Kind: Web, URL: "#top", GlobalID: "x"}
	if got := e.Key(); got != "#x" {
		t.Errorf("Key with an empty address = %s, want #x", got)
	}
}

func TestNormalizeURL(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"nothing", "", ""},
		{"blank", " \t\n", ""},
		{"plain", "https://a.example/x", "https://a.example/x"},
		{"case", "HTTPS://A.Example/X", "https://a.example/X"},
		{"empty path", "https://a.example", "https://a.example/"},
		{"empty path, query", "https://a.example?q=1", "https://a.example/?q=1"},
		{"a slash at the end means something", "https://a.example/x/", "https://a.example/x/"},
		{"default port", "http://a.example:80/x", "http://a.example/x"},
		{"default port, https", "https://a.example:443/x", "https://a.example/x"},
		{"other port", "https://a.example:80/x", "https://a.example:80/x"},
		{"port missing", "https://a.example:/x", "https://a.example/x"},
		{"ipv6", "http://[2001:DB8::1]:80/x", "http://[2001:db8::1]/x"},
		{"ipv6 without port", "http://[2001:DB8::80]/x", "http://[2001:db8::80]/x"},
		{"user", "https://me:secret@a.example/x@y", "https://a.example/x@y"},
		{"fragment", "https://a.example/x#page=3", "https://a.example/x"},
		{"text fragment", "https://a.example/x#:~:text=tides", "https://a.example/x"},
		{"openai", "https://a.example/x?utm_source=openai", "https://a.example/x"},
		{"tracking between", "https://a.example/?b=2&utm_medium=m&a=1&gclid=z", "https://a.example/?b=2&a=1"},
		{"tracking in capitals", "https://a.example/?UTM_Source=x&FBCLID=y", "https://a.example/"},
		{"lookalikes stay", "https://a.example/?utm=1&source=openai&ref=2", "https://a.example/?utm=1&source=openai&ref=2"},
		{"left-over separators", "https://a.example/x?&&a=1&&b&", "https://a.example/x?a=1&b"},
		{"question mark alone", "https://a.example/x?", "https://a.example/x"},
		{"question mark in the query", "https://a.example/x?a=b?c", "https://a.example/x?a=b?c"},
		{"escapes in lower case", "https://a.example/%e6%9d%b1?q=%c3%a9", "https://a.example/%E6%9D%B1?q=%C3%A9"},
		{"not escaped", "https://a.example/東?q=é", "https://a.example/%E6%9D%B1?q=%C3%A9"},
		{"escaped without need", "https://a.example/%7Eme/%41", "https://a.example/~me/A"},
		{"escaped slash stays", "https://a.example/a%2fb", "https://a.example/a%2Fb"},
		{"percent sign", "https://a.example/100%", "https://a.example/100%25"},
		{"percent sign before an escape", "https://a.example/%%34%31", "https://a.example/%2541"},
		{
			"spaces and commas", "https://www.google.com/search?q=weather+in+Porto Alegre, RS,+BR",
			"https://www.google.com/search?q=weather+in+Porto%20Alegre,%20RS,+BR",
		},
		{
			"vertex redirect", "https://vertexaisearch.cloud.google.com/grounding-api-redirect/AbC_d-9==",
			"https://vertexaisearch.cloud.google.com/grounding-api-redirect/AbC_d-9==",
		},
		{"international name stays", "https://BÜCHER.example/", "https://bÜcher.example/"},
		{"bucket", "gs://My-Bucket/Docs/a.pdf", "gs://my-bucket/Docs/a.pdf"},
		{"no scheme", "a.example/X?utm_source=openai", "a.example/X"},
		{"no scheme, two slashes", "//A.example", "//a.example/"},
		{"opaque", "URN:isbn:0451450523", "urn:isbn:0451450523"},
		{"only a colon", ":x", ":x"},
		{"two colons", "//a.example::", "//a.example::/"},
		{"no host", "https://", "https:///"},
		{"question mark ends the host", "https://a.example?x=/y@z", "https://a.example/?x=/y@z"},
		{"broken text", "https://a.example/\xff", "https://a.example/%FF"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := string(appendNormalURL(nil, test.raw)); got != test.want {
				t.Errorf("appendNormalURL(%q) = %q, want %q", test.raw, got, test.want)
			}
		})
	}
}

func TestCleanURL(t *testing.T) {
	tests := []struct{ raw, want string }{
		{"", ""},
		{"https://A.example/x?q=1#y", "https://A.example/x?q=1#y"},
		{"https://a.example/x?utm_source=openai", "https://a.example/x"},
		{"https://a.example/x?utm_source=openai#y", "https://a.example/x#y"},
		{"https://a.example/x?utm_source=openai&q=1", "https://a.example/x?q=1"},
		{"https://a.example/x?q=1&utm_source=openai", "https://a.example/x?q=1"},
		{"https://a.example/x?q=1&utm_source=openai&r=2", "https://a.example/x?q=1&r=2"},
		{"https://a.example/x?utm_source=openai&utm_source=openai", "https://a.example/x"},
		{"https://a.example/x#y?utm_source=openai", "https://a.example/x#y"},
		{"https://a.example/x?utm_source=openais", "https://a.example/x?utm_source=openais"},
		{"https://a.example/x?my_utm_source=openai", "https://a.example/x?my_utm_source=openai"},
		{"https://a.example/x?utm_source=news", "https://a.example/x?utm_source=news"},
		{"utm_source=openai", "utm_source=openai"},
	}
	for _, test := range tests {
		if got := cleanURL(test.raw); got != test.want {
			t.Errorf("cleanURL(%q) = %q, want %q", test.raw, got, test.want)
		}
	}
}

func FuzzNormalizeURL(f *testing.F) {
	f.Add("https://me@A.example:443/%e6?utm_source=openai&b= 1,#:~:text=x")
	f.Add("//[::1]:80?%%34%31&&")
	f.Add("\xff:\x00//?")
	f.Fuzz(func(t *testing.T, raw string) {
		once := string(appendNormalURL(nil, raw))
		if twice := string(appendNormalURL(nil, once)); twice != once {
			t.Errorf("appendNormalURL(%q) = %q, and of that %q", raw, once, twice)
		}
		if tagged := string(appendNormalURL(nil, cleanURL(raw))); tagged != once && strings.Contains(raw, openAITag) && !strings.ContainsAny(raw, "# ") {
			t.Errorf("appendNormalURL(%q) = %q, but %q once cleaned", raw, once, tagged)
		}
	})
}

func BenchmarkSourceKey(b *testing.B) {
	s := Source{Kind: Web, URL: "https://www.Example.org/reports/2026/annual?section=3&utm_source=openai"}
	b.ReportAllocs()
	for b.Loop() {
		s.Key()
	}
}
