package verify_test

import (
	"crypto/sha256"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/verify"
)

// specificationFile is the specification.
const specificationFile = "../docs/attribution-v1.md"

// exampleHeading is the heading of its example.
const exampleHeading = "\n## 20. An example\n"

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// codeBlocks returns the code blocks of a page, without their fences.
func codeBlocks(page string) []string {
	parts := strings.Split(page, "\n```")
	var blocks []string
	for i := 1; i < len(parts); i += 2 {
		_, code, _ := strings.Cut(parts[i], "\n")
		blocks = append(blocks, code)
	}
	return blocks
}

func sum(b []byte) []byte { s := sha256.Sum256(b); return s[:] }

// The example of the specification, which TestSpecificationExample compares with the generated one, verifies; and
// changes to it have the stated results.
func TestSpecification(t *testing.T) {
	e := makeExample(t)
	m, err := manifest.Parse([]byte(e.blocks[3]))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := m.Canonical(); err != nil || string(body) != string(e.signed.Body) {
		t.Errorf("the manifest shown is not the signed one: %v\n%s", err, body)
	}
	if _, err := tlog.VerifyProof(e.signed.Proof, e.signed.Digest(), e.vkey); err != nil {
		t.Error(err)
	}
	v := &verify.Verifier{Offline: true, Trust: []string{"X0xkXIBjRUVinlowQ90KeOMCb6ky_fCC3HB76of4ZtM"}}
	r := must(t)(v.Bundle(t.Context(), e.signed))
	if got := r.Claims[0].Sources[0].Result.Status; r.State != verify.Trusted || r.Level.Observed != 3 || got != verify.Verified {
		t.Errorf("at level %d, the source %s:\n%s", r.Level.Observed, got, text(r))
	}
	changed := strings.Replace(examplePage, "March", "April", 1)
	for _, test := range []struct {
		name, page string
		exact      string
		want       verify.Status
	}{
		{"the page says April", changed, exampleExact, verify.ExcerptAltered},
		{"the manifest says April", examplePage, strings.Replace(exampleExact, "March", "April", 1), verify.ExcerptMismatch},
	} {
		cs, src := m.Claims[0].Sources[0], &m.Sources[0]
		cs.Excerpt, cs.ExcerptHash = &manifest.Excerpt{Exact: test.exact}, snapshot.Hash([]byte(test.exact))
		snap := &snapshot.Snapshot{URL: src.URL, FinalURL: src.URL, Status: 200, MediaType: src.MediaType, Octets: []byte(test.page)}
		got := verify.Compare(&cs, src, snap, nil, &verify.CompareOptions{TextProfile: m.TextProfile})
		if got.Status != test.want {
			t.Errorf("%s: %s, want %s", test.name, got.Status, test.want)
		}
	}
}

// Every status is in a table of the specification, with what it counts as and when it is reported.
func TestSpecificationWords(t *testing.T) {
	rows := map[string]string{} // the row by the words in its first cell
	for line := range strings.Lines(readFile(t, specificationFile)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) != 3 {
			continue
		}
		for i, word := range strings.Split(cells[0], "`") {
			if i%2 == 1 {
				rows[word] += line
			}
		}
	}
	words := statusWords(t)
	if len(words) < 70 {
		t.Errorf("the source has %d words only: %q", len(words), words)
	}
	for _, kind := range []snapshot.FetchErrorKind{
		snapshot.Blocked, snapshot.RobotsDisallowed, snapshot.Unreachable, snapshot.Gone, snapshot.AccessDenied, snapshot.TooLarge,
		snapshot.UnsupportedMedia,
	} {
		words = append(words, string(kind))
	}
	words = append(words, manifest.NotRead, manifest.NoContent, manifest.NoText, manifest.AdvisoryText, manifest.ExcerptNotFound,
		manifest.ExcerptTooShort, manifest.ExcerptTooLong, manifest.NoEvidence)
	for _, word := range words {
		if rows[word] == "" {
			t.Errorf("no table of the specification has %s", word)
		}
	}
}

// statusWords returns the values of all constants of type Status in this package.
func statusWords(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, isName := spec.Type.(*ast.Ident)
			value, isValue := spec.Values[0].(*ast.BasicLit)
			if isName && kind.Name == "Status" && isValue {
				words = append(words, strings.Trim(value.Value, `"`))
			}
			return true
		})
	}
	return words
}
