package snapshot_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/ibidhq/ibid/snapshot"
)

// checkText fails if a text violates the guarantees for texts.
func checkText(t *testing.T, text *snapshot.Text) {
	t.Helper()
	c := text.Content
	if !utf8.ValidString(c) || c != strings.TrimSpace(c) || strings.Contains(c, "  ") {
		t.Fatalf("not normalised: %q", c)
	}
	if strings.ContainsFunc(c, func(r rune) bool {
		return r == utf8.RuneError || unicode.Is(unicode.Cf, r) || r != ' ' && unicode.IsSpace(r)
	}) {
		t.Fatalf("characters that should be gone: %q", c)
	}
	at := 0
	for i, b := range text.Blocks {
		if b.Span.Start < at || b.Span.End <= b.Span.Start || b.Span.End > len(c) || strings.Trim(c[at:b.Span.Start], " ") != "" {
			t.Fatalf("block %d: %+v after %d of %d", i, b, at, len(c))
		}
		at = b.Span.End
	}
	if at != len(c) {
		t.Fatalf("blocks end at %d of %d", at, len(c))
	}
	at = 0
	for _, p := range text.Passages(&snapshot.PassageOptions{Size: 50}) {
		if p.Span.Start < at || p.Span.End <= p.Span.Start || p.Span.Len() > 50 || strings.Trim(c[at:p.Span.Start], " ") != "" {
			t.Fatalf("passage %+v after %d", p, at)
		}
		for _, b := range p.Breaks {
			if b <= p.Span.Start || b >= p.Span.End {
				t.Fatalf("break %d of %+v", b, p)
			}
		}
		at = p.Span.End
	}
	if at != len(c) {
		t.Fatalf("passages end at %d of %d", at, len(c))
	}
}

func FuzzExtract(f *testing.F) {
	for _, seed := range []string{
		"<p>caf\u0301e</p><div hidden>x</div><table><tr><td>1", "<svg><title><b><p>", "# A\n\n- b\n```\nc\n---\n", "\xff\xfea\x00", "{\"a\":1}",
		onePage(helvetica, stream("", "BT /F1 12 Tf 14 TL (Hello-) Tj T* (x) Tj ET")),
		onePage(helvetica, stream("/Filter/FlateDecode", deflated("BT /F1 12 Tf [(a) -500 (b)] TJ ET"))),
		onePage("<</Subtype/Type0/ToUnicode 4 0 R/Encoding/Identity-H>>", stream("", "1 beginbfrange <00> <ff> <0041> endbfrange")),
	} {
		for _, mediaType := range []string{"", "text/html", "text/markdown", "application/pdf"} {
			f.Add([]byte(seed), mediaType)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, mediaType string) {
		o := &snapshot.TextOptions{MediaType: mediaType, Limits: snapshot.Limits{Time: time.Second}}
		text, err := snapshot.Extract(b, o)
		if err != nil {
			if text != nil || strings.Contains(err.Error(), "panicked") {
				t.Fatalf("%v, %v", text, err)
			}
			return
		}
		checkText(t, text)
		again, err := snapshot.Extract(b, o)
		if err != nil || again.Content != text.Content && text.Profile != snapshot.PDFProfile {
			t.Fatalf("twice: %q, then %v %v", text.Content, again, err)
		}
	})
}

func FuzzReadDocuments(f *testing.F) {
	f.Add("a.jsonl", []byte("{\"id\":1,\"text\":\"x\"}\n\"y\"\n{}\n"))
	f.Add("a.json", []byte(`[{"data":{"text":"x"}},"y",3]`))
	f.Add("a.json", []byte(`{"documents":[{"text":"x","authors":["a",{"name":"b"}]}]}`))
	f.Add("", []byte("# x"))
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		docs, err := snapshot.ReadDocuments(name, b, &snapshot.TextOptions{Limits: snapshot.Limits{Time: time.Second}})
		if err == nil && len(docs) == 0 {
			t.Fatal("neither a document nor an error")
		}
		for i := range docs {
			if docs[i].Source.ID != docs[i].ID || docs[i].Source.Kind == "" {
				t.Fatalf("source: %+v", docs[i].Source)
			}
			checkText(t, docs[i].Text)
		}
	})
}

func FuzzNormalize(f *testing.F) {
	f.Add("e\u0301 \u200b\u00a0x")
	f.Fuzz(func(t *testing.T, s string) {
		got := snapshot.Normalize(s)
		var want strings.Builder
		for _, r := range norm.NFC.String(s) {
			if r != utf8.RuneError && !unicode.Is(unicode.Cf, r) {
				want.WriteRune(r)
			}
		}
		if w := strings.Join(strings.Fields(want.String()), " "); got != w {
			t.Fatalf("Normalize(%q) = %q, want %q", s, got, w)
		}
	})
}
