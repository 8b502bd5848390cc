package gateway

import (
	"crypto/sha256"
	"fmt"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/trail"
)

// maxResultBytes is how many bytes of passages of tool results are kept with one call. Of the others only the names,
// addresses and hashes are kept.
const maxResultBytes = 1 << 20

// The codes of issues of steps that were read from a request.
const issueNotKept = "passages-not-kept"

// readResults reads what tools returned to the model since its last answer: the steps of the run before this call. What
// is read does not depend on what is kept of prompts, but with [PromptsNone] no passage is.
func (e *exchange) readResults() {
	e.results = nil
	left := maxResultBytes
	for _, r := range call.ReadResults(e.body) {
		s := trail.Step{ID: r.ID, Tool: r.Tool}
		if e.g.options.Prompts != PromptsNone {
			s.Inputs = r.Inputs
		}
		s.AddResult(r.Content)
		why := ""
		for i := range s.Sources {
			f := &s.Sources[i]
			if left -= len(f.Content); left >= 0 && e.g.options.Prompts != PromptsNone {
				continue
			}
			if why = "the request's results are over the limit"; e.g.options.Prompts == PromptsNone {
				why = "no prompts are kept"
			}
			if f.Content != "" {
				f.Version = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(f.Content)))
			}
			f.Content, f.Excerpt = "", ""
		}
		if why != "" {
			s.Issues = append(s.Issues, ibid.Issue{
				Code: issueNotKept, Detail: "passages of " + cutName(r.Tool) + " were not kept: " + why,
			})
		}
		e.results = append(e.results, s)
	}
}

func cutName(tool string) string {
	if tool == "" {
		return "a tool"
	}
	return tool[:min(len(tool), MaxName)]
}
