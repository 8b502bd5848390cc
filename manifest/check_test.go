package manifest_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/manifest"
)

func TestProblems(t *testing.T) {
	const (
		claim  = "/claims/0"
		source = claim + "/sources/0"
		other  = "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	)
	tests := []struct {
		name  string
		edits []any
		want  []string // path, and status unless it is manifest-inconsistent
	}{
		{"nothing", nil, nil},
		{"expires before it was emitted", []any{"/expires_at", "2026-05-01T11:59:59.999Z"}, []string{"/expires_at"}},
		{"supersedes itself", []any{"/supersedes", "https://agent.example/runs/7/cite/a"}, []string{"/supersedes"}},
		{"two sources of one id", []any{"/sources/1/id", "s1"}, []string{"/sources/1/id"}},
		{"two claims of one id", []any{"/claims/1", map[string]any{
			"claim_id": "c-1", "text": "x", "sources": []any{map[string]any{"url": "urn:ibid:src:row-7", "retrieved_at": "2026-05-01T11:59:01.5Z"}},
		}, claim + "/claim_id", "c-1", claim + "/steps", absent{}, "/chain/1/sources", []string{"s2", "urn:ibid:src:row-7"}}, []string{"/claims/1/claim_id"}},
		{"source read later", []any{"/sources/1/retrieved_at", "2026-05-01T12:00:00.000000001Z"}, []string{"/sources/1/retrieved_at"}},
		{"claim's url differs", []any{source + "/url", "https://otters.example/fact"}, []string{source + "/url"}},
		{"claim's hash differs", []any{source + "/hash", other}, []string{source + "/hash"}},
		{"claim's time differs", []any{source + "/retrieved_at", "2026-05-01T11:59:00.1Z"}, []string{source + "/retrieved_at"}},
		{"claim's time is written differently", []any{source + "/retrieved_at", "2026-05-01T11:59:00.000Z"}, nil},
		{"claim's original url differs", []any{source + "/original_url", "a", "/sources/0/original_url", "b"}, []string{source + "/original_url"}},
		{"claim's source is unknown", []any{source + "/source", "s9"}, []string{source + "/source"}},
		{
			"claim's source is not listed",
			[]any{source + "/source", absent{}, source + "/url", "https://otters.example/x", "/chain/0/sources", absent{}},
			[]string{source + "/url", source + " chain-gap"},
		},
		{"cited source is marked as not cited", []any{"/sources/0/cited", false}, []string{"/sources/0/cited"}},
		{"empty span", []any{claim + "/span", []int{5, 5}}, []string{claim + "/span"}},
		{"span beyond the text", []any{claim + "/span", []int{43, 61}}, []string{claim + "/span"}},
		{"span too short", []any{claim + "/span", []int{0, 17}}, []string{claim + "/span"}},
		{"span of a rewritten claim", []any{claim + "/span", []int{0, 17}, claim + "/rewritten", true}, nil},
		{"span of a text with more spaces", []any{claim + "/text", " Otters  hold\nhands. "}, nil},
		{"span counts code points", []any{claim + "/text", "Otters hold hand🧭."}, nil},
		{"score is lower than high", []any{claim + "/confidence_score", 0.79}, []string{claim + "/confidence_score"}},
		{"score is lower than confidence", []any{claim + "/confidence_score", 0.5}, []string{claim + "/confidence_score"}},
		{"score without confidence", []any{claim + "/confidence", absent{}}, nil},
		{"hash of the excerpt", []any{source + "/excerpt_hash", other}, []string{source + "/excerpt_hash"}},
		{"one digit of the excerpt", []any{source + "/excerpt/exact", "otters hold hands at nigh7"}, []string{source + "/excerpt_hash"}},
		{"empty offset", []any{source + "/excerpt_offset", []int{36, 10}}, []string{source + "/excerpt_offset"}},
		{"offset beyond the text", []any{source + "/excerpt_offset", []int{175, 201}}, []string{source + "/excerpt_offset"}},
		{"offset of another length", []any{source + "/excerpt_offset", []int{10, 35}}, []string{source + "/excerpt_offset"}},
		{"offset of another unit", []any{source + "/excerpt_offset", []int{10, 40}, "/text_profile", absent{}}, nil},
		{"private excerpt", []any{source + "/excerpt", absent{}}, nil},
		{"short excerpt", []any{source + "/excerpt", map[string]any{"exact": "hands at"}, source + "/excerpt_offset", []int{21, 29}, source + "/excerpt_hash", absent{}}, []string{source + "/excerpt/exact excerpt-too-short"}},
		{"short excerpt of three words", []any{source + "/excerpt", map[string]any{"exact": "a b c"}, source + "/excerpt_offset", []int{21, 26}, source + "/excerpt_hash", absent{}}, nil},

		{"two steps of one number", []any{"/chain/1/step", 1}, []string{claim + "/steps/0 chain-invalid", "/chain/1/step chain-invalid", "/chain/1/inputs_ref chain-invalid"}},
		{"two steps of one output", []any{"/chain/1/outputs_ref", "o1"}, []string{"/chain/1/outputs_ref chain-invalid"}},
		{"unknown output", []any{"/chain/1/inputs_ref", "o3"}, []string{source + " chain-gap", "/chain/1/inputs_ref chain-invalid"}},
		{"its own output", []any{"/chain/0/inputs_ref", "o1"}, []string{"/chain/0/inputs_ref chain-invalid"}},
		{"a later output", []any{"/chain/0/inputs_ref", []string{"o2"}}, []string{"/chain/0/inputs_ref chain-invalid"}},
		{"in another order", []any{"/chain/0/step", 4, "/chain/1/step", 5, claim + "/steps", []int{5}}, nil},
		{"unknown step", []any{claim + "/steps", []int{2, 3}}, []string{claim + "/steps/1 chain-invalid"}},
		{"step that the source did not reach", []any{"/chain/1/inputs_ref", absent{}}, []string{source + " chain-gap"}},
		{"no steps named", []any{"/chain/1/inputs_ref", absent{}, claim + "/steps", absent{}}, nil},
		{"source of a step by URL", []any{"/chain/0/sources", []string{"https://otters.example/facts"}}, nil},
		{"source of a step by final URL", []any{"/chain/0/sources", []string{"https://otters.example/"}, "/sources/0/final_url", "https://otters.example/"}, nil},
		{"unknown source of a step", []any{"/chain/1/sources", []string{"s1", "s3"}}, []string{"/chain/1/sources/1"}},
		{"ends before it started", []any{"/chain/0/started_at", "2026-05-01T11:58:01Z", "/chain/0/ended_at", "2026-05-01T11:58:00Z"}, []string{"/chain/0/ended_at"}},
		{"ends after the manifest", []any{"/chain/0/ended_at", "2026-05-01T12:00:01Z"}, []string{"/chain/0/ended_at"}},
		{"starts after the manifest", []any{"/chain/0/started_at", "2026-05-01T12:00:01Z", "/chain/0/ended_at", absent{}}, []string{"/chain/0/started_at"}},
		{"no chain", []any{"/chain", absent{}, claim + "/steps", absent{}}, nil},

		{"another algorithm", []any{"/output/hash", "sha512:AA==", "/sources/0/hash", "md5:aa", source + "/hash", "md5:aa", "/chain/0/outputs_hash", "hmac-md5:a", "/chain/1/outputs_hash", "hmac-" + other}, []string{"/output/hash algorithm-unsupported", "/sources/0/hash algorithm-unsupported", source + "/hash algorithm-unsupported", "/chain/0/outputs_hash algorithm-unsupported"}},
		{"a keyed hash where keys are not allowed", []any{source + "/excerpt_hash", "hmac-" + other}, []string{source + "/excerpt_hash algorithm-unsupported"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			problems := parse(t, edited(t, tt.edits...)).Problems()
			var got []string
			for _, p := range problems {
				got = append(got, strings.TrimSuffix(p.Path+" "+p.Status, " "+manifest.StatusInconsistent))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			for _, p := range problems {
				if p.Detail == "" || strings.ToUpper(p.Detail[:1]) == p.Detail[:1] {
					t.Errorf("%s says %q", p.Path, p.Detail)
				}
			}
		})
	}
}

// Many problems of one kind neither hide those of another kind nor raise the level.
func TestProblemsHideNothing(t *testing.T) {
	const many = 1024
	var chain, gaps, short []string
	for i := range many {
		chain = append(chain, fmt.Sprintf(`{"step":%d,"tool":"t","outputs_ref":"o%d","inputs_ref":["x","y"],"sources":["nobody's"]}`, i+1, i))
	}
	for i := range many/64 + 1 {
		source := `{"url":"https://otters.example/facts","retrieved_at":"2026-05-01T11:59:00Z","excerpt":{"exact":"x"}}`
		list := strings.TrimSuffix(strings.Repeat(source+",", 64), ",")
		short = append(short, fmt.Sprintf(`{"claim_id":"%d","text":"t","sources":[%s]}`, i, list))
		gaps = append(gaps, fmt.Sprintf(`{"claim_id":"%d","text":"t","steps":[1],"sources":[%s]}`, i, strings.ReplaceAll(list, `,"excerpt":{"exact":"x"}`, "")))
	}
	wrong := `{"claim_id":"z","text":"t","span":[5,5],"sources":[{"source":"s1","url":"https://otters.example/facts","retrieved_at":"2026-05-01T11:59:00Z"}]}`
	for name, edits := range map[string][]any{
		"a broken chain":     {"/chain", raw(chain), "/claims", raw([]string{wrong})},
		"gaps in the chain":  {"/chain", raw(chain[:1]), "/claims", raw(append(gaps, wrong))},
		"excerpts too short": {"/chain", absent{}, "/claims", raw(append(short, wrong))},
	} {
		m := parse(t, edited(t, edits...))
		found := false
		for _, p := range m.Problems() {
			found = found || p.Path == fmt.Sprintf("/claims/%d/span", len(m.Claims)-1)
		}
		if level, _ := m.Level(true); level != 1 || !found {
			t.Errorf("%s: level %d, the claim's contradiction is reported: %t", name, level, found)
		}
	}
	for i := range short {
		short[i] = strings.Replace(short[i], `"text":"t"`, `"text":"t","span":[5,5]`, 1)
	}
	for len(short) < many {
		short = append(short, strings.Replace(wrong, "z", fmt.Sprint(len(short)), 1))
	}
	if list := parse(t, edited(t, "/chain", raw(chain[:1]), "/claims", raw(short))).Problems(); list[len(list)-1].Status != manifest.StatusChain {
		t.Error("many contradictions hide that the chain is broken")
	}
}

// Every kind of problem is found for each step and claim of a tangled chain.
func TestProblemsTangled(t *testing.T) {
	count := map[string]int{}
	for _, p := range parse(t, tangled(t, 700)).Problems() {
		count[p.Status]++
	}
	if diff := cmp.Diff(map[string]int{manifest.StatusChain: 700, manifest.StatusGap: 500, manifest.StatusInconsistent: 500}, count); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// The time per octet must not grow with the number of steps.
func BenchmarkProblemsTangled(b *testing.B) {
	for _, n := range []int{350, 700} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			text := tangled(b, n)
			m, err := manifest.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Problems()
				manifest.Lint(text)
			}
		})
	}
}

// tangled returns a manifest of n steps, each of which builds on half of those before it.
func tangled(tb testing.TB, n int) []byte {
	tb.Helper()
	var chain, claims []string
	var refs strings.Builder
	for i := range n {
		chain = append(chain, fmt.Sprintf(`{"step":%d,"tool":"","outputs_ref":"%d","inputs_ref":["x"%s]}`, i+1, i, refs.String()))
		if i%2 == 0 {
			fmt.Fprintf(&refs, `,"%d"`, i)
		}
	}
	for i := range 500 {
		claims = append(claims, fmt.Sprintf(`{"claim_id":"%d","text":"t","steps":[%d,%d],"sources":[{"url":"a:b","retrieved_at":"2026-05-01T11:59:00Z"}]}`, i, n, n-1))
	}
	return edited(tb, "/chain", raw(chain), "/claims", raw(claims))
}

func TestLevel(t *testing.T) {
	const source = "/claims/0/sources/0"
	tests := []struct {
		name   string
		doc    []byte
		signed bool
		level  int
		why    []string
	}{
		{"signed", []byte(sample), true, 3, nil},
		{"not signed", []byte(sample), false, 2, []string{"not signed"}},
		{"no chain", edited(t, "/chain", absent{}, "/claims/0/steps", absent{}), true, 2, []string{"no chain"}},
		{"a gap in the chain", edited(t, "/chain/1/inputs_ref", absent{}), true, 2, []string{source + ": no step"}},
		{"a private excerpt", edited(t, source+"/excerpt", absent{}), true, 3, nil},
		{"no excerpt", edited(t, source+"/excerpt", absent{}, source+"/excerpt_hash", absent{}), true, 3, nil},
		{"no hash, with a reason", edited(t, source+"/hash", absent{}, source+"/unavailable", "gone"), true, 1, []string{`it has no hash, so changes of the source go unnoticed ("gone")`}},
		{"no offset", edited(t, source+"/excerpt_offset", absent{}), true, 1, []string{"no excerpt_offset"}},
		{"inconsistent", edited(t, "/sources/1/id", "s1"), true, 1, []string{"/sources/1/id: another source"}},
		{"the first published form", []byte(seedManifest), true, 3, nil},
		{"no claims", edited(t, "/claims", []any{}), true, 3, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			level, why := parse(t, tt.doc).Level(tt.signed)
			if level != tt.level || len(why) != len(tt.why) {
				t.Fatalf("level %d, why %q", level, why)
			}
			for i := range why {
				if !strings.Contains(why[i], tt.why[i]) {
					t.Errorf("why: %q, without %q", why[i], tt.why[i])
				}
			}
		})
	}
}

func TestClaimID(t *testing.T) {
	const want = "c-188a0ac394476b64" // from the SHA-256 of the words
	for _, text := range []string{"Otters hold hands.", " Otters\u00a0hold\nhands. "} {
		if got := manifest.ClaimID(text); got != want {
			t.Errorf("ClaimID(%q) = %s", text, got)
		}
	}
	if manifest.ClaimID("a") == manifest.ClaimID("b") {
		t.Error("two texts have the same id")
	}
}

func TestTime(t *testing.T) {
	zone := time.FixedZone("x", 2*3600)
	at := time.Date(2026, 5, 1, 14, 0, 0, 120, zone)
	if got := manifest.At(at); got != "2026-05-01T12:00:00.00000012Z" || !got.Time().Equal(at) {
		t.Errorf("At is %s, which is %v", got, got.Time())
	}
	for _, bad := range []manifest.Time{
		"", "x", "2026-05-01T12:00:00", "2026-05-01t12:00:00Z", "2026-05-01T12:00:00z", "2026-05-01 12:00:00Z", "2026-05-01T12:00:00,5Z",
		"2026-05-01T12:00:00.Z", "2026-05-01T12:00:00.1234567890Z", "2026-05-01T1:00:00Z", "2026-05-01T24:00:00Z", "2026-05-01T23:59:60Z", "2026-13-01T12:00:00Z", "2026-05-01T12:00:00+00:00",
	} {
		if got := bad.Time(); !got.IsZero() {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func raw(list []string) json.RawMessage { return json.RawMessage("[" + strings.Join(list, ",") + "]") }
