package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/manifest"
)

// words returns findings as lines without their details.
func words(findings []manifest.Finding) []string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%d:%d %s %s %s", f.Line, f.Column, f.Severity, f.Code, f.Path))
	}
	return lines
}

func TestLint(t *testing.T) {
	clean := strings.Replace(sample, `0.9`, `1`, 1)
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(clean) }
	tests := []struct {
		name, doc string
		want      []string
	}{
		{"nothing", clean, nil},
		{"fractional score", sample, []string{"33:27 advice fractional-score /claims/0/confidence_score"}},
		{"the first proposal", seedManifest, []string{
			"1:1 advice no-version ", "1:1 advice no-self ", "1:1 advice no-output ", "1:1 advice no-text-profile ", "1:1 advice no-sources ",
			"6:5 advice no-steps /claims/0",
			"7:19 advice unstable-id /claims/0/claim_id",
			"10:9 advice no-excerpt /claims/0/sources/0",
		}},
		{"no JSON", "{\n \"run_id\": \"7\",\n \"run_id\": \"8\"}", []string{"3:2 error manifest-malformed /run_id"}},
		{"another version", replace(`"1.0"`, `"2.0"`), []string{"2:14 error version-unsupported /version"}},
		{"several errors", replace(`"7"`, `7`, `"high"`, `"great"`, `"s2"`, `"s 2"`, `"step": 2`, `"step": "2"`), []string{
			"4:13 error manifest-malformed /run_id", "25:12 error manifest-malformed /sources/1/id", "32:21 error manifest-malformed /claims/0/confidence",
			"50:14 error manifest-malformed /chain/1/step",
		}},
		{"contradictions", replace(`[0, 18]`, `[0, 19]`, `"o1"]`, `"o9"]`, `"id": "s2"`, `"id": "s1"`), []string{
			"25:12 error manifest-inconsistent /sources/1/id",
			"31:15 error manifest-inconsistent /claims/0/span",
			"36:9 error chain-gap /claims/0/sources/0",
			"50:49 error chain-invalid /chain/1/inputs_ref",
		}},
		{"misspelt", replace(`"cited": true`, `"Cited": true`, `"tool": "answer"`, `"tool": "answer", "é/x": 1`), []string{
			"23:16 advice unknown-member /sources/0/Cited", "50:42 advice unknown-member /chain/1/é~1x",
		}},
		{"hash that can be guessed", replace(`"inputs": {"q": "otters"}`, `"inputs_hash": "sha256:`+strings.Repeat("0", 64)+`"`), []string{
			"49:50 advice guessable-hash /chain/0/inputs_hash",
		}},
		{"no inputs", replace(`"inputs": {"q": "otters"}, `, ``), []string{"49:5 advice no-inputs /chain/0"}},
		{"plain http, and an unfetchable source", replace(`"https://agent.example/runs`, `"http://agent.example/runs`, `urn:ibid:src:row-7`, `file:///etc/passwd`, `otters.example/facts`, `otters.example/facts#a`), []string{
			"3:11 advice plain-http /self", "18:14 advice unfetchable-url /sources/0/url", "25:25 advice unfetchable-url /sources/1/url",
		}},
		{"long prefix", replace(`"Sea "`, `"`+strings.Repeat("a", 33)+`"`), []string{"43:22 advice long-context /claims/0/sources/0/excerpt"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			findings := manifest.Lint([]byte(tt.doc))
			if diff := cmp.Diff(tt.want, words(findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
