package ibid_test

import (
	"fmt"

	"github.com/ibidhq/ibid"
)

func exampleAnswer() *ibid.Answer {
	return &ibid.Answer{
		Text: "The dam was finished in **1964**. It is 89 m high.",
		Sources: []ibid.Source{
			{ID: "a", Kind: ibid.Web, Title: "Dams of the north", URL: "https://dams.example/north", Site: "dams.example"},
			{ID: "b", Kind: ibid.File, Filename: "survey.pdf"},
		},
		Citations: []ibid.Citation{
			{Span: ibid.Span{Start: 0, End: 30}, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: "a"}}},
			{Span: ibid.Span{Start: 34, End: 49}, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: "b", Locator: &ibid.Locator{Page: 12}}}},
		},
	}
}

func ExampleAnswer_Render() {
	fmt.Println(exampleAnswer().Render(nil))
	// Output:
	// The dam was finished in **1964**.[1](https://dams.example/north) It is 89 m high.[2]
}

func ExampleAnswer_Render_list() {
	fmt.Print(exampleAnswer().Render(&ibid.RenderOptions{Style: ibid.StylePlain, List: true}))
	// Output:
	// The dam was finished in **1964**.[1] It is 89 m high.[2]
	//
	// Sources:
	//
	// [1] Dams of the north — dams.example — https://dams.example/north
	// [2] survey.pdf — p. 12
}

func ExampleAnswer_Render_byID() {
	fmt.Println(exampleAnswer().Render(&ibid.RenderOptions{Style: ibid.StylePlain, ByID: true}))
	// Output:
	// The dam was finished in **1964**.[a] It is 89 m high.[b]
}

func ExampleAnswer_Render_marker() {
	fmt.Println(exampleAnswer().Render(&ibid.RenderOptions{Marker: func(m ibid.Marker) string {
		return fmt.Sprintf("<sup>%d</sup>", m.Items[0].Number)
	}}))
	// Output:
	// The dam was finished in **1964**.<sup>1</sup> It is 89 m high.<sup>2</sup>
}

func ExamplePromptSources() {
	fmt.Println(ibid.PromptSources([]ibid.Source{
		{ID: "a", Filename: "survey.pdf", Content: "The crest is 89 m above the foot & 310 m long."},
	}))
	// Output:
	// <sources><result file_id='a' filename='survey.pdf'><content>The crest is 89 m above the foot &amp; 310 m long.</content></result></sources>
}
