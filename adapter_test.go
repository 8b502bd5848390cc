package ibid_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// tonbo reads {"words": …, "shelf": [{"id", "title", "url"}], "notes": [{"span": {"start", "end"}, "refs": [{"source"}]}]}.
type tonbo struct{}

func (tonbo) Format() (provider, format string) { return "tonbo", "tonbo-answer" }

func (tonbo) Sources(response []byte) ([]ibid.Source, error) {
	var r struct{ Shelf []ibid.Source }
	err := json.Unmarshal(response, &r)
	return r.Shelf, err
}

func (tonbo) Citations(response []byte) (string, []ibid.Citation, error) {
	var r struct {
		Words string
		Notes []ibid.Citation
	}
	err := json.Unmarshal(response, &r)
	return r.Words, r.Notes, err
}

func ExampleAdapt() {
	answer, err := ibid.Adapt(tonbo{}, []byte(`{
		"words": "Herons nest in the old mill. They come back in März.",
		"shelf": [{"id": "p1", "title": "The mill colony", "url": "https://birds.example/mill"}],
		"notes": [{"span": {"start": 0, "end": 27}, "refs": [{"source": "p1"}]}]}`))
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

func ExampleMapping() {
	answer, err := ibid.Decode([]byte(`{
		"reply": {"words": "Herons nest in the old mill [p1]. They come back in März."},
		"shelf": [{"tag": "p1", "name": "The mill colony", "link": "https://birds.example/mill"}]}`),
		&ibid.DecodeOptions{Mappings: []ibid.Mapping{{
			Provider: "tonbo", Text: "reply.words", List: "shelf", Title: "name", URL: "link", Mark: "tag",
		}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Render(&ibid.RenderOptions{Style: ibid.StylePlain}))
	// Output:
	// Herons nest in the old mill.[1] They come back in März.
}

// wrongAdapter cites a source that it does not list.
type wrongAdapter struct{ tonbo }

func (wrongAdapter) Sources([]byte) ([]ibid.Source, error) { return nil, nil }

func TestAdaptIsStrict(t *testing.T) {
	response := []byte(`{"words": "Yaks graze.", "notes": [{"span": {"end": 4}, "refs": [{"source": "p0"}]}]}`)
	if _, err := ibid.Adapt(wrongAdapter{}, response); err == nil || !strings.Contains(err.Error(), `no source "p0"`) {
		t.Errorf("an unknown source: %v", err)
	}
	if _, err := ibid.Adapt(tonbo{}, []byte("{")); err == nil {
		t.Error("the adapter's error is lost")
	}
}

// The page about providers shows an adapter and a mapping, which are those of the tests.
func TestOwnProviders(t *testing.T) {
	tests := map[string]string{
		"go":   readMatches(t, "adapter_test.go"),
		"yaml": readMatches(t, "cmd/ibid/testdata/script/mapping.txtar"),
	}
	for _, block := range parsePage(t, "docs/providers.md").blocks {
		if in, ok := tests[block.language]; !ok || !strings.Contains(in, flatLines(block.code)) {
			t.Errorf("docs/providers.md: no test has the %s block:\n%s", block.language, block.code)
		}
		delete(tests, block.language)
	}
	if len(tests) > 0 {
		t.Errorf("docs/providers.md lacks blocks")
	}
}

func TestMappingCheck(t *testing.T) {
	ok := ibid.Mapping{Provider: "tonbo", Text: "a.0.b-c_d", List: "rows.*", Mark: "tag"}
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
	for want, m := range map[string]ibid.Mapping{
		"the provider is missing":            {Text: "a", List: "b"},
		"mapping p: text is missing":         {Provider: "p", List: "b"},
		"mapping p: url has an empty name":   {Provider: "p", Text: "a", List: "b", URL: ".c"},
		"mapping p: mark must be names":      {Provider: "p", Text: "a", List: "b", Mark: "c[0]"},
		"mapping p: member has more than 16": {Provider: "p", Text: "a", List: "b", Member: strings.Repeat("a.", 16) + "a"},
	} {
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", m, err, want)
		}
	}
}
