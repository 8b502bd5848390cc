package call

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestFindRoute(t *testing.T) {
	for _, test := range testenv.Table[struct {
		Provider, Call string
		Want           Route // Provider "=" means the one asked for
	}](t, "testdata/tables/find-route.txt") {
		method, path, _ := strings.Cut(test.Call, " ")
		if test.Want.Provider == "=" {
			test.Want.Provider = test.Provider
		}
		got, ok := FindRoute(test.Provider, method, path)
		if !ok {
			t.Errorf("%s %s: no route", test.Provider, test.Call)
		}
		testenv.Equal(t, test.Provider+" "+test.Call, test.Want, got)
	}
}

// What some server would accept as a call to capture is recognised, however it is written; similar paths are not.
func TestFindOddRoute(t *testing.T) {
	for _, test := range testenv.Table[struct{ Provider, Call, Found string }](t, "testdata/tables/odd-routes.txt") {
		method, path, _ := strings.Cut(test.Call, " ")
		got, ok := FindRoute(test.Provider, method, path)
		if ok != (test.Found == "yes") || !ok && got != (Route{}) {
			t.Errorf("%q %s: %+v, %t", test.Provider, test.Call, got, ok)
		}
	}
}

// FindRoute runs on every call.
func TestFindRouteAllocates(t *testing.T) {
	for _, path := range []string{"/v1beta/models/gemini-3-flash:streamGenerateContent", "/v1/files/none/of/ours"} {
		if n := testing.AllocsPerRun(100, func() { FindRoute("", "POST", path) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", path, n)
		}
	}
}

func FuzzFindRoute(f *testing.F) {
	f.Add("", "POST", "/v1beta/models/g%3AgenerateContent")
	f.Add("openai", "GET", "/v1/responses/a%zz")
	f.Add("bedrock", "POST", "/model/arn%2Fx/invoke")
	f.Fuzz(func(t *testing.T, provider, method, path string) {
		got, ok := FindRoute(provider, method, path)
		if !ok && got != (Route{}) {
			t.Errorf("%+v of a call without a route", got)
		}
		if ok && (got.Pattern == "" || got.Get != (got.ID != "") || got.Get && got.Stream) {
			t.Errorf("%+v contradicts itself", got)
		}
		if again, found := FindRoute(provider, method, "/base"+path); ok && (!found || again != got) {
			t.Errorf("below a base: %+v, alone %+v", again, got)
		}
	})
}

func BenchmarkFindRoute(b *testing.B) {
	for _, bench := range []struct{ name, provider, path string }{
		{"openai", "openai", "/v1/responses"},
		{"gemini", "gemini", "/v1beta/models/gemini-3-flash:streamGenerateContent"},
		{"azure", "azure", "/openai/deployments/my-gpt/chat/completions"},
		{"unknown", "", "/model/us.anthropic.claude-sonnet-4/converse-stream"},
		{"none", "", "/v1/vector_stores/vs_123/files"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				FindRoute(bench.provider, "POST", bench.path)
			}
		})
	}
}
