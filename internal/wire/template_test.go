package wire

import (
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/testenv"
)

// learned returns a template of doc, whose text is its member t.
func learned(tb testing.TB, doc, counter string, anyTail bool) *template {
	tb.Helper()
	var tpl template
	v := scan.Value(doc)
	tpl.learn(v, v.Get("t"), Part{Content: 3}, variation{counter: counter, anyTail: anyTail})
	clear(v)
	return &tpl
}

func TestTemplate(t *testing.T) {
	tests := testenv.Table[struct {
		Name, Doc, Counter string
		AnyTail            bool
		Next, Want         string
		Ok                 bool
	}](t, "testdata/tables/template.txt")
	for _, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			got, _, ok := learned(t, tt.Doc, tt.Counter, tt.AnyTail).match([]byte(tt.Next))
			if string(got) != tt.Want || ok != tt.Ok {
				t.Errorf("match(%s) = %q, %v, want %q, %v", tt.Next, got, ok, tt.Want, tt.Ok)
			}
		})
	}
}

// TestTemplateElsewhere learns a text that is not in the document.
func TestTemplateElsewhere(t *testing.T) {
	var tpl template
	tpl.learn(scan.Value(`{"t":"a"}`), scan.Value(`"a"`), Part{}, variation{anyTail: true})
	if _, _, ok := tpl.match([]byte(`{"t":"a"}`)); ok {
		t.Error("a template was made of two documents")
	}
}

func TestBefore(t *testing.T) {
	doc := scan.Value(`{"a":1,"t":"x","b":2}`)
	for name, want := range map[string]bool{"a": true, "b": false, "c": false} {
		if got := before(doc.Get(name), doc.Get("t")); got != want {
			t.Errorf("before(%s) = %v, want %v", name, got, want)
		}
	}
}

// FuzzTemplate checks that a match differs from what was learned only in the text.
func FuzzTemplate(f *testing.F) {
	f.Add(`{"n":1,"t":"a","z":1}`, `{"n":1,"t":"b\"","z":1}`)
	f.Add(`{"t":"a"}`, `{"t":"b"}`)
	f.Fuzz(func(t *testing.T, doc, next string) {
		content, _, ok := learned(t, doc, "", false).match([]byte(next))
		if !ok {
			return
		}
		v := scan.Value(doc)
		text := v.Get("t")
		start := cap(v) - cap(text) + 1
		if want := doc[:start] + string(content) + doc[start+len(text.Content()):]; next != want {
			t.Errorf("%q matches %q, but should be %q", next, doc, want)
		}
	})
}
