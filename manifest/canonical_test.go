package manifest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// The hash was computed by another program (Python's json with sorted keys) from the same example.
func TestCanonicalGolden(t *testing.T) {
	m := parse(t, golden(t, "manifest.json"))
	checkCanonical(t, m)
	b, err := m.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	if got := hex.EncodeToString(sum[:]); got != "64bce613b74e1f2042fd71bd61499a1331f62201363c05e74c6db005739435df" {
		t.Errorf("the canonical form has the hash %s:\n%s", got, b)
	}
}

// What Parse would refuse is not written, rather than corrected.
func TestCanonicalRefuses(t *testing.T) {
	nan, long := math.NaN(), strings.Repeat("x", manifest.MaxName+1)
	for name, change := range map[string]func(m *manifest.Manifest){
		"no UTF-8":           func(m *manifest.Manifest) { m.Claims[0].Text = "a\xff" },
		"no UTF-8 in a name": func(m *manifest.Manifest) { m.Extra = manifest.Extra{"\xff": json.RawMessage("1")} },
		"no JSON":            func(m *manifest.Manifest) { m.Chain[0].Inputs = json.RawMessage(`1},{"x":1`) },
		"empty JSON":         func(m *manifest.Manifest) { m.Extra = manifest.Extra{"x": json.RawMessage("")} },
		"twice in inputs":    func(m *manifest.Manifest) { m.Chain[0].Inputs = json.RawMessage(`{"a":1,"a":2}`) },
		"large number":       func(m *manifest.Manifest) { m.Chain[0].Inputs = json.RawMessage(`9007199254740993`) },
		"NaN":                func(m *manifest.Manifest) { m.Claims[0].ConfidenceScore = &nan },
		"no time":            func(m *manifest.Manifest) { m.EmittedAt = "" },
		"too long":           func(m *manifest.Manifest) { m.RunID = long },
		"no sources":         func(m *manifest.Manifest) { m.Claims[0].Sources = nil },
		"larger when written": func(m *manifest.Manifest) {
			m.Chain[0].Inputs = json.RawMessage("[" + strings.Repeat("1e15,", 150_000) + "1]")
		},
	} {
		m := parse(t, []byte(sample))
		change(m)
		if b, err := m.Canonical(); err == nil {
			t.Errorf("%s: written as %.200s", name, b)
		}
	}
}

func TestMarshal(t *testing.T) {
	b, err := json.Marshal(manifest.Manifest{RunID: "<1>", AgentID: "a", EmittedAt: "2026-05-01T12:00:00Z", Extra: manifest.Extra{"run_id": json.RawMessage("2"), "z": json.RawMessage("3")}})
	if want := `{"run_id":"\u003c1\u003e","agent_id":"a","emitted_at":"2026-05-01T12:00:00Z","claims":[],"z":3}`; err != nil || string(b) != want {
		t.Errorf("%s, %v\nwant %s", b, err, want)
	}
}

// The canonical form is stable and has the same meaning, for all kinds of strings and numbers.
func FuzzCanonical(f *testing.F) {
	f.Add("a\u2028\"\\\b\t\n\f\r\x01\x1f\x7f/<é€\U0001f600", 0.5, 7)
	f.Add("", math.SmallestNonzeroFloat64, 0)
	f.Add("\ufffe\x00", 1e-7, manifest.MaxNumber)
	f.Add("ab \u2029\ufeff\ufffd\U0010ffff\b\\/&>é", 3.3e-320, 12)
	f.Add("\U0010ffff\ufeff", 0.1234567890123456, 1)
	f.Add("x", math.Copysign(0, -1), -1)
	f.Fuzz(func(t *testing.T, text string, score float64, n int) {
		yes := true
		m := ours(t)
		m.AgentID, m.TextProfile, m.Claims[0].Text, m.Claims[0].ConfidenceScore = text, text, text, &score
		m.Output = &manifest.Output{MediaType: text, Hash: snapshot.Hash([]byte(text)), TextLength: &n}
		m.Sources = append(m.Sources, manifest.Source{ID: text, URL: "https://a.example/", Title: text, Status: n, Cited: &yes, TextLength: &n})
		m.Claims[0].Sources[0].Excerpt = &manifest.Excerpt{Exact: text, Prefix: text}
		m.Claims[0].Span = &manifest.Range{n, n}
		checkCanonical(t, m)
		m = ours(t) // one that can be published
		m.Claims[0].Text = "x" + strings.ToValidUTF8(text, "")
		if score >= 0 && score <= 1 {
			m.Claims[0].ConfidenceScore = &score
		}
		checkCanonical(t, m)
		m.Extra = manifest.Extra{m.Claims[0].Text: json.RawMessage(` {"b" : 1e2, "a":"\u0041\/"}`)} // unknown: transformed
		checkCanonical(t, m)
	})
}

// ours returns the sample without members that may be any JSON.
func ours(t *testing.T) *manifest.Manifest {
	t.Helper()
	m := parse(t, []byte(sample))
	for i := range m.Chain {
		m.Chain[i].Inputs = nil
	}
	return m
}

func checkCanonical(t *testing.T, m *manifest.Manifest) {
	t.Helper()
	got, err := m.Canonical()
	if err != nil {
		return
	}
	again, err := parse(t, got).Canonical()
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("canonical %s\nand again %s, %v", got, again, err)
	}
	if !slices.IsSorted(names(t, got)) {
		t.Errorf("the members of %s are not sorted", got)
	}
	plain, err := m.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var want, have any
	if err := errors.Join(json.Unmarshal(plain, &want), json.Unmarshal(got, &have)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("canonical (-want +got):\n%s", diff)
	}
}

// names returns the names of an object's members in their order, as UTF-16, which RFC 8785 compares.
func names(t *testing.T, object []byte) []string {
	t.Helper()
	var list []string
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var key []byte
		for _, unit := range utf16.Encode([]rune(name.(string))) {
			key = append(key, byte(unit>>8), byte(unit))
		}
		list = append(list, string(key))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return list
}
