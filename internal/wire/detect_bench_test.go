package wire

import "testing"

func BenchmarkDetect(b *testing.B) {
	for name, doc := range map[string]string{
		"chat":      `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"words"},"finish_reason":"stop"}],"usage":{}}`,
		"responses": `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","model":"m","output":[]}}`,
		"anthropic": `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[]}}`,
		"none":      `{"some":"thing","else":[1,2,3]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Detect(nil, []byte(doc))
			}
		})
	}
}
