package ibid

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestPromptSources(t *testing.T) {
	tests := testenv.Table[struct {
		Name    string
		Sources []Source
		Want    string
	}](t, "testdata/tables/prompt-sources.txt")
	for _, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			got := PromptSources(tt.Sources)
			if diff := cmp.Diff(tt.Want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzPromptSources checks that an XML parser returns the original strings of any sources.
func FuzzPromptSources(f *testing.F) {
	f.Add("a", "b", "c")
	f.Add("'", "\x00\xff", "]]>\uFFFF")
	f.Add("a\n", "b\tc\r\n", "\r\n\t")
	f.Add("source-2", "", "source-2-2")
	f.Fuzz(func(t *testing.T, id, title, content string) {
		var got struct {
			Results []struct {
				ID      string   `xml:"file_id,attr"`
				Name    string   `xml:"filename,attr"`
				Content []string `xml:"content"`
			} `xml:"result"`
		}
		sources := []Source{{ID: id, Title: title, Content: content}, {ID: id, Title: title}, {ID: content}}
		text := PromptSources(sources)
		if err := xml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if len(got.Results) != len(sources) {
			t.Fatalf("%q has %+v", text, got)
		}
		first := got.Results[0]
		want := []string{allowed(id), allowed(title), allowed(content)}
		read := []string{first.ID, first.Name, strings.Join(first.Content, "")}
		for i, w := range want {
			if w != "" && read[i] != w {
				t.Errorf("%q reads as %q", w, read[i])
			}
		}
		ids := map[string]bool{}
		for i := range got.Results {
			if r := &got.Results[i]; r.ID == "" || ids[r.ID] {
				t.Errorf("%q: the id %q is empty or a duplicate", text, r.ID)
			} else {
				ids[r.ID] = true
			}
		}
	})
}

// allowed returns s with U+FFFD for each character that XML does not allow.
func allowed(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && !strings.ContainsRune("\t\n\r", r) || r == 0xFFFE || r == 0xFFFF {
			return '\uFFFD'
		}
		return r
	}, s)
}
