package wire

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func noted() *Completion {
	return &Completion{
		ID: "c1", Model: "gpt-x", Text: "Ebbe 🌊 <und> Flut.", Finish: finishStop, Created: 1700000000,
		Annotations: []Annotation{
			{Start: 0, End: 6, URL: "https://a.example/?x=1&y=2", Title: "A"},
			{Start: 13, End: 17, FileID: "file-1", Filename: "b.pdf"},
			{Start: 18, End: 18, FileID: "file-1", Filename: "b.pdf"},
			{URL: "https://c.example/"},
		},
	}
}

func TestCompletionBody(t *testing.T) {
	want := `{"id":"c1","object":"chat.completion","created":1700000000,"model":"gpt-x","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"Ebbe 🌊 <und> Flut.","refusal":null,"annotations":[` +
		`{"type":"url_citation","url_citation":{"start_index":0,"end_index":6,"url":"https://a.example/?x=1&y=2","title":"A"}},` +
		`{"type":"file_citation","file_citation":{"start_index":13,"end_index":17,"file_id":"file-1","filename":"b.pdf"}},` +
		`{"type":"file_citation","file_citation":{"start_index":18,"end_index":18,"file_id":"file-1","filename":"b.pdf"}},` +
		`{"type":"url_citation","url_citation":{"start_index":0,"end_index":0,"url":"https://c.example/","title":""}}]},` +
		`"logprobs":null,"finish_reason":"stop"}]}`
	got, err := noted().Body()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What Completion writes, the parser reads, as a body and as a stream.
func TestCompletionIsRead(t *testing.T) {
	head := []string{"head id=c1", "head model=gpt-x", "head created=1700000000", "head provider=openai"}
	notes := []string{
		`source https://a.example/?x=1&y=2 web title="A" url="https://a.example/?x=1&y=2"`,
		`cite 0/url_citation/0/6//https://a.example/?x=1&y=2/ 0/0/0 link 0-6 code-points of part link="https://a.example/?x=1&y=2" -> https://a.example/?x=1&y=2`,
		`source file-1 file id="file-1" global="file-1" title="b.pdf" filename="b.pdf"`,
		`cite 0/file_citation/13/17///file-1 0/0/0 claim 13-17 code-points of part -> file-1`,
		`source file-1 file id="file-1" global="file-1" title="b.pdf" filename="b.pdf"`,
		`cite 0/file_citation/18/18///file-1 0/0/0 point 18-18 code-points of part -> file-1`,
		`source https://c.example/ web url="https://c.example/"`,
		`cite 0/url_citation/0/0//https://c.example// 0/0/0 link nowhere -> https://c.example/`,
		"markers 0  style=0 links", "finish 0 stop", "end",
	}
	body, err := noted().Body()
	if err != nil {
		t.Fatal(err)
	}
	want := append(append(append([]string{}, head...), `text 0/0/0 "Ebbe 🌊 <und> Flut."`), notes...)
	if diff := cmp.Diff(want, record(t, "openai-chat", "", string(body))); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}

	c := noted()
	var docs []string
	for i, delta := range []string{"Ebbe 🌊", " <und>", " Flut.", ""} {
		doc, err := c.Chunk(delta, i == 3)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(doc))
	}
	want = append(append(append([]string{}, head...), `text 0/0/0 "Ebbe 🌊"`, `text 0/0/0 " <und>"`, `text 0/0/0 " Flut."`), notes[:len(notes)-1]...)
	if diff := cmp.Diff(want, record(t, "openai-chat", "", docs...)); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
}

// Clients join the strings of chunks, so the role must come only once.
func TestCompletionChunks(t *testing.T) {
	c := &Completion{ID: "c1", Model: "m"}
	want := []string{
		`{"id":"c1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Ja"},"logprobs":null,"finish_reason":null}]}`,
		`{"id":"c1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"content":"."},"logprobs":null,"finish_reason":null}]}`,
		`{"id":"c1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]}`,
	}
	for i, delta := range []string{"Ja", ".", ""} {
		if i == 2 {
			c.Finish = finishLength
		}
		got, err := c.Chunk(delta, i == 2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], string(got)); diff != "" {
			t.Errorf("chunk %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestCompletionFinish(t *testing.T) {
	for _, finish := range []string{finishStop, finishLength, finishTool, finishRefusal, finishFilter, finishError, ""} {
		c := &Completion{Text: "No.", Finish: finish}
		body, err := c.Body()
		if err != nil {
			t.Fatal(err)
		}
		want := []string{`text 0/0/0 "No."`, "finish 0 " + finish, "end"}
		switch finish {
		case finishRefusal:
			want[0] = `text 0/0/1+refusal "No."`
		case finishError:
			want = slices.Insert(want, 2, `error error "the model stopped with an error"`)
		case "":
			want = []string{want[0], "end"}
		}
		if diff := cmp.Diff(want, record(t, "openai-chat", "", string(body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", finish, diff)
		}
	}
}
