package verify_test

import (
	"crypto/sha256"
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/verify"
)

// specification is the example at the end of docs/attribution-v1.md, cut out of its code blocks.
type specification struct {
	page, text, answer, proof, vkey, header string
	keys                                    []byte
	signed                                  manifest.Signed
	man                                     *manifest.Manifest
}

// specificationFile is the page.
const specificationFile = "../docs/attribution-v1.md"

// exampleHeading is where the example begins in it.
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

func readSpecification(t *testing.T) *specification {
	t.Helper()
	_, example, ok := strings.Cut(readFile(t, specificationFile), exampleHeading)
	if !ok {
		t.Fatal("the specification has no example")
	}
	blocks := codeBlocks(example)
	if len(blocks) != 8 {
		t.Fatalf("the example has %d blocks, want 8", len(blocks))
	}
	s := &specification{page: blocks[0] + "\n", text: blocks[1], answer: blocks[2], keys: []byte(blocks[4]), proof: blocks[6] + "\n"}
	var err error
	if s.man, err = manifest.Parse([]byte(blocks[3])); err != nil {
		t.Fatal(err)
	}
	_, s.vkey, _ = strings.Cut(strings.Join(strings.Fields(example), " "), "the vkey `") // wherever the line is broken
	s.vkey, _, _ = strings.Cut(s.vkey, "`")
	body, err := s.man.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	for _, line := range strings.Split(blocks[5], "\n")[1:] {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
	s.signed = manifest.Signed{
		TargetURI: s.man.Self, Status: 200, ContentType: h.Get("Content-Type"), ContentDigest: h.Get("Content-Digest"),
		SignatureInput: h.Get("Signature-Input"), Signature: h.Get("Signature"), Body: body, JWKS: s.keys, Proof: []byte(s.proof),
		Sources: []manifest.SignedSource{{
			URL: s.man.Sources[0].URL, MediaType: s.man.Sources[0].MediaType, Hash: s.man.Sources[0].Hash, Octets: []byte(s.page),
		}},
	}
	if want := `"` + hex.EncodeToString(sum(body)) + `"`; h.Get("Etag") != want {
		t.Errorf("the ETag is %s, want %s", h.Get("Etag"), want)
	}
	_, s.header, _ = strings.Cut(blocks[7], ": ")
	return s
}

func sum(b []byte) []byte { s := sha256.Sum256(b); return s[:] }

// What the specification shows is what we make and believe.
func TestSpecification(t *testing.T) {
	s := readSpecification(t)
	if list := s.man.Problems(); list != nil {
		t.Errorf("the manifest contradicts itself: %v", list)
	}
	if level, why := s.man.Level(true); level != 3 {
		t.Errorf("the manifest is of level %d: %v", level, why)
	}
	if id := manifest.ClaimID(s.answer); id != s.man.Claims[0].ID {
		t.Errorf("ClaimID = %s, want %s", id, s.man.Claims[0].ID)
	}
	text, err := snapshot.Extract([]byte(s.page), &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"})
	if err != nil || text.Content != s.text {
		t.Errorf("the page's text is %q, %v, want %q", text.Content, err, s.text)
	}
	digest := s.signed.Digest()
	if _, err := tlog.VerifyProof([]byte(s.proof), digest, s.vkey); err != nil {
		t.Error(err)
	}
	list, err := manifest.ParseHeader([]string{s.header})
	want := []manifest.Announcement{{URL: s.man.Sources[0].URL, Manifest: s.man.Self, ID: "s1", Digest: digest[:]}}
	if diff := cmp.Diff(want, list); diff != "" || err != nil {
		t.Errorf("the header: %v\n%s", err, diff)
	}
	if got := manifest.FormatHeader(want, manifest.Link); got != s.header {
		t.Errorf("FormatHeader = %s, want %s", got, s.header)
	}
	v := &verify.Verifier{Offline: true, Trust: []string{"X0xkXIBjRUVinlowQ90KeOMCb6ky_fCC3HB76of4ZtM"}}
	r, err := v.Bundle(t.Context(), &s.signed)
	if err != nil {
		t.Fatal(err)
	}
	if r.State != verify.Trusted {
		t.Errorf("the state is %s, not trusted: %+v", r.State, r.Failure)
	}
	if got := r.Claims[0].Sources[0].Result.Status; got != verify.Verified {
		t.Errorf("the source is %s", got)
	}
}

// What it says of changes.
func TestSpecificationChanged(t *testing.T) {
	s := readSpecification(t)
	cs, src := &s.man.Claims[0].Sources[0], &s.man.Sources[0]
	changed := strings.Replace(s.page, "March", "April", 1)
	for _, test := range []struct {
		name, page string
		exact      string
		want       verify.Status
	}{
		{"as it is", s.page, cs.Excerpt.Exact, verify.Verified},
		{"the page says April", changed, cs.Excerpt.Exact, verify.ExcerptAltered},
		{"the manifest says April", s.page, strings.Replace(cs.Excerpt.Exact, "March", "April", 1), verify.ExcerptMismatch},
	} {
		c := *cs
		c.Excerpt = &manifest.Excerpt{Exact: test.exact}
		c.ExcerptHash = snapshot.Hash([]byte(test.exact))
		snap := &snapshot.Snapshot{URL: src.URL, FinalURL: src.URL, Status: 200, MediaType: src.MediaType, Octets: []byte(test.page)}
		r := verify.Compare(&c, src, snap, nil, &verify.CompareOptions{TextProfile: s.man.TextProfile})
		if r.Status != test.want {
			t.Errorf("%s: %s, want %s", test.name, r.Status, test.want)
		}
	}
}

// Every word that a report says stands in a table of the page, with what it counts as and when it is said.
func TestSpecificationWords(t *testing.T) {
	rows := map[string]string{} // the row by what its first cell names
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
