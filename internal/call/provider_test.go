package call

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProviders(t *testing.T) {
	var names []string
	for _, p := range Providers() {
		names = append(names, p.Name)
		if found, ok := FindProvider(p.Name); !ok {
			t.Errorf("FindProvider(%q) finds nothing", p.Name)
		} else if diff := cmp.Diff(p, found); diff != "" {
			t.Errorf("FindProvider(%q) finds another (-want +got)\n%s", p.Name, diff)
		}
		if p.NeedsURL != (p.URL == "") {
			t.Errorf("%s: NeedsURL is %t, its URL %q", p.Name, p.NeedsURL, p.URL)
		}
		if u, err := url.Parse(p.URL); err != nil || !p.NeedsURL && (u.Scheme != "https" || u.Path != "" || u.Host == "") {
			t.Errorf("%s: %q is no base of an API: want https, a host and no path", p.Name, p.URL)
		}
		if len(p.KeyEnv) == 0 || !slices.Contains(KeyHeaders(), p.KeyHeader) {
			t.Errorf("%s: key in %q, header %q, want some variable and one of %q", p.Name, p.KeyEnv, p.KeyHeader, KeyHeaders())
		}
		if (p.KeyHeader == "Authorization") != (p.KeyPrefix == "Bearer ") {
			t.Errorf("%s: prefix %q in %s", p.Name, p.KeyPrefix, p.KeyHeader)
		}
		for name := range p.Header {
			checkCanonical(t, name)
		}
	}
	want := strings.Fields("openai gemini cohere anthropic perplexity xai openrouter mistral bedrock azure")
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got)\n%s", diff)
	}
	for _, name := range KeyHeaders() {
		checkCanonical(t, name)
	}
	if p, ok := FindProvider("acme"); ok {
		t.Errorf("FindProvider(acme) = %v, want none", p)
	}
}

func checkCanonical(t *testing.T, header string) {
	t.Helper()
	if want := http.CanonicalHeaderKey(header); header != want {
		t.Errorf("header %q is not canonical: %q", header, want)
	}
}

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

func TestProviderNames(t *testing.T) {
	want := strings.Fields(`anthropic azure bedrock cohere dashscope deepseek gemini generic groq mistral openai openrouter perplexity
		vertex xai zhipu`)
	if diff := cmp.Diff(want, ProviderNames()); diff != "" {
		t.Errorf("names (-want +got)\n%s", diff)
	}
}
