package ibid

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
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
		t.Errorf("title and file name are not separated: %s", c.Key())
	}
	e := Source{ID: "web-1", Kind: Web, URL: "#top", GlobalID: "x"}
	if got := e.Key(); got != "#x" {
		t.Errorf("Key with an empty URL = %s, want #x", got)
	}
}

func TestNormalizeURL(t *testing.T) {
	tests := testenv.Table[struct{ Name, Raw, Want string }](t, "testdata/tables/normalize-url.txt")
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) {
			if got := string(appendNormalURL(nil, test.Raw)); got != test.Want {
				t.Errorf("appendNormalURL(%q) = %q, want %q", test.Raw, got, test.Want)
			}
		})
	}
}

func TestCleanURL(t *testing.T) {
	tests := testenv.Table[struct{ Raw, Want string }](t, "testdata/tables/clean-url.txt")
	for _, test := range tests {
		if got := cleanURL(test.Raw); got != test.Want {
			t.Errorf("cleanURL(%q) = %q, want %q", test.Raw, got, test.Want)
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
