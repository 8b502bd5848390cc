package ibid_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// tonbo reads the answers of a search service of one's own: {"answer": …, "pages": […], "notes": [{"words", "page"}]}.
type tonbo struct{}

type tonboAnswer struct {
	Answer string
	Pages  []struct{ Link, Name, Text string }
	Notes  []struct {
		Words string
		Page  int
	}
}

func (tonbo) Format() (provider, format string) { return "tonbo", "tonbo-answer" }

func (tonbo) Sources(response []byte) ([]ibid.Source, error) {
	var a tonboAnswer
	if err := json.Unmarshal(response, &a); err != nil {
		return nil, err
	}
	var sources []ibid.Source
	for i, p := range a.Pages {
		sources = append(sources, ibid.Source{ID: fmt.Sprint("page:", i), URL: p.Link, Title: p.Name, Content: p.Text})
	}
	return sources, nil
}

func (tonbo) Citations(response []byte) (string, []ibid.Citation, error) {
	var a tonboAnswer
	if err := json.Unmarshal(response, &a); err != nil {
		return "", nil, err
	}
	var citations []ibid.Citation
	for _, n := range a.Notes {
		if at := strings.Index(a.Answer, n.Words); at >= 0 {
			citations = append(citations, ibid.Citation{
				Span: ibid.Span{Start: at, End: at + len(n.Words)},
				Refs: []ibid.Ref{{Source: fmt.Sprint("page:", n.Page)}},
			})
		}
	}
	return a.Answer, citations, nil
}

func ExampleAdapt() {
	answer, err := ibid.Adapt(tonbo{}, []byte(`{
		"answer": "Herons nest in the old mill. They come back in März.",
		"pages": [{"link": "https://birds.example/mill", "name": "The mill colony", "text": "Herons nest there."}],
		"notes": [{"words": "Herons nest in the old mill", "page": 0}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Render(&ibid.RenderOptions{Style: ibid.StylePlain, List: true}))
	// Output:
	// Herons nest in the old mill.[1] They come back in März.
	//
	// Sources:
	//
	// [1] The mill colony — birds.example — https://birds.example/mill
}

// wrongAdapter cites a source that it does not list.
type wrongAdapter struct{ tonbo }

func (wrongAdapter) Sources([]byte) ([]ibid.Source, error) { return nil, nil }

func TestAdaptIsStrict(t *testing.T) {
	response := []byte(`{"answer": "Yaks graze.", "notes": [{"words": "Yaks", "page": 0}]}`)
	if _, err := ibid.Adapt(wrongAdapter{}, response); err == nil || !strings.Contains(err.Error(), `no source "page:0"`) {
		t.Errorf("an unknown source: %v", err)
	}
	if _, err := ibid.Adapt(tonbo{}, []byte("{")); err == nil {
		t.Error("the adapter's error is lost")
	}
}
