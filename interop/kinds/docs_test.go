package kinds

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// docs/providers.md lists the versions of the SDKs and the kinds found in them. IBID_UPDATE=1 rewrites the lists.
func TestDocs(t *testing.T) {
	const begin, end = "<!-- written by IBID_UPDATE=1 go -C interop test -run TestDocs ./kinds -->\n", "<!-- end -->\n"
	path := filepath.Join("..", "..", "docs", "providers.md")
	doc := string(testenv.Must(os.ReadFile(path))(t))
	before, rest, ok := strings.Cut(doc, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no section for the kinds", path)
	}
	want := before + begin + versions(t) + "\n" + kindsTable(t) + end + after
	if os.Getenv("IBID_UPDATE") != "" {
		testenv.OK(t, os.WriteFile(path, []byte(want), 0o600))
		return
	}
	testenv.Equal(t, path, want, doc)
}

// versions lists the SDKs whose kinds are checked, with the versions that the lock files pin.
func versions(t *testing.T) string {
	t.Helper()
	var all []string
	for _, from := range []struct{ registry, file, pattern string }{
		{"Go", "go.mod", `(?m)^\t\S*?(openai-go/v3|anthropic-sdk-go|cohere-go/v2|org/genai) v(\S+)$`},
		{"npm", "npm/package.json", `"(openai|@anthropic-ai/sdk|@google/genai|cohere-ai)": "([\d.]+)"`},
		{"PyPI", "python/requirements.lock", `(?m)^(openai|anthropic|cohere|google-genai)==(\S+)`},
	} {
		data := testenv.Must(os.ReadFile(filepath.Join("..", filepath.FromSlash(from.file))))(t)
		var pinned []string
		for _, m := range regexp.MustCompile(from.pattern).FindAllSubmatch(data, -1) {
			pinned = append(pinned, strings.TrimPrefix(string(m[1]), "org/")+" "+string(m[2]))
		}
		if len(pinned) != 4 {
			t.Errorf("%s: the SDKs are %q", from.file, pinned)
		}
		slices.Sort(pinned)
		all = append(all, from.registry+": "+strings.Join(pinned, ", "))
	}
	return "Checked against the types of " + strings.Join(all, "; ") + ".\n"
}

// kindsTable lists the kinds of each type, and where a type occurs if it has only one.
func kindsTable(t *testing.T) string {
	t.Helper()
	rows, skipped := testenv.Table[sdkType](t, "types.txt"), unread(t)
	var formats, types []string
	read := map[string]map[string]bool{}
	for i := range rows {
		if types = append(types, rows[i].Go); read[rows[i].Format] == nil {
			formats, read[rows[i].Format] = append(formats, rows[i].Format), map[string]bool{}
		}
	}
	found := readGo(t, types)
	for i := range rows {
		for kind := range found[rows[i].Go] {
			if m := (mutation{rows[i].Holder, kind, ""}); skipped[rows[i].Format+" "+m.String()] == "" {
				read[rows[i].Format]["`"+m.String()+"`"] = true
			}
		}
	}
	var b strings.Builder
	b.WriteString("| format | citations and sources that are read |\n| --- | --- |\n")
	for _, format := range formats {
		fmt.Fprintf(&b, "| `%s` | %s |\n", format, strings.Join(slices.Sorted(maps.Keys(read[format])), ", "))
	}
	return b.String()
}
