package server_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
)

// The list of endpoints in docs/http.md is generated from the route tables.
func TestEndpoints(t *testing.T) {
	name := filepath.Join(testenv.Root(t), "docs", "http.md")
	page := string(testenv.Must(os.ReadFile(name))(t))
	const begin, end = "<!-- endpoints: written by make generate -->\n", "<!-- /endpoints -->"
	head, rest, found := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("docs/http.md has no place for the list, between %q and %q", begin, end)
	}
	want := head + begin + endpoints() + end + tail
	if *update {
		testenv.OK(t, os.WriteFile(name, []byte(want), 0o666))
		return
	}
	if diff := gocmp.Diff(page, want); diff != "" {
		t.Errorf("docs/http.md is out of date, make generate writes it (-is +should be):\n%s", diff)
	}
}

// endpoints returns a line for each route: its scope, its parameters except those of all lists, and what it does.
func endpoints() string {
	var b strings.Builder
	for _, rt := range server.Routes() {
		var needs []string
		if rt.Scope != "" {
			needs = append(needs, "`"+rt.Scope+"`")
		}
		var params []string
		for _, p := range rt.Params {
			if p.Name != "limit" && p.Name != "cursor" {
				params = append(params, "`"+p.Name+"`")
			}
		}
		if len(params) > 0 {
			needs = append(needs, strings.Join(params, ", "))
		}
		fmt.Fprintf(&b, "- `%s %s`", cmp.Or(rt.Method, "GET"), strings.TrimSuffix(rt.Pattern, "{$}"))
		if len(needs) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(needs, "; "))
		}
		does, _, _ := strings.Cut(rt.Doc, ". ")
		fmt.Fprintf(&b, ": %s\n", strings.TrimSuffix(does, "."))
	}
	return b.String()
}
