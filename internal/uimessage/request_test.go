package uimessage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/uimessage"
)

func TestReadRequest(t *testing.T) {
	body := `{"id":"chat1","messages":[
		{"id":"m1","role":"user","parts":[{"type":"text","text":"Do herons"},{"type":"text","text":"build?"}]},
		{"id":"m2","role":"assistant","metadata":{"x":1},"parts":[{"type":"step-start"},{"type":"text","text":"They "},{"type":"text","text":"do."},
			{"type":"source-url","sourceId":"1","url":"https://a.example/"},{"type":"data-citations","data":{"text":7}}]},
		{"id":"m3","role":"user","content":"Where?"},
		{"id":"m4","role":"user","content":"left out","parts":[{"type":"text","text":"When?"}]}],
		"trigger":"regenerate-message","messageId":"m2","provider":"openai","anything":null}`
	r, is, err := uimessage.ReadRequest([]byte(body))
	if err != nil || !is {
		t.Fatal(is, err)
	}
	if r.ID != "chat1" || r.Trigger != "regenerate-message" || r.MessageID != "m2" {
		t.Errorf("%+v", r)
	}
	var said []string
	for i := range r.Messages {
		said = append(said, r.Messages[i].Role+": "+r.Messages[i].Words())
	}
	if diff := cmp.Diff([]string{"user: Do herons\nbuild?", "assistant: They do.", "user: Where?", "user: When?"}, said); diff != "" {
		t.Error(diff)
	}
}

func TestReadRequestErrors(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{``, "not a JSON object"},
		{`[]`, "not a JSON object"},
		{`{"messages"`, "not a JSON object"},
		{`{"messages":[{"role":"user","parts":[{"type":"file","url":"data:"}]}]}`, "message 0: a file cannot be sent"},
		{`{"messages":[{"role":"tool","parts":[]}]}`, "message 0: its role"},
		{`{"messages":[{"role":"user","parts":[{"type":"text","text":1}]}]}`, "the text of a part is not a string"},
		{`{"messages":[{"role":"user","parts":[7]}]}`, "message 0: a part: it may not be a number"},
		{`{"messages":[{"role":"user","parts":[[]]}]}`, "message 0: a part: it may not be an array"},
		{`{"messages":[{"role":"user","parts":[]},{"role":"tool","content":"x"}]}`, "message 1: its role"},
		{`{"id":7,"messages":[{"role":"user","parts":[]}]}`, "id may not be a number"},
	} {
		if _, _, err := uimessage.ReadRequest([]byte(test.body)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.body, err, test.want)
		}
	}
	for _, other := range []string{`{}`, `{"messages":[{"role":"user","content":"?"}]}`, `{"messages":7}`, `{"messages":[{"parts":"x"}]}`} {
		if r, is, err := uimessage.ReadRequest([]byte(other)); r != nil || is || err != nil {
			t.Errorf("%s: %v, %v, %v", other, r, is, err)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(`{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"?"}]}],"trigger":"submit-message"}`)
	f.Add(`{"messages":[{"role":"user","content":"?"}]}`)
	f.Add(`{"messages":[{"parts":[]},{"role":"system","parts":[{"type":"text"}]}],"messages":[7]}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, is, err := uimessage.ReadRequest([]byte(body))
		if (r != nil) != (is && err == nil) {
			t.Fatalf("%v, %v, %v", r, is, err)
		}
		if r == nil {
			return
		}
		for i := range r.Messages {
			switch r.Messages[i].Role {
			case uimessage.RoleUser, uimessage.RoleSystem, uimessage.RoleAssistant:
				_ = r.Messages[i].Words()
			default:
				t.Errorf("role %q", r.Messages[i].Role)
			}
		}
	})
}
