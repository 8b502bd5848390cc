package verify

import (
	"context"

	"github.com/ibidhq/ibid/support"
)

// ErrEndpoint is errEndpoint, for tests.
var ErrEndpoint = errEndpoint

// CompareClaim calls compareClaims with one claim.
func CompareClaim(
	ctx context.Context, claim string, results []SourceResult, checker support.Checker,
) (ClaimReport, error) {
	list := []ClaimReport{{Text: claim}}
	err := compareClaims(ctx, []evidence{{ClaimReport: &list[0], results: results}}, checker)
	return list[0], err
}

// CompareClaims calls compareClaims with several claims, each with its results.
func CompareClaims(
	ctx context.Context, claims []string, results [][]SourceResult, checker support.Checker,
) ([]ClaimReport, error) {
	list, all := make([]ClaimReport, len(claims)), make([]evidence, len(claims))
	for i := range claims {
		list[i].Text = claims[i]
		all[i] = evidence{ClaimReport: &list[i], results: results[i]}
	}
	return list, compareClaims(ctx, all, checker)
}
