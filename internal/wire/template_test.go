package wire

import (
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
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
	const doc = `{"n":12,"t":"Ebbe","z":1}`
	tests := []struct {
		name, doc, counter string
		anyTail            bool
		next, want         string
		ok                 bool
	}{
		{name: "another text", doc: doc, next: `{"n":12,"t":"und Flut","z":1}`, want: "und Flut", ok: true},
		{name: "no text", doc: doc, next: `{"n":12,"t":"","z":1}`, ok: true},
		{name: "escapes", doc: doc, next: `{"n":12,"t":"a\"b\\","z":1}`, want: `a\"b\\`, ok: true},
		{name: "another head", doc: doc, next: `{"n":13,"t":"a","z":1}`},
		{name: "another tail", doc: doc, next: `{"n":12,"t":"a","z":2}`},
		{name: "any tail", doc: doc, anyTail: true, next: `{"n":12,"t":"a","z":2,"p":"abc"}`, want: "a", ok: true},
		{name: "a counter", doc: doc, counter: "n", next: `{"n":1300,"t":"a","z":1}`, want: "a", ok: true},
		{name: "a counter without digits", doc: doc, counter: "n", next: `{"n":,"t":"a","z":1}`},
		{name: "something between counter and text", doc: doc, counter: "n", next: `{"n":13,"x":0,"t":"a","z":1}`},
		{name: "a counter behind the text", doc: doc, counter: "z", next: `{"n":12,"t":"a","z":2}`},
		{name: "shorter than the head", doc: doc, next: `{"n":12`},
		{name: "cut off after the head", doc: doc, anyTail: true, next: `{"n":12,"t":"`},
		{name: "cut off in the text", doc: doc, anyTail: true, next: `{"n":12,"t":"a`},
		{name: "cut off after an escaped quote", doc: doc, anyTail: true, next: `{"n":12,"t":"a\"`},
		{name: "nothing learned", doc: `{"n":12}`, next: `{"n":12}`},
		{name: "a number learned", doc: `{"t":1}`, next: `{"t":2}`},
		{name: "nothing", doc: doc, next: ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, ok := learned(t, tt.doc, tt.counter, tt.anyTail).match([]byte(tt.next))
			if string(got) != tt.want || ok != tt.ok {
				t.Errorf("match(%s) = %q, %v, want %q, %v", tt.next, got, ok, tt.want, tt.ok)
			}
		})
	}
}

// TestTemplateElsewhere learns a text that does not stand in the document.
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

// FuzzTemplate checks that what matches differs from what was learned in the text alone.
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
			t.Errorf("%q matches %q, of which it would be %q", next, doc, want)
		}
	})
}
