package server_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/server"
)

// Only streams have no limit of CPU time for the whole request: they bound each piece of work.
func TestStays(t *testing.T) {
	var got []string
	for _, rt := range slices.Concat(server.Routes(), page.Routes()) {
		if rt.Stays && !slices.Contains(got, rt.Method+" "+rt.Pattern) {
			got = append(got, rt.Method+" "+rt.Pattern)
		}
	}
	want := []string{
		" /v1/feedback", " /v1/runs/{id}/events", "POST /v1/chat", " /v1/chat/{id}/stream", " /ui/answers/{id}/live",
		" /ui/feedback", " /ui/runs/{id}/live",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
