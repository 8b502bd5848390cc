package ibid

import (
	"encoding/xml"
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

func FuzzPromptSources(f *testing.F) {
	f.Add("a", "b", "c")
	f.Add("'", "\x00\xff", "]]>\uFFFF")
	f.Fuzz(func(t *testing.T, id, title, content string) {
		var got struct {
			Results []struct {
				ID      string   `xml:"file_id,attr"`
				Content []string `xml:"content"`
			} `xml:"result"`
		}
		text := PromptSources([]Source{{ID: id, Title: title, Content: content}})
		if err := xml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if len(got.Results) != 1 || len(got.Results[0].Content) > 1 {
			t.Errorf("%q has %+v", text, got)
		}
	})
}
