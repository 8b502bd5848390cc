package scan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestMembers(t *testing.T) {
	tests := testenv.Table[struct {
		Name, Doc string
		Want      []string
	}](t, "testdata/tables/members.txt")
	for _, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			var got []string
			for o := scan.Members(scan.Value(tt.Doc)); o.Next(); {
				got = append(got, string(o.Key)+"="+string(o.Val))
			}
			if diff := cmp.Diff(tt.Want, got); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

func TestElements(t *testing.T) {
	var got []string
	for a := scan.Elements(scan.Value(` [1, "a,]" ,{"x":[]},[[2]], null, 3`)[1:]); a.Next(); {
		got = append(got, string(a.Val))
	}
	want := []string{"1", `"a,]"`, `{"x":[]}`, "[[2]]", "null"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("elements (-want +got):\n%s", diff)
	}
}

// Walk.Cut equals Value.Cut of the element.
func TestElementCut(t *testing.T) {
	const whole = ` [1,"a]",{"x":[]},[[2]],null,{"y":"}"}]`
	for n := range len(whole) {
		for a := scan.Elements(scan.Value(whole[:n+1])[1:]); a.Next(); {
			if a.Cut() != a.Val.Cut() {
				t.Errorf("in %s, %s: Walk.Cut is %t, Value.Cut %t", whole[:n+1], a.Val, a.Cut(), a.Val.Cut())
			}
		}
	}
}

func TestStr(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"plain", `"abc"`, "abc"},
		{"escapes", `"a\n\t\"\\\/\b\f\r\u00e9"`, "a\n\t\"\\/\b\f\ré"},
		{"pair", `"\ud83d\ude00!"`, "😀!"},
		{"lone high surrogate", `"a\ud83d"`, "a\xed\xa0\xbd"},
		{"lone low surrogate", `"\ude00b"`, "\xed\xb8\x80b"},
		{"high surrogate, then a letter", `"\ud83dx"`, "\xed\xa0\xbdx"},
		{"truncated", `"abc`, ""},
		{"truncated after an escaped quote", `"abc\"`, ""},
		{"bad escape", `"\x\uzzzz"`, "xuzzzz"},
		{"not a string", `12`, ""},
		{"empty", `""`, ""},
		{"only a quote", `"`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := scan.Value(tt.doc).Str(); got != tt.want {
				t.Errorf("Str(%s) = %q, want %q", tt.doc, got, tt.want)
			}
		})
	}
}

func TestStringEnd(t *testing.T) {
	long := strings.Repeat("a", 100)
	for _, tt := range []struct {
		doc      string
		at, want int
	}{
		{`"`, 0, 1}, // nothing precedes it that could escape it
		{`\"a"`, 0, 4},
		{`\\"a"`, 0, 3},
		{`\"a"`, 1, 2},
		{long + `"`, 0, 101},
		{long + `\""`, 0, 103},
		{`"` + long, 0, 1},
		{long, 0, 100},
		{"", 0, 0},
	} {
		if got := scan.StringEnd([]byte(tt.doc), tt.at); got != tt.want {
			t.Errorf("StringEnd(%q, %d) = %d, want %d", tt.doc, tt.at, got, tt.want)
		}
	}
}

// Content may break off, but not inside a character.
func TestContent(t *testing.T) {
	tests := testenv.Table[struct{ Name, Doc, Want string }](t, "testdata/tables/content.txt")
	for _, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			if got := string(scan.Value(tt.Doc).Content()); got != tt.Want {
				t.Errorf("Content(%s) = %q, want %q", tt.Doc, got, tt.Want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, whole := range []string{`"a"`, `""`, `{"a":[1,"]"]}`, "[]", "1", "null"} {
		v := scan.Value(whole)
		if v.Cut() || !v.IsNull() && v.Text() == "" && whole != `""` {
			t.Errorf("%s is cut, its text is %q", whole, v.Text())
		}
		if v.IsString() || v.IsObject() || v.IsArray() {
			if cut := v[:len(v)-1]; !cut.Cut() || cut.Text() != "" {
				t.Errorf("%s is not cut, its text is %q", cut, cut.Text())
			}
		}
	}
}

func TestIsNull(t *testing.T) {
	for doc, want := range map[string]bool{
		"": true, "null": true, "nope": false, "nulls": false, "nul": false, "n": false, `""`: false, "0": false, "false": false, "[]": false,
	} {
		if got := scan.Value(doc).IsNull(); got != want {
			t.Errorf("IsNull(%s) = %v, want %v", doc, got, want)
		}
	}
}

func TestInt(t *testing.T) {
	tests := []struct {
		doc  string
		want int
		ok   bool
	}{
		{"0", 0, true},
		{"123456789", 123456789, true},
		{"12345678901", 12345678901, true},
		{"-3", -3, true},
		{"12.0", 12, true},
		{"1e2", 100, true},
		{`"77"`, 77, true},
		{`"-8"`, -8, true},
		{"12.5", 0, false},
		{"1e99", 0, false},
		{"99999999999999999999", 0, false},
		{"null", 0, false},
		{`""`, 0, false},
		{`"x"`, 0, false},
		{"", 0, false},
		{"{}", 0, false},
	}
	for _, tt := range tests {
		if got, ok := scan.Value(tt.doc).Int(); got != tt.want || ok != tt.ok {
			t.Errorf("Int(%s) = %d, %t, want %d, %t", tt.doc, got, ok, tt.want, tt.ok)
		}
	}
}

func TestDeepNesting(t *testing.T) {
	doc := `{"a":` + strings.Repeat("[", 1_000_000) + `1`
	if got := scan.Value(doc).Get("a"); len(got) != 1_000_001 {
		t.Errorf("a truncated value of a million brackets has %d bytes", len(got))
	}
}

// FuzzWalk compares the walk with encoding/json: valid JSON is read the same, other input does no harm.
func FuzzWalk(f *testing.F) {
	f.Add(`{"a":[1,"x\u00e9",{"b":null}],"c":"\\"}`)
	f.Add(`{"a":"\ud83d\ude00"}`)
	f.Fuzz(func(t *testing.T, doc string) {
		v := scan.Value(strings.TrimSpace(doc))
		walk(v, 0)
		var want map[string]json.RawMessage
		if !utf8.ValidString(doc) || json.Unmarshal([]byte(doc), &want) != nil || want == nil {
			return
		}
		got := map[string]json.RawMessage{}
		for o := scan.Members(v); o.Next(); {
			got[strings.ToValidUTF8(string(o.Key), "\ufffd\ufffd\ufffd")] = json.RawMessage(o.Val)
			var s string
			if o.Val.IsString() && json.Unmarshal(o.Val, &s) == nil && !strings.Contains(s, "\ufffd") && o.Val.Str() != s {
				t.Errorf("string %s = %q, want %q", o.Val, o.Val.Str(), s)
			}
		}
		if len(got) != len(want) && !strings.Contains(doc, `\u`) {
			t.Errorf("walked %d members of %d in %s", len(got), len(want), doc)
		}
	})
}

func walk(v scan.Value, depth int) {
	if depth > 50 {
		return
	}
	v.Int()
	v.Float()
	v.Bytes()
	for o := scan.Members(v); o.Next(); {
		walk(o.Val, depth+1)
	}
	for a := scan.Elements(v); a.Next(); {
		walk(a.Val, depth+1)
	}
}

const delta = `{"type":"response.output_text.delta","sequence_number":42,"item_id":"msg_0123456789abcdef","output_index":1,"content_index":0,"delta":" the tallest birds of the bay","logprobs":[],"obfuscation":"a1b2c3"}`

func BenchmarkDelta(b *testing.B) {
	b.SetBytes(int64(len(delta)))
	v := scan.Value(delta)
	for b.Loop() {
		for o := scan.Members(v); o.Next(); {
			if string(o.Key) == "delta" {
				o.Val.Bytes()
			}
		}
	}
}

func BenchmarkValid(b *testing.B) {
	b.SetBytes(int64(len(delta)))
	for b.Loop() {
		json.Valid([]byte(delta))
	}
}
