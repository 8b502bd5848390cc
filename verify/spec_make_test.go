package verify_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/tlog"
)

var update = flag.Bool("update", false, "rewrite the example of the specification")

const (
	exampleRun    = "0f8b3c5d7e9a4b1c8d2e6f7a9b0c1d2e"
	exampleURL    = "https://heron.example/nests"
	exampleAnswer = "Herons build their nests in March, often in old oaks."
	exampleExact  = "Grey herons build in March, often in old oaks."
	exampleInputs = `{"max_words":12,"style":"plain"}`
	examplePage   = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Nests</title></head>
<body>
<h1>Grey herons 🪶</h1>
<p>Grey herons build in&nbsp;March, often in <b>old</b> oaks.</p>
<p hidden>Nothing to see.</p>
<p>A pair lays three to five eggs.</p>
</body>
</html>
`
)

// madeExample is the example of the specification as the code makes it: its code blocks, and the values in its
// sentences.
type madeExample struct {
	blocks []string
	base   string // what is signed: the last block of section 8
	facts  []exampleFact
	signed *manifest.Signed // with everything a bundle has
	vkey   string           // of the log
}

// exampleFact is a value in a sentence: the only group of pattern, in which a space matches any white space.
type exampleFact struct{ pattern, value string }

func seed(of string) []byte { return sum([]byte("ibid attribution-v1 example " + of)) }

// exampleManifest returns the manifest, and the text of the page.
func exampleManifest(t *testing.T) (*manifest.Manifest, string) {
	t.Helper()
	const media, at = "text/html; charset=utf-8", "2026-11-02T09:00:01Z"
	text, err := snapshot.Extract([]byte(examplePage), &snapshot.TextOptions{MediaType: media})
	if err != nil {
		t.Fatal(err)
	}
	m, ok := snapshot.Find(text.Content, &snapshot.Quote{Exact: exampleExact})
	if !ok {
		t.Fatal("the page does not have the excerpt")
	}
	quote := quoteAt(text.Content, m.Start, m.End)
	mac := hmac.New(sha256.New, seed("salt"))
	mac.Write([]byte(exampleInputs))
	textLength, length := utf8.RuneCountInString(text.Content), utf8.RuneCountInString(exampleAnswer)
	page, answer := snapshot.Hash([]byte(examplePage)), snapshot.Hash([]byte(exampleAnswer))
	first := "runs/" + exampleRun + "/step/1"
	return &manifest.Manifest{
		Version: manifest.Version, Self: "https://agent.example/runs/" + exampleRun + "/cite/ans_1", RunID: exampleRun,
		AgentID: "agent.example/v1", EmittedAt: "2026-11-02T09:00:05Z", TextProfile: manifest.TextProfile,
		Output: &manifest.Output{MediaType: "text/plain; charset=utf-8", Hash: answer, TextHash: answer, TextLength: &length},
		Sources: []manifest.Source{{
			ID: "s1", URL: exampleURL, FinalURL: exampleURL, RetrievedAt: at, RetrievedBy: manifest.ByPublisher, Status: 200, MediaType: media,
			Hash: page, TextHash: snapshot.Hash([]byte(text.Content)), TextLength: &textLength, Cited: new(true),
		}},
		Claims: []manifest.Claim{{
			ID: manifest.ClaimID(exampleAnswer), Text: exampleAnswer, Span: &manifest.Range{0, length},
			Confidence: manifest.ConfidenceHigh, Steps: []int{2},
			Sources: []manifest.ClaimSource{{
				Source: "s1", URL: exampleURL, RetrievedAt: at, Hash: page, ExcerptOffset: &manifest.Range{m.Start, m.End},
				ExcerptHash:   snapshot.Hash([]byte(quote.Exact)),
				Excerpt:       &manifest.Excerpt{Exact: quote.Exact, Prefix: quote.Prefix, Suffix: quote.Suffix},
				ExcerptOrigin: manifest.OriginPublisher, Relation: manifest.RelationSupports,
			}},
		}},
		Chain: []manifest.Step{
			{
				Step: 1, Tool: "fetch", Inputs: []byte(`{"url":"` + exampleURL + `"}`), OutputsRef: first, OutputsHash: page,
				Sources: []string{exampleURL},
			},
			{
				Step: 2, Tool: "summarize", InputsRef: []string{first}, InputsHash: "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil)),
				OutputsRef: "runs/" + exampleRun + "/step/2", OutputsHash: answer, Sources: []string{exampleURL},
			},
		},
	}, text.Content
}

// laidOut returns a manifest formatted for reading: short lists and objects of scalars are on one line.
func laidOut(t *testing.T, m *manifest.Manifest) string {
	t.Helper()
	b, err := m.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		t.Fatal(err)
	}
	short := regexp.MustCompile(`"inputs": \{[^{}]*\}|\[[^][{}]*\]`)
	return short.ReplaceAllStringFunc(out.String(), func(s string) string {
		s = regexp.MustCompile(`\n *`).ReplaceAllString(s, " ")
		return regexp.MustCompile(`([[{]) | ([]}])$`).ReplaceAllString(s, "$1$2")
	})
}

// makeExample makes the example, signed and logged.
func makeExample(t *testing.T) *madeExample {
	t.Helper()
	man, text := exampleManifest(t)
	key := ed25519.NewKeyFromSeed(seed("manifest key"))
	id, err := keyring.Thumbprint(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	signed, err := manifest.Sign(man, &keyring.Key{ID: id}, key, time.Unix(1793610006, 0))
	if err != nil {
		t.Fatal(err)
	}
	digest := signed.Digest()
	log, proof := exampleLog(t, digest)
	etag := hex.EncodeToString(digest[:])
	jwks := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"%s","kid":"%s","use":"sig","alg":"EdDSA"}]}`,
		base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey)), id)
	response := strings.Join([]string{
		"HTTP/1.1 200 OK", "Content-Type: " + signed.ContentType, "Content-Digest: " + signed.ContentDigest,
		"Signature-Input: " + signed.SignatureInput, "Signature: " + signed.Signature,
		"Cache-Control: public, max-age=31536000, immutable, no-transform", `ETag: "` + etag + `"`,
	}, "\n")
	header := manifest.HeaderName + ": " + manifest.FormatHeader(
		[]manifest.Announcement{{URL: exampleURL, Manifest: man.Self, Digest: digest[:], ID: "s1"}}, manifest.Link)
	source := &man.Sources[0]
	signed.JWKS, signed.Proof = []byte(jwks), []byte(proof)
	signed.Sources = []manifest.SignedSource{{URL: source.URL, MediaType: source.MediaType, Hash: source.Hash, Octets: []byte(examplePage)}}
	before := text[:strings.Index(text, exampleExact)]
	count := func(s string) string { return strconv.Itoa(utf8.RuneCountInString(s)) }
	leaf := sum(append([]byte{0}, digest[:]...))
	return &madeExample{
		signed: signed, vkey: log.VerifierKey(),
		blocks: []string{strings.TrimSuffix(examplePage, "\n"), text, exampleAnswer, laidOut(t, man), jwks, response, strings.TrimSuffix(proof, "\n"), header},
		base:   exampleBase(t, signed),
		facts: []exampleFact{
			{"Its `hash` is `([^`]+)`", man.Sources[0].Hash},
			{"of ([0-9]+) code points \\([0-9]+ octets in UTF-8\\)", count(text)},
			{"of [0-9]+ code points \\(([0-9]+) octets in UTF-8\\)", strconv.Itoa(len(text))},
			{"`text_hash` `([^`]+)`", man.Sources[0].TextHash},
			{"begins at code point ([0-9]+),", count(before)},
			{"octet ([0-9]+), UTF-16", strconv.Itoa(len(before))},
			{"UTF-16 unit ([0-9]+):", strconv.Itoa(len(utf16.Encode([]rune(before))))},
			{"([0-9]+) code points without a line end", count(exampleAnswer)},
			{"it has ([0-9]+) octets and the SHA-256", strconv.Itoa(len(signed.Body))},
			{"octets and the SHA-256 `([0-9a-f]+)`", etag},
			{"is the HMAC of `([^`]+)` under the salt", exampleInputs},
			{"under the salt `([0-9a-f]+)`", hex.EncodeToString(seed("salt"))},
			{"The leaf's hash is `([^`]+)`", base64.StdEncoding.EncodeToString(leaf)},
			{"the vkey `([^`]+)`", log.VerifierKey()},
		},
	}
}

// exampleLog makes the log, and the proof that it contains the digest.
func exampleLog(t *testing.T, digest [32]byte) (*tlog.Log, string) {
	t.Helper()
	log, err := tlog.Open(t.Context(), &tlog.Options{
		Origin: "agent.example/log", Tiles: &tlog.MemoryTiles{}, Key: ed25519.NewKeyFromSeed(seed("log key")),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), sha256.Sum256([]byte("one")), digest, sha256.Sum256([]byte("three"))); err != nil {
		t.Fatal(err)
	}
	proof, err := log.Proof(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	return log, string(proof)
}

// exampleBase returns the signature base.
func exampleBase(t *testing.T, s *manifest.Signed) string {
	t.Helper()
	message := &httpsig.Message{
		Status: s.Status, Request: &httpsig.Message{Method: "GET", TargetURI: s.TargetURI},
		Header: map[string][]string{
			"Content-Type": {s.ContentType}, "Content-Digest": {s.ContentDigest},
			"Signature-Input": {s.SignatureInput}, "Signature": {s.Signature},
		},
	}
	list, err := httpsig.Parse(message)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d signatures, %v", len(list), err)
	}
	base, err := list[0].Base(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(base)
}

// insert returns the page with the example inserted in its place.
func (e *madeExample) insert(t *testing.T, page string) string {
	t.Helper()
	page, example, ok := strings.Cut(page, exampleHeading)
	if !ok {
		t.Fatal("the specification has no example")
	}
	signatures, rest, ok := strings.Cut(page, "\n## 9. Keys\n")
	if !ok {
		t.Fatal("the specification has no section on keys")
	}
	last := len(codeBlocks(signatures)) - 1
	signatures = withBlock(signatures, last, e.base)
	for i, block := range e.blocks {
		example = withBlock(example, i, block)
	}
	for _, f := range e.facts {
		at := regexp.MustCompile(strings.ReplaceAll(f.pattern, " ", `\s+`)).FindStringSubmatchIndex(example)
		if at == nil {
			t.Errorf("the example does not have %q", f.pattern)
			continue
		}
		example = example[:at[2]] + f.value + example[at[3]:]
	}
	return signatures + "\n## 9. Keys\n" + rest + exampleHeading + example
}

// withBlock returns a page with its n-th code block replaced.
func withBlock(page string, n int, block string) string {
	parts := strings.Split(page, "\n```")
	if i := 2*n + 1; i < len(parts) {
		language, _, _ := strings.Cut(parts[i], "\n")
		parts[i] = language + "\n" + block
	}
	return strings.Join(parts, "\n```")
}

// The example of the specification is the one that the code makes; -update rewrites it.
func TestSpecificationExample(t *testing.T) {
	page := readFile(t, specificationFile)
	want := makeExample(t).insert(t, page)
	if *update && !t.Failed() {
		if err := os.WriteFile(specificationFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(page, "\n")); diff != "" {
		t.Errorf("the example is not the one that the code makes (-update writes it):\n%s", diff)
	}
}
