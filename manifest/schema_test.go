package manifest_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ibidhq/ibid/manifest"
)

const schemaName = "urn:ibid:schema:manifest:1"

func compileSchema(tb testing.TB) *jsonschema.Schema {
	tb.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(manifest.Schema()))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaName, doc); err != nil {
		tb.Fatal(err)
	}
	schema, err := c.Compile(schemaName)
	if err != nil {
		tb.Fatal(err)
	}
	return schema
}

func valid(tb testing.TB, schema *jsonschema.Schema, doc []byte) error {
	tb.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		tb.Fatalf("%v\n%s", err, doc)
	}
	return schema.Validate(v)
}

func TestSchemaAccepts(t *testing.T) {
	schema := compileSchema(t)
	canonical, err := parse(t, []byte(sample)).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	for name, doc := range map[string][]byte{
		"sample": []byte(sample), "canonical": canonical, "seed": []byte(seedManifest), "golden": golden(t, "manifest.json"),
		"extra": edited(t, "/extensions", map[string]any{"x": 1}, "/claims/0/x", []any{}),
	} {
		if err := valid(t, schema, doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Parse and the schema refuse the same documents.
func TestSchemaAgrees(t *testing.T) {
	schema := compileSchema(t)
	var root map[string]any
	if err := json.Unmarshal(manifest.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	paths := append(pathsOf(root, root, "")[1:], "/unknown", "/claims/0/unknown")
	const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	values := []any{
		absent{},
		nil, true, false, 0, -1, 1, 0.5, 1.5, 99, 100, 999, 1000, manifest.MaxNumber, "", "x", "1.0", "1.", "1.00", "1.1234567890", " ", "é", "a b", "high", "medium",
		"High", "publisher", "observer", "supports", "context", "provider", "inferred", "https://a", "http://", "http://a b", "https://é/", "HTTPS://a", "httpss://a", "ftp://a", "urn:a", "urn:", "1a:b", ":a",
		"a:\u007f", "a:\u00a0", "agent.example", "agent.example:80/a", "agent.example:/a", "Agent.example", "/a", "agent.example/é", "s1", "s_1", "s/1", strings.Repeat("a", 128), strings.Repeat("a", 129),
		strings.Repeat("a", 257), strings.Repeat("a", 513), strings.Repeat("é", 4097), strings.Repeat("é", 8193), "https://" + strings.Repeat("a", 2041), "https://" + strings.Repeat("a", 4089),
		"2026-05-01T12:00:00Z", "2026-05-01T12:00:00.123456789Z", "2026-05-01T12:00:00.1234567890Z", "2026-05-01T12:00:00.Z", "2026-05-01T12:00:00", "2026-05-01T24:00:00Z", "2026-05-01T23:60:00Z",
		"2026-05-01T23:59:60Z", "2026-13-01T12:00:00Z", "2026-00-01T12:00:00Z", "2026-05-00T12:00:00Z", "2026-05-32T12:00:00Z", "2026-05-01t12:00:00Z", "2026-05-01T12:00:00+00:00", "2026-05-01T12:00:00Z\n",
		"sha256:" + sum, "sha256:" + sum + "0", "sha256:" + strings.ToUpper(sum), "sha256:" + sum[1:], "hmac-sha256:" + sum[1:], "sha256:", sum,
		[]any{},
		[]any{1},
		[]any{0},
		[]any{0, 1},
		[]any{0, -1},
		[]any{0, 1, 2},
		[]any{"a"},
		[]any{""},
		[]any{nil},
		[]any{map[string]any{}},
		map[string]any{},
		map[string]any{"exact": "x"},
		map[string]any{"exact": 1},
		map[string]any{"media_type": "x", "hash": "sha256:" + sum},
		map[string]any{"a": map[string]any{"b": nil}},
	}
	accepted, refused := 0, 0
	for _, path := range paths {
		for _, value := range values {
			doc := edited(t, path, value)
			m, parseErr := manifest.Parse(doc)
			schemaErr := valid(t, schema, doc)
			if (parseErr == nil) != (schemaErr == nil) && (m == nil || !hasStatus(m.Problems(), manifest.StatusAlgorithm)) {
				t.Errorf("%s = %v\n  Parse: %v\n  schema: %v", path, value, parseErr, schemaErr)
			}
			if parseErr == nil {
				accepted++
			} else {
				refused++
			}
		}
	}
	if len(paths) < 70 || accepted < 500 || refused < 2000 {
		t.Errorf("only %d documents were accepted and %d refused", accepted, refused)
	}
}

// pathsOf returns JSON pointers to all values of a schema, for arrays to their first elements.
func pathsOf(root, schema map[string]any, at string) []string {
	if ref, ok := schema["$ref"].(string); ok {
		schema = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	list := []string{at}
	properties, _ := schema["properties"].(map[string]any)
	for name, of := range properties {
		of, _ := of.(map[string]any) // nil if it is true: any value is valid
		list = append(list, pathsOf(root, of, at+"/"+name)...)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		list = append(list, pathsOf(root, items, at+"/0")...)
	}
	return list
}

// Only Parse refuses what a schema cannot express, and only Problems reports hashes by other algorithms.
func TestSchemaExceptions(t *testing.T) {
	schema := compileSchema(t)
	replace := func(old, replacement string) []byte {
		return []byte(strings.Replace(sample, old, replacement, 1))
	}
	for name, doc := range map[string][]byte{
		"fraction that is zero":       replace(`"text_length": 60`, `"text_length": 60.0`),
		"exponent":                    replace(`"text_length": 60`, `"text_length": 6e1`),
		"day that the month lacks":    replace("2026-05-01T12", "2026-04-31T12"),
		"number in an unknown member": edited(t, "/x", json.RawMessage("9007199254740993")),
		"deep unknown member":         edited(t, "/x", json.RawMessage(strings.Repeat("[", 32)+strings.Repeat("]", 32))),
		"larger than the largest":     append([]byte(sample), bytes.Repeat([]byte(" "), manifest.MaxBytes)...),
	} {
		if _, err := manifest.Parse(doc); err == nil {
			t.Errorf("%s: Parse accepts it", name)
		}
		if err := valid(t, schema, doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := edited(t, "/output/hash", "sha512:AA==")
	if valid(t, schema, other) == nil || parse(t, other).Problems() == nil {
		t.Error("a hash by another algorithm is accepted")
	}
}

func hasStatus(problems []manifest.Problem, status string) bool {
	return slices.ContainsFunc(problems, func(p manifest.Problem) bool { return p.Status == status })
}
