package manifest_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid/manifest"
)

// The limits for writing.
const maxHeaderMembers, maxHeaderBytes = 64, 6144

const (
	pageA     = "https://geo.example/a"
	pageB     = "https://geo.example/b"
	manifestA = "https://agent.example/runs/123/cite/a"
	manifestB = "https://agent.example/runs/123/cite/b"
	linkA     = "<" + pageA + `>; manifest="` + manifestA + `"`
	linkB     = "<" + pageB + `>; manifest="` + manifestB + `"`
	sumText   = "dj1KtUApM2O4IK8VxxN3tVx5L0tBZNUFQRGDn2y8Psc="
)

func sumBytes() []byte {
	b, _ := base64.StdEncoding.DecodeString(sumText)
	return b
}

func TestFormatHeader(t *testing.T) {
	list := []manifest.Announcement{
		{URL: pageA, Manifest: manifestA, Digest: sumBytes(), ID: "s1"},
		{URL: pageB + "#top"},
		{URL: "urn:ibid:src:row-7", Manifest: manifestA},
		{More: true, Manifest: manifestA, Count: 57},
	}
	for form, want := range map[manifest.Form]string{
		manifest.Link: `<https://geo.example/a>; manifest="https://agent.example/runs/123/cite/a"; digest="sha-256=:` + sumText + `:"; id="s1", ` +
			`<https://geo.example/b>, <urn:ibid:src:row-7>; manifest="https://agent.example/runs/123/cite/a", ` +
			`<urn:ibid:more>; manifest="https://agent.example/runs/123/cite/a"; count="57"`,
		manifest.List: `"https://geo.example/a";manifest="https://agent.example/runs/123/cite/a";digest=:` + sumText + `:;id="s1", ` +
			`"https://geo.example/b", "urn:ibid:src:row-7";manifest="https://agent.example/runs/123/cite/a", ` +
			`more;manifest="https://agent.example/runs/123/cite/a";count=57`,
	} {
		got := manifest.FormatHeader(list, form)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
		read, err := manifest.ParseHeader([]string{got})
		if err != nil {
			t.Fatal(err)
		}
		sent := append([]manifest.Announcement{}, list...)
		sent[1].URL = pageB
		if diff := cmp.Diff(sent, read); diff != "" {
			t.Errorf("%s, parsed again (-want +got):\n%s", form, diff)
		}
	}
	if got := manifest.FormatHeader(nil, manifest.Link); got != "" {
		t.Errorf("an empty list is %q", got)
	}
}

// Announcements that cannot be written are counted and never sent.
func TestFormatHeaderRefuses(t *testing.T) {
	for _, bad := range []string{
		"https://geo.example/\r\nSet-Cookie: a=b", "https://geo.example/\x00", "https://geo.example/a b", "https://geo.example/ä", `https://geo.example/"`,
		"https://geo.example/>", "https://user:pw@geo.example/", "https://user@geo.example/", "ftp://geo.example/", "file:///etc/passwd", "javascript:alert(1)",
		"//geo.example/", "/a", "geo.example", "", "https://", "https:geo.example", "http://[::1", "urn:ibid:src:", "urn:ibid:more", "urn:isbn:1", "https://geo.example/%zz", "https://geo.example/" + strings.Repeat("a", 5000),
	} {
		for _, form := range []manifest.Form{manifest.Link, manifest.List} {
			for _, a := range []manifest.Announcement{{URL: bad, Manifest: manifestA}, {URL: pageA, Manifest: manifestA, ID: "\r\n" + bad + " "}, {URL: pageA, Manifest: manifestA, Digest: []byte("short")}} {
				value := manifest.FormatHeader([]manifest.Announcement{a}, form)
				got, err := manifest.ParseHeader([]string{value})
				if diff := cmp.Diff([]manifest.Announcement{{More: true, Manifest: manifestA, Count: 1}}, got); err != nil || a.Digest == nil && diff != "" || strings.ContainsAny(value, "\r\n\x00") {
					t.Errorf("%q is written as %q: %v\n%s", bad, value, err, diff)
				}
			}
			if strings.HasPrefix(bad, "http") || bad == "" {
				continue
			}
			value := manifest.FormatHeader([]manifest.Announcement{{URL: pageA, Manifest: bad}}, form)
			if got, err := manifest.ParseHeader([]string{value}); err != nil || !got[0].More || got[0].Manifest != "" {
				t.Errorf("a manifest at %q is written as %q: %v", bad, value, err)
			}
		}
	}
}

func TestFormatHeaderLimits(t *testing.T) {
	for _, form := range []manifest.Form{manifest.Link, manifest.List} {
		for _, length := range []int{1, 100, 3000} {
			var list []manifest.Announcement
			for i := range 200 {
				list = append(list, manifest.Announcement{URL: fmt.Sprintf("https://geo.example/%s%d", strings.Repeat("a", length), i), Manifest: manifestA, Digest: sumBytes()})
			}
			value := manifest.FormatHeader(list, form)
			got, err := manifest.ParseHeader([]string{value})
			if err != nil || len(value) > maxHeaderBytes || len(got) > maxHeaderMembers || len(got) < 2 {
				t.Fatalf("%s: %d bytes, %d members: %v", form, len(value), len(got), err)
			}
			last := got[len(got)-1]
			if !last.More || last.Count != 200-len(got)+1 || last.Manifest != manifestA || !bytes.Equal(last.Digest, sumBytes()) {
				t.Errorf("%s: of 200, %d members, the last %+v", form, len(got), last)
			}
			if diff := cmp.Diff(list[:len(got)-1], got[:len(got)-1]); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", form, diff)
			}
		}
		// Omitted members are counted for each manifest, and an unknown number stays unknown.
		value := manifest.FormatHeader([]manifest.Announcement{
			{URL: "x", Manifest: manifestA}, {URL: "y", Manifest: manifestB}, {URL: "z", Manifest: manifestA}, {More: true, Manifest: manifestB},
		}, form)
		got, err := manifest.ParseHeader([]string{value})
		if diff := cmp.Diff([]manifest.Announcement{{More: true, Manifest: manifestA, Count: 2}, {More: true, Manifest: manifestB}}, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", value, err, diff)
		}
		// More manifests than fit.
		var many []manifest.Announcement
		for i := range 100 {
			many = append(many, manifest.Announcement{More: true, Manifest: fmt.Sprintf("https://agent.example/%d", i)})
		}
		if value := manifest.FormatHeader(many, form); len(value) > maxHeaderBytes || strings.Count(value, "more") != maxHeaderMembers {
			t.Errorf("100 manifests: %q", value)
		}
	}
}

func TestParseHeader(t *testing.T) {
	both := []manifest.Announcement{{URL: pageA, Manifest: manifestA}, {URL: pageB, Manifest: manifestB}}
	tests := []struct {
		name   string
		values []string
		want   []manifest.Announcement
	}{
		{"nothing", nil, nil},
		{"empty lines", []string{"", " ", ","}, nil},
		{"two as in the first proposal", []string{linkA + ",  " + linkB}, both},
		{"as two lines", []string{linkA, linkB}, both},
		{"a line that ends in a comma", []string{linkA + ",", linkB}, both},
		{"as two lines of the list", []string{`"` + pageA + `";manifest="` + manifestA + `"`, ` "` + pageB + `"; manifest="` + manifestB + `"`}, both},
		{"twice", []string{linkA + ", " + linkB + ", " + linkA}, both},
		{"no spaces, tokens, capitals", []string{"<" + pageA + `>;Manifest="` + manifestA + `";id=s1;;x;y=1;z="a\"b,;<>",<` + pageB + `>`}, []manifest.Announcement{{URL: pageA, Manifest: manifestA, ID: "s1"}, {URL: pageB}}},
		{"tabs", []string{"\t<" + pageA + ">\t;\tid\t=\t\"s1\"\t"}, []manifest.Announcement{{URL: pageA, ID: "s1"}}},
		{"a digest by another algorithm", []string{"<" + pageA + `>; digest="sha-512=:AAAA:"`}, []manifest.Announcement{{URL: pageA}}},
		{"digests", []string{"<" + pageA + `>; digest="sha-512=:AAAA:, sha-256=:` + sumText + `:"`}, []manifest.Announcement{{URL: pageA, Digest: sumBytes()}}},
		{"more", []string{`<urn:ibid:more>; manifest="` + manifestA + `"`}, []manifest.Announcement{{More: true, Manifest: manifestA}}},
		{"more in the list", []string{`more;manifest="` + manifestA + `";count=3`}, []manifest.Announcement{{More: true, Manifest: manifestA, Count: 3}}},
		{"extension members", []string{`less, 1;a, ("a" "b"), ?1, "` + pageA + `";x=1;y`}, []manifest.Announcement{{URL: pageA}}},
		{"only extension members", []string{`1`}, nil},
		{"a URL without quotes, which is a token", []string{pageA}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := manifest.ParseHeader(tt.values)
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// The time must be linear in the length of the field: compare the results for 400 and 800 members.
func BenchmarkParseHeader(b *testing.B) {
	for _, members := range []int{400, 800} {
		b.Run(strconv.Itoa(members), func(b *testing.B) {
			var list []string
			for i := range members {
				list = append(list, fmt.Sprintf("<urn:ibid:src:%x>", i))
			}
			value := []string{strings.Join(list, ",")}
			b.SetBytes(int64(len(value[0])))
			for b.Loop() {
				if got, err := manifest.ParseHeader(value); err != nil || len(got) != members {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

func TestParseHeaderGolden(t *testing.T) {
	for line := range strings.Lines(string(golden(t, "headers.txt"))) {
		value, found := strings.CutPrefix(strings.TrimSpace(line), manifest.HeaderName+": ")
		if !found {
			continue
		}
		got, err := manifest.ParseHeader([]string{value})
		want := []manifest.Announcement{{URL: "https://geodocs.dev/strategy/programmatic-geo-framework", Manifest: manifestA, Digest: sumBytes()}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if again := manifest.FormatHeader(got, manifest.List); again != value {
			t.Errorf("written again: %s", again)
		}
		return
	}
	t.Fatal("the example has no header")
}

func TestParseHeaderRefuses(t *testing.T) {
	long := "<" + pageA + ">, "
	for name, values := range map[string][]string{
		"words":                          {"hello world"},
		"a raw URL":                      {"https://geo.example/ä"},
		"two forms":                      {"<" + pageA + ">", `"` + pageB + `"`},
		"two forms, the list first":      {`"` + pageB + `"`, "<" + pageA + ">"},
		"a comma at the end of the list": {`"` + pageA + `",`, `"` + pageB + `"`},
		"not closed":                     {"<" + pageA},
		"no comma":                       {"<" + pageA + "> <" + pageB + ">"},
		"quote not closed":               {"<" + pageA + `>; manifest="` + manifestA},
		"quote over two lines":           {"<" + pageA + `>; manifest="` + manifestA, `"`},
		"no value":                       {"<" + pageA + ">; manifest="},
		"no name":                        {"<" + pageA + `>; ="a"`},
		"manifest without value":         {"<" + pageA + ">; manifest"},
		"manifest empty":                 {"<" + pageA + `>; manifest=""`},
		"manifest not quoted":            {"<" + pageA + ">; manifest=" + manifestA},
		"manifest not quoted, a list":    {`"` + pageA + `";manifest=` + manifestA},
		"manifest not quoted, alone":     {"manifest=" + manifestA},
		"manifest relative":              {"<" + pageA + `>; manifest="/cite"`},
		"manifest twice":                 {"<" + pageA + `>; manifest="` + manifestA + `"; manifest="` + manifestB + `"`},
		"manifest a number":              {`"` + pageA + `";manifest=1`},
		"manifest empty in the list":     {`"` + pageA + `";manifest=""`},
		"digest a string":                {`"` + pageA + `";digest="` + sumText + `"`},
		"digest too short":               {`"` + pageA + `";digest=:AAAA:`},
		"digest empty":                   {`"` + pageA + `";digest=::`},
		"digest too short, as a link":    {"<" + pageA + `>; digest="sha-256=:AAAA:"`},
		"digest no bytes":                {"<" + pageA + `>; digest="sha-256=1"`},
		"digest a list of bytes":         {"<" + pageA + `>; digest="sha-256=(:AAAA:)"`},
		"digest no dictionary":           {"<" + pageA + `>; digest="` + sumText + `"`},
		"count negative":                 {`more;count=-1`},
		"count a word":                   {`<urn:ibid:more>; count="many"`},
		"count endless":                  {`<urn:ibid:more>; count="99999999999999999999"`},
		"id with a space":                {"<" + pageA + `>; id="a b"`},
		"relative":                       {"</a>"},
		"empty":                          {"<>"},
		"userinfo":                       {"<https://a@geo.example/>"},
		"fragment":                       {"<" + pageA + "#b>"},
		"another scheme":                 {"<ftp://geo.example/>"},
		"urn without id":                 {"<urn:ibid:src:>"},
		"not ASCII":                      {"<https://geo.example/ä>"},
		"line break":                     {"<" + pageA + ">;\r\n id=a"},
		"control character":              {"<" + pageA + ">; x=\"\x01\""},
		"too long":                       {strings.Repeat(long, 1+manifest.MaxHeaderRead/len(long))},
		"too long together":              {strings.Repeat(long, manifest.MaxHeaderRead/len(long)/2+1), strings.Repeat(long, manifest.MaxHeaderRead/len(long)/2+1)},
	} {
		if got, err := manifest.ParseHeader(values); !errors.Is(err, manifest.ErrHeader) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A malformed member voids itself, not the others: one more source is announced, and why it is unknown.
func TestMalformedMember(t *testing.T) {
	void := func(why string) manifest.Announcement {
		return manifest.Announcement{More: true, Count: 1, Invalid: why}
	}
	a, b := manifest.Announcement{URL: pageA}, manifest.Announcement{URL: pageB}
	for name, tt := range map[string]struct {
		value string
		want  []manifest.Announcement
	}{
		"relative":         {"<" + pageA + ">, </b>", []manifest.Announcement{a, void("the source's URL: it is neither an http nor an https URL")}},
		"the first":        {"<ftp://geo.example/a>, <" + pageB + ">", []manifest.Announcement{void("the source's URL: it is neither an http nor an https URL"), b}},
		"words":            {"<" + pageA + ">, and others", []manifest.Announcement{a, void("a member does not begin with <")}},
		"no comma":         {"<" + pageA + ">, <" + pageB + "> <" + pageA + ">, <" + pageB + ">", []manifest.Announcement{a, void("a comma is missing between two members"), b}},
		"no value":         {"<" + pageA + ">; manifest=, <" + pageB + ">", []manifest.Announcement{void("the parameter manifest has no value"), b}},
		"comma in a value": {"<" + pageA + `>; manifest="/c,\",d"; id=1, <` + pageB + ">", []manifest.Announcement{void("the manifest's URL: it has characters that have to be percent-encoded"), b}},
		"digest":           {"<" + pageA + `>; digest="md5", <` + pageB + ">", []manifest.Announcement{a, b}},
		"list, a type":     {`"` + pageA + `", "` + pageB + `";manifest=1`, []manifest.Announcement{a, void("the parameter manifest has the wrong type")}},
		"list, relative":   {`"b", "` + pageB + `"`, []manifest.Announcement{void("the source's URL: it is neither an http nor an https URL"), b}},
	} {
		got, err := manifest.ParseHeader([]string{tt.value})
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	// Members that cannot be told apart void the field.
	for _, value := range []string{
		"<" + pageA + ">, <" + pageB, "<" + pageA + ">, <" + pageB + `>; id="a`, "<" + pageA + `>, "` + pageB + `"`,
		`"` + pageA + `", "` + pageB, `"` + pageA + `", <` + pageB + ">",
	} {
		if got, err := manifest.ParseHeader([]string{value}); !errors.Is(err, manifest.ErrHeader) {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
}

func TestSetHeader(t *testing.T) {
	h := http.Header{}
	manifest.SetHeader(h, manifest.Link, manifest.Announcement{URL: pageA})
	if got := h.Values("citation-source"); len(got) != 1 || got[0] != "<"+pageA+">" {
		t.Errorf("the header is %q", got)
	}
	if manifest.SetHeader(h, manifest.Link); len(h) != 0 {
		t.Errorf("the header is still %v", h)
	}
}

// Any list that was parsed is the same after it was written in either form and parsed again.
func FuzzParseHeader(f *testing.F) {
	f.Add(`<https://a.example/>; manifest="https://b.example/"; digest="sha-256=:` + sumText + `:"; id="s1"`)
	f.Add(`"https://a.example/";manifest="https://b.example/";digest=:` + sumText + `:, more;count=3`)
	f.Add(`<urn:ibid:more>; manifest="https://b.example/"; count="57",, <urn:ibid:src:a|b>;x`)
	f.Fuzz(func(t *testing.T, value string) {
		list, err := manifest.ParseHeader(strings.Split(value, "\n"))
		if err != nil {
			if !errors.Is(err, manifest.ErrHeader) || list != nil {
				t.Fatalf("%v, %v", list, err)
			}
			return
		}
		for _, form := range []manifest.Form{manifest.Link, manifest.List} {
			written := manifest.FormatHeader(list, form)
			again, err := manifest.ParseHeader([]string{written})
			if err != nil {
				t.Fatalf("%q cannot be read: %v", written, err)
			}
			if n := len(list); n > 20 || len(value) > 2000 || slices.ContainsFunc(list, func(a manifest.Announcement) bool { return a.More }) { // merged, or left out
				continue
			}
			if diff := cmp.Diff(list, again, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%q (-read +read again):\n%s", written, diff)
			}
		}
	})
}

// No announcement can inject a line break, or write a field that readers refuse.
func FuzzFormatHeader(f *testing.F) {
	f.Add(pageA, manifestA, "s1", "", 1, false)
	f.Add("https://a.example/\r\nX: y", "https://b.example/\n", "\x00", "0", -1, true)
	f.Fuzz(func(t *testing.T, url, at, id, digest string, count int, more bool) {
		a := manifest.Announcement{URL: url, Manifest: at, ID: id, Count: count, More: more}
		if digest != "" {
			a.Digest = []byte(digest)
		}
		for _, form := range []manifest.Form{manifest.Link, manifest.List} {
			value := manifest.FormatHeader([]manifest.Announcement{a, {URL: pageA}}, form)
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) || len(value) > maxHeaderBytes {
				t.Fatalf("written: %q", value)
			}
			if got, err := manifest.ParseHeader([]string{value}); err != nil || len(got) == 0 || len(got) > 2 {
				t.Fatalf("%q is read as %v, %v", value, got, err)
			}
		}
	})
}
