package wire_test

import (
	"testing"

	"github.com/ibidhq/ibid/internal/wire"
)

func TestIsRedirect(t *testing.T) {
	for address, want := range map[string]bool{
		"https://vertexaisearch.cloud.google.com/grounding-api-redirect/AbC_d-9==":      true,
		"https://VertexAISearch.cloud.google.com/grounding-api-redirect/AbC":            true,
		"https://vertexaisearch.cloud.google.com/grounding-api-redirect/":               false,
		"https://vertexaisearch.cloud.google.com/other":                                 false,
		"http://vertexaisearch.cloud.google.com/grounding-api-redirect/AbC":             false,
		"https://evil.example/grounding-api-redirect/AbC":                               false,
		"https://vertexaisearch.cloud.google.com@evil.example/grounding-api-redirect/A": false,
		"::": false,
		"":   false,
	} {
		if got := wire.IsRedirect(address); got != want {
			t.Errorf("%q: %t", address, got)
		}
	}
}
