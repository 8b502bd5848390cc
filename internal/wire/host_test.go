package wire

import "testing"

func TestFindHost(t *testing.T) {
	for host, want := range map[string]string{
		"api.openai.com":                           "openai",
		"api.openai.com:443":                       "openai",
		"eu.api.openai.com":                        "openai",
		"notapi.openai.com":                        "",
		"api.openai.com.evil.example":              "",
		"generativelanguage.googleapis.com":        "gemini",
		"europe-west4-aiplatform.googleapis.com":   "gemini",
		"aiplatform.googleapis.com":                "gemini",
		"eu-discoveryengine.googleapis.com":        "gemini",
		"storage.googleapis.com":                   "",
		"api.cohere.ai":                            "cohere",
		"mine.openai.azure.com":                    "azure",
		"bedrock-runtime.eu-north-1.amazonaws.com": "bedrock",
		"s3.eu-north-1.amazonaws.com":              "",
		"127.0.0.1:8080":                           "",
		"":                                         "",
	} {
		if got := FindHost(host); got != want {
			t.Errorf("FindHost(%q) = %q, want %q", host, got, want)
		}
	}
}
