package call

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
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
	testenv.Equal(t, "names", want, names)
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
	for _, test := range testenv.Table[struct{ Host, Want string }](t, "testdata/tables/hosts.txt") {
		testenv.Equal(t, test.Host, test.Want, FindHost(test.Host))
	}
}

func TestProviderNames(t *testing.T) {
	want := strings.Fields(`anthropic azure baidu bedrock brave cohere dashscope deepseek dify doubao exa gemini generic groq hunyuan mistral moonshot oci openai openrouter perplexity snowflake unknown vertex xai zhipu`)
	testenv.Equal(t, "names", want, ProviderNames())
}
