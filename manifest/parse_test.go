package manifest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
)

// sample is a manifest without errors.
const sample = `{
  "version": "1.0",
  "self": "https://agent.example/runs/7/cite/a",
  "run_id": "7",
  "agent_id": "agent.example/v2",
  "emitted_at": "2026-05-01T12:00:00Z",
  "expires_at": "2031-05-01T12:00:00Z",
  "text_profile": "ibid-text/1",
  "output": {
    "media_type": "text/plain; charset=utf-8",
    "hash": "sha256:2c1743a391305fbf367df8e4f069f9f9b8f8e3f5b7d3b3a2e5c6f3b7e0b1a2c3",
    "text_hash": "sha256:2c1743a391305fbf367df8e4f069f9f9b8f8e3f5b7d3b3a2e5c6f3b7e0b1a2c3",
    "text_length": 60
  },
  "sources": [
    {
      "id": "s1",
      "url": "https://otters.example/facts",
      "retrieved_at": "2026-05-01T11:59:00Z",
      "retrieved_by": "observer",
      "hash": "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      "text_length": 200,
      "cited": true
    },
    {"id": "s2", "url": "urn:ibid:src:row-7", "retrieved_at": "2026-05-01T11:59:01.5Z", "cited": false, "unavailable": "private"}
  ],
  "claims": [
    {
      "claim_id": "c-188a0ac394476b64",
      "text": "Otters hold hands.",
      "span": [0, 18],
      "confidence": "high",
      "confidence_score": 0.9,
      "steps": [2],
      "sources": [
        {
          "source": "s1",
          "url": "https://otters.example/facts",
          "retrieved_at": "2026-05-01T11:59:00Z",
          "hash": "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
          "excerpt_offset": [10, 36],
          "excerpt_hash": "sha256:8928918fceb4e3f677d2525d68c01e112b5f4691aea4b030d2f09cb8e67cebf4",
          "excerpt": {"exact": "otters hold hands at night", "prefix": "Sea ", "suffix": "."}
        }
      ]
    }
  ],
  "chain": [
    {"step": 1, "tool": "search", "inputs": {"q": "otters"}, "outputs_ref": "o1", "sources": ["s1"]},
    {"step": 2, "tool": "answer", "inputs_ref": ["o1"], "outputs_ref": "o2"}
  ]
}`

// absent removes a member from the sample.
type absent struct{}

// edited returns the sample with the value at a JSON pointer replaced, in compact form.
func edited(tb testing.TB, edits ...any) []byte {
	tb.Helper()
	var doc any
	if err := json.Unmarshal([]byte(sample), &doc); err != nil {
		tb.Fatal(err)
	}
	for i := 0; i < len(edits); i += 2 {
		doc = edit(doc, strings.Split(edits[i].(string), "/")[1:], edits[i+1])
	}
	b, err := json.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func edit(doc any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch doc := doc.(type) {
	case map[string]any:
		if _, remove := value.(absent); remove && len(path) == 1 {
			delete(doc, path[0])
		} else {
			doc[path[0]] = edit(doc[path[0]], path[1:], value)
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if err == nil && i == len(doc) {
			return append(doc, value)
		}
		doc[i] = edit(doc[i], path[1:], value)
	}
	return doc
}

// golden reads a file of the example that implementations share.
func golden(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(testenv.Shared(tb), "spec", "golden", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// seedManifest is a manifest as the format was first proposed, with a hash filled in: it has no version, self, output
// or sources.
const seedManifest = `{
  "run_id": "123",
  "agent_id": "agent.example/v1",
  "emitted_at": "2026-04-28T10:00:00Z",
  "claims": [
    {
      "claim_id": "c1",
      "text": "Templates emit one question per page.",
      "sources": [
        {
          "url": "https://pages.example/framework",
          "retrieved_at": "2026-04-28T09:55:00Z",
          "hash": "sha256:db0cf9a6a344e8c4c3decd56f37825ddcf103f809ccfb0e32b1ec45cf0c778e9",
          "excerpt_offset": [1234, 1380]
        }
      ],
      "confidence": "high"
    }
  ],
  "chain": [
    {"step": 1, "tool": "search", "inputs": {}, "outputs_ref": "runs/123/step/1", "sources": ["https://pages.example/framework"]},
    {"step": 2, "tool": "summarize", "inputs_ref": "runs/123/step/1", "outputs_ref": "runs/123/step/2", "sources": ["https://pages.example/framework"]}
  ]
}`

func parse(tb testing.TB, b []byte) *manifest.Manifest {
	tb.Helper()
	m, err := manifest.Parse(b)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestParseGolden(t *testing.T) {
	m := parse(t, golden(t, "manifest.json"))
	if problems := m.Problems(); problems != nil {
		t.Errorf("problems: %v", problems)
	}
	length, cited := 150, true
	const page, sum = "https://geodocs.dev/strategy/programmatic-geo-framework", "sha256:db0cf9a6a344e8c4c3decd56f37825ddcf103f809ccfb0e32b1ec45cf0c778e9"
	want := []manifest.Source{{
		ID: "s1", URL: page, FinalURL: page, RetrievedAt: "2026-04-28T09:55:00Z", Status: 200, MediaType: "text/html; charset=utf-8",
		Hash: sum, TextHash: "sha256:0f95a8142d2fca473b50b2eb213691375e8f19c9cd77d396c3199b2c891f73f6", TextLength: &length, Cited: &cited,
	}}
	if diff := cmp.Diff(want, m.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"runs/123/step/1"}, m.Chain[1].InputsRef); diff != "" {
		t.Errorf("inputs_ref (-want +got):\n%s", diff)
	}
}

func TestParseSeed(t *testing.T) {
	m := parse(t, []byte(seedManifest))
	if problems := m.Problems(); problems != nil {
		t.Errorf("problems: %v", problems)
	}
	if diff := cmp.Diff([]string{"runs/123/step/1"}, m.Chain[1].InputsRef); diff != "" {
		t.Errorf("inputs_ref, written as one string (-want +got):\n%s", diff)
	}
	if got := m.Claims[0].Sources[0].ExcerptOffset; *got != (manifest.Range{1234, 1380}) {
		t.Errorf("excerpt_offset is %v", *got)
	}
}

// Unknown members are kept unchanged, at every level, and written back.
func TestParseExtra(t *testing.T) {
	doc := edited(t, "/note", 1.50, "/output/x", "a", "/sources/0/x", nil, "/claims/0/x", []any{},
		"/claims/0/sources/0/x", map[string]any{"y": 1}, "/claims/0/sources/0/excerpt/x", true, "/chain/0/RUN_ID", "7")
	m := parse(t, doc)
	if got := string(m.Claims[0].Sources[0].Extra["x"]); got != `{"y":1}` {
		t.Errorf("the extra member of a claim's source is %s", got)
	}
	if m.RunID != "7" || m.Chain[0].Extra["RUN_ID"] == nil {
		t.Error("a member in capitals was taken for the known one")
	}
	again, err := m.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, parse(t, again)); diff != "" {
		t.Errorf("written and read again (-want +got):\n%s", diff)
	}
	var want, got any
	if err := errors.Join(json.Unmarshal(doc, &want), json.Unmarshal(again, &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

// A manifest does not share memory with the caller's bytes.
func TestParseCopies(t *testing.T) {
	b := edited(t, "/note", "kept")
	m := parse(t, b)
	clear(b)
	if got := string(m.Extra["note"]); got != `"kept"` {
		t.Errorf("the member is now %q", got)
	}
}

func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	change := func(old, replacement string) string {
		if !strings.Contains(sample, old) {
			t.Fatalf("the sample has no %s", old)
		}
		return strings.Replace(sample, old, replacement, 1)
	}
	tests := []struct {
		name, doc string
		want      string // line, column, status unless it is manifest-malformed, and path
		detail    string // what the detail contains
	}{
		{"empty", " \n", "2:1", "empty"},
		{"not an object", `["a"]`, "1:1", "type object, but is of type array"},
		{"not JSON", `hello`, "1:1", "not valid JSON: invalid character 'h'"},
		{"byte order mark", "\xef\xbb\xbf{}", "1:1", "byte order mark"},
		{"UTF-16", "{\x00\"\x00a\x00", "1:2", "invalid character"},
		{"bad UTF-8", change(`"7"`, "\"7\xff\""), "4:15 /run_id", "invalid UTF-8"},
		{"overlong UTF-8", change(`"7"`, "\"\xc0\xaf\""), "4:14 /run_id", "invalid UTF-8"},
		{"twice", `{"a":1,"b":2,"a":1}`, "1:14 /a", "duplicated"},
		{"twice, escaped", `{"run_id":"1","run\u005fid":"2"}`, "1:15 /run_id", "duplicated"},
		{"twice in inputs", change(`{"q": "otters"}`, `{"q": {"z": [{"a/b": 1, "a/b": 1}]}}`), "49:69 /chain/0/inputs/q/z/0/a~1b", "duplicated"},
		{"control character", "{\"a\":\"b\x01\"}", "1:8 /a", "control"},
		{"lone high surrogate", `{"a":"x\ud83d"}`, "1:8 /a", "surrogate"},
		{"two high surrogates", `{"a":"\ud83d\ud83d"}`, "1:7 /a", "surrogate"},
		{"lone low surrogate", `{"a":"\ude00"}`, "1:7 /a", "surrogate"},
		{"lone surrogate in a name", `{"\ude00":1}`, "1:3", "surrogate"},
		{"bad escape", `{"a":"\x"}`, "1:7 /a", "escape"},
		{"cut escape", `{"a":"\u00`, "1:7 /a", "truncated"},
		{"cut string", `{"a":"b`, "1:8 /a", "truncated"},
		{"cut object", `{"a":1`, "1:7", "truncated"},
		{"cut member", `{"a":`, "1:6 /a", "truncated"},
		{"no colon", `{"a" 1}`, "1:6 /a", "expecting ':'"},
		{"comma at the end", `{"a":1,}`, "1:7", "invalid character ','"},
		{"no comma", `{"a":[1 2]}`, "1:9 /a", "expecting ',' or ']'"},
		{"comment", "{/* */}", "1:2", "invalid character '/'"},
		{"two documents", "{}\n{}", "2:1", "follows"},
		{"NaN", `{"a":NaN}`, "1:6 /a", "invalid character 'N'"},
		{"large number", `{"a":9007199254740992}`, "1:6 /a", "2^53-1"},
		{"endless number", `{"a":-1e999}`, "1:6 /a", "2^53-1"},
		{"deep", strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33), "1:161 " + strings.Repeat("/a", 32), "deeper"},
		{"endlessly deep", strings.Repeat("[", 1_000_000), "1:33 " + strings.Repeat("/0", 32), "deeper"},
		{"large", `{"a":"` + strings.Repeat("x", manifest.MaxBytes) + `"}`, "1:1", "larger than 1048576"},

		{"version 2", change(`"1.0"`, `"2.0"`), "2:14 version-unsupported /version", `version is "2.0"`},
		{"version 10", change(`"1.0"`, `"10.0"`), "2:14 version-unsupported /version", ""},
		{"version 2 of another form", `{"claims": 7, "version": "2.0"}`, "1:26 version-unsupported /version", ""},
		{"version no string", change(`"1.0"`, `1.0`), "2:14 /version", "type string, but is of type number"},
		{"version of words", change(`"1.0"`, `"1.x"`), "2:14 /version", "a version"},
		{"no run", change(`"run_id": "7",`, ``), "1:1", "run_id is missing"},
		{"null", change(`"self": "https://agent.example/runs/7/cite/a"`, `"self": null`), "3:11 /self", "type null"},
		{"run too long", change(`"7"`, `"`+long+`"`), "4:13 /run_id", "longer than 256"},
		{"run empty", change(`"7"`, `""`), "4:13 /run_id", "shorter than 1 character"},
		{"self relative", change(`https://agent.example/runs/7/cite/a`, `/runs/7`), "3:11 /self", "http"},
		{"agent a URL", change(`"agent.example/v2"`, `"https://agent.example/v2"`), "5:15 /agent_id", "a lower-case host"},
		{"local time", change(`12:00:00Z`, `12:00:00+02:00`), "6:17 /emitted_at", "a time in UTC"},
		{"no such day", change(`2026-05-01T12`, `2026-02-30T12`), "6:17 /emitted_at", "a time in UTC"},
		{"short hash", change(`b1a2c3",`, `b1a2",`), "11:13 /output/hash", "64 lower-case hexadecimal"},
		{"hash in capitals", change(`sha256:2c1743a3`, `sha256:2C1743A3`), "11:13 /output/hash", "lower-case"},
		{"negative length", change(`"text_length": 60`, `"text_length": -1`), "13:20 /output/text_length", "from 0 to"},
		{"fraction", change(`"text_length": 60`, `"text_length": 60.0`), "13:20 /output/text_length", "integer"},
		{"exponent", change(`"text_length": 60`, `"text_length": 6e1`), "13:20 /output/text_length", "integer"},
		{"source without scheme", change(`"url": "https://otters`, `"url": "otters`), "18:14 /sources/0/url", "absolute URL"},
		{"source with a line break", change(`otters.example/facts`, `otters.example/\nfacts`), "18:14 /sources/0/url", "absolute URL"},
		{"unknown reader", change(`"observer"`, `"nobody"`), "20:23 /sources/0/retrieved_by", "publisher, observer"},
		{"id with a space", change(`"id": "s1"`, `"id": "s 1"`), "17:13 /sources/0/id", "an id"},
		{"cited a word", change(`"cited": true`, `"cited": "yes"`), "23:16 /sources/0/cited", "type boolean, but is of type string"},
		{"claims an object", `{"run_id":"1","agent_id":"a.example","emitted_at":"2026-05-01T12:00:00Z","claims":{}}`, "1:83 /claims", "type array, but is of type object"},
		{"span of one", change(`[0, 18]`, `[0]`), "31:15 /claims/0/span", "fewer than 2"},
		{"span of three", change(`[0, 18]`, `[0, 18, 19]`), "31:15 /claims/0/span", "more than 2"},
		{"span of words", change(`[0, 18]`, `[0, "é", 1]`), "31:19 /claims/0/span/1", "type integer, but is of type string"},
		{"confidence", change(`"high"`, `"HIGH"`), "32:21 /claims/0/confidence", "high, medium, low, unknown"},
		{"score", change(`0.9`, `1.1`), "33:27 /claims/0/confidence_score", "from 0 to 1"},
		{"step 0", change(`"step": 1`, `"step": 0`), "49:14 /chain/0/step", "from 1 to"},
		{"no inputs_ref", change(`["o1"]`, `[]`), "50:49 /chain/1/inputs_ref", "fewer than 1"},
		{"inputs_ref empty", change(`["o1"]`, `""`), "50:49 /chain/1/inputs_ref", "shorter than 1"},
		{"inputs_ref a number", change(`["o1"]`, `1`), "50:49 /chain/1/inputs_ref", "type array, but is of type number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := manifest.Parse([]byte(tt.doc))
			var got *manifest.Error
			if !errors.As(err, &got) || m != nil {
				t.Fatalf("Parse returned %v, %v", m, err)
			}
			have := fmt.Sprintf("%d:%d %s %s", got.Line, got.Column, got.Status, got.Path)
			have = strings.TrimSpace(strings.Replace(have, " "+manifest.StatusMalformed, "", 1))
			if have != tt.want || !strings.Contains(got.Detail, tt.detail) {
				t.Errorf("the error is at %s: %s; want at %s, with %q", have, got.Detail, tt.want, tt.detail)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

// Each limit accepts what is allowed and nothing more.
func TestParseLimits(t *testing.T) {
	list := func(element string) func(int) any {
		return func(n int) any { return raw(slices.Repeat([]string{element}, n)) }
	}
	chars := func(n int) any { return strings.Repeat("é", n) }
	deep := func(n int) any { return json.RawMessage(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	const source = `{"url":"a:b","retrieved_at":"2026-05-01T11:59:00Z"}`
	const oneSource = "/claims/0/sources/0"
	tests := []struct {
		path  string
		limit int
		value func(n int) any
	}{
		{"/claims", manifest.MaxClaims, list(`{"claim_id":"c","text":"t","sources":[` + source + `]}`)},
		{"/sources", manifest.MaxSources, list(`{"id":"s","url":"a:b","retrieved_at":"2026-05-01T11:59:00Z"}`)},
		{"/chain", manifest.MaxSteps, list(`{"step":1,"tool":"","outputs_ref":"o"}`)},
		{"/chain/0/sources", manifest.MaxSources, list(`"s"`)},
		{"/chain/0/inputs_ref", manifest.MaxSteps, list(`"s"`)},
		{"/claims/0/steps", manifest.MaxSteps, list(`1`)},
		{"/claims/0/sources", manifest.MaxClaimSources, list(source)},
		{"/claims/0/text", manifest.MaxText, chars},
		{oneSource + "/excerpt/exact", manifest.MaxExact, chars},
		{oneSource + "/excerpt/prefix", manifest.MaxAround, chars},
		{oneSource + "/url", manifest.MaxURL, func(n int) any { return "a:" + strings.Repeat("é", n-2) }},
		{"/self", manifest.MaxOwnURL, func(n int) any { return "http://" + strings.Repeat("é", n-7) }},
		{"/chain/0/outputs_ref", manifest.MaxRef, chars},
		{"/claims/0/claim_id", manifest.MaxID, func(n int) any { return strings.Repeat("a", n) }},
		{"/run_id", manifest.MaxName, chars},
		{"/output/hash", manifest.MaxHash, func(n int) any { return "x:" + strings.Repeat("a", n-2) }},
		{"/output/text_length", manifest.MaxNumber, func(n int) any { return n }},
		{"/chain/0/inputs", manifest.MaxDepth - 3, deep},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			if _, err := manifest.Parse(edited(t, tt.path, tt.value(tt.limit))); err != nil {
				t.Errorf("%d: %v", tt.limit, err)
			}
			if _, err := manifest.Parse(edited(t, tt.path, tt.value(tt.limit+1))); err == nil {
				t.Errorf("%d is accepted", tt.limit+1)
			}
		})
	}
	whole := func(n int) []byte { return append([]byte(sample), strings.Repeat(" ", n-len(sample))...) }
	if _, err := manifest.Parse(whole(manifest.MaxBytes)); err != nil {
		t.Errorf("a document of MaxBytes: %v", err)
	}
	if _, err := manifest.Parse(whole(manifest.MaxBytes + 1)); err == nil {
		t.Error("a document larger than MaxBytes is accepted")
	}
}

func TestUnmarshal(t *testing.T) {
	var bundle struct{ M *manifest.Manifest }
	if err := json.Unmarshal([]byte(`{"M":`+sample+`}`), &bundle); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(t, []byte(sample)), bundle.M); diff != "" {
		t.Errorf("inside a document (-want +got):\n%s", diff)
	}
	var strict *manifest.Error
	if err := json.Unmarshal([]byte(`{"M":{"run_id":7}}`), &bundle); !errors.As(err, &strict) {
		t.Errorf("an invalid manifest: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(seedManifest))
	f.Add([]byte(`{"run_id":"1","agent_id":"a","emitted_at":"2026-05-01T12:00:00Z","claims":[],"x":[1e9,-0,0.1,"\ud83d\ude00"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := manifest.Parse(b)
		findings := manifest.Lint(b)
		if err != nil {
			var e *manifest.Error
			if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Detail == "" || len(findings) == 0 {
				t.Fatalf("error %#v, findings %v", err, findings)
			}
			return
		}
		for _, problem := range m.Problems() {
			if problem.Status == "" || problem.Detail == "" {
				t.Errorf("problem %v", problem)
			}
		}
		m.Level(true)
		c, err := m.Canonical()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := manifest.Parse(c)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, c)
		}
		if c2, err := again.Canonical(); err != nil || string(c2) != string(c) {
			t.Fatalf("canonical again: %v\n%s\n%s", err, c, c2)
		}
		if fmt.Sprint(m.Problems()) != fmt.Sprint(again.Problems()) {
			t.Fatal("its problems changed")
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var claims []json.RawMessage
	claim := parse(b, []byte(sample)).Claims[0]
	for i := range 50 {
		claim.ID = "c" + strconv.Itoa(i)
		one, err := json.Marshal(claim)
		if err != nil {
			b.Fatal(err)
		}
		claims = append(claims, one)
	}
	doc := edited(b, "/claims", claims)
	m := parse(b, doc)
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			parse(b, doc)
		}
	})
	b.Run("canonical", func(b *testing.B) {
		for b.Loop() {
			if _, err := m.Canonical(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("problems", func(b *testing.B) {
		for b.Loop() {
			m.Problems()
		}
	})
}
