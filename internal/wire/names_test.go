package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProviderNames(t *testing.T) {
	want := strings.Fields(`anthropic azure bedrock cohere dashscope deepseek gemini generic groq mistral openai openrouter perplexity
		vertex xai zhipu`)
	if diff := cmp.Diff(want, ProviderNames()); diff != "" {
		t.Errorf("names (-want +got)\n%s", diff)
	}
}
