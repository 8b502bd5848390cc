package wire

import "testing"

func TestConversations(t *testing.T) {
	testParser(t, "mistral-conversations", []parserTest{
		{
			name: "a body",
			docs: []string{
				`{"conversation_id":"conv_1","object":"conversation.response","outputs":[{"type":"tool.execution","id":"t1","name":"web_search"},{"type":"message.output","model":"mistral","content":[{"type":"text","text":"Brücke"},{"type":"tool_reference","tool":"web_search","title":"B","url":"https://b.example/","description":"old bridge","favicon":"f"},{"type":"text","text":"."},{"type":"tool_reference","tool":"kb","title":"K","url":null},{"type":"tool_reference","tool":"kb"},{"type":"tool_file","file_id":"f1","file_name":"a.png"},{"type":"tool_file","tool":"x"},{"type":"thinking"},{"type":"smell"}]},{"type":"agent.handoff"},{"type":"sunrise"},{"content":"plain"}],"usage":{}}`,
			},
			want: []string{
				`head id=conv_1`,
				`tool "t1" web_search`,
				`head model=mistral`,
				`text 0/1/0 "Brücke"`,
				`source https://b.example/ web title="B" url="https://b.example/" content="old bridge"`,
				`cite  0/1/0 point here -> https://b.example/ "old bridge"`,
				`text 0/1/0 "."`,
				`source kb:K tool title="K"`,
				`cite  0/1/0 point here -> kb:K`,
				`issue citation-without-source tool reference`,
				`source f1 file id="f1" global="f1" filename="a.png"`,
				`issue unknown-type chunk smell`,
				`issue unknown-type output sunrise`,
				`text 0/4/0 "plain"`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "a function is called",
			docs: []string{
				`{"conversation_id":"conv_2","outputs":[{"type":"function.call","tool_call_id":"c1","name":"weigh"}]}`,
			},
			want: []string{
				`head id=conv_2`,
				`tool "c1" weigh`,
				`finish 0 tool`,
				`end`,
			},
		},
		{
			name: "a stream",
			docs: []string{
				`conversation.response.started {"type":"conversation.response.started","conversation_id":"conv_3"}`,
				`{"type":"tool.execution.started","output_index":0,"id":"t1","name":"web_search"}`,
				`{"type":"tool.execution.done","id":"t1"}`,
				`{"type":"message.output.delta","id":"m","output_index":1,"content_index":0,"model":"mistral","content":"Br"}`,
				`{"type":"message.output.delta","id":"m","output_index":1,"content_index":0,"model":"mistral","content":"ücke"}`,
				`{"type":"message.output.delta","id":"m","output_index":1,"content_index":1,"content":{"type":"tool_reference","tool":"web_search","title":"B","url":"https://b.example/"}}`,
				`{"type":"message.output.delta","id":"m","output_index":1,"content_index":2,"content":[{"type":"text","text":"."}]}`,
				`{"type":"conversation.response.done","usage":{}}`,
			},
			want: []string{
				`head id=conv_3`,
				`tool "t1" web_search`,
				`head model=mistral`,
				`text 0/1/0 "Br"`,
				`text 0/1/0 "ücke"`,
				`source https://b.example/ web title="B" url="https://b.example/"`,
				`cite  0/1/0 point here -> https://b.example/`,
				`text 0/1/0 "."`,
				`finish 0 stop`,
				`end`,
			},
		},
		{
			name: "a stream with a function call",
			docs: []string{
				`{"type":"function.call.delta","id":"x","tool_call_id":"c1","name":"weigh","arguments":"{"}`,
				`{"type":"conversation.response.done"}`,
			},
			want: []string{
				`tool "c1" weigh`,
				`finish 0 tool`,
				`end`,
			},
		},
		{
			name: "events of no use",
			docs: []string{
				`{"type":"message.output.delta","output_index":-1,"content":7}`,
				`{"type":"conversation.response.error","code":3001,"message":"gone"}`,
				`{"type":"agent.handoff.done"}`,
				`{"type":"sunrise"}`,
				`{"outputs":null}`,
			},
			want: []string{
				`issue bad-number output_index -1`,
				`error 3001 "gone"`,
			},
		},
	})
}

func TestDetectConversations(t *testing.T) {
	testDetect(t, []detectTest{
		{`{"type":"conversation.response.started"}`, "mistral-conversations"},
		{`{"type":"message.output.delta"}`, "mistral-conversations"},
		{`{"conversation_id":"c","outputs":[]}`, "mistral-conversations"},
		{`{"object":"conversation.response"}`, "mistral-conversations"},
		{`{"outputs":[]}`, ""},
	})
}

func TestConversationsKnows(t *testing.T) {
	testKnows(t, "mistral-conversations",
		[]string{`{"type":"agent.handoff.started"}`, `{"outputs":[]}`},
		[]string{`{}`, `[]`, ``, `{"type":"sunrise"}`, `{"outputs":{}}`},
	)
}

func FuzzConversations(f *testing.F) {
	f.Add(`{"conversation_id":"c","outputs":[{"type":"message.output","content":[{"type":"text","text":"a"},{"type":"tool_reference","tool":"t","title":"x"},{"type":"tool_file"}]}]}`)
	f.Add(`{"type":"message.output.delta","output_index":1,"content":"a"}`)
	f.Add(`{"type":"message.output.delta","output_index":1,"content":{"type":"tool_reference","url":"u"}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		fuzzEvent(t, "mistral-conversations", "", "", doc)
	})
}
