package trail

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
)

// Check returns the issues of the run, each once: those found while reading it, and those in its data, such as steps in
// a cycle, after a step that does not exist, with the number of another or begun after the end, scores outside 0…1, and
// an answer that is not the text of its document. None of them keeps the other methods from working. docs/trail.md
// lists the codes.
func (t *Trail) Check() []ibid.Issue {
	c := checker{seen: make(map[ibid.Issue]bool)}
	c.trail(t, "", 0)
	return c.issues
}

type checker struct {
	issues []ibid.Issue
	seen   map[ibid.Issue]bool
}

func (c *checker) add(issue ibid.Issue) {
	if !c.seen[issue] {
		c.seen[issue] = true
		c.issues = append(c.issues, issue)
	}
}

func (c *checker) report(code, format string, args ...any) {
	c.add(ibid.Issue{Code: code, Detail: fmt.Sprintf(format, args...)})
}

// trail checks a run. Place is the prefix of the details of a nested one.
func (c *checker) trail(t *Trail, place string, depth int) {
	read := func(issues []ibid.Issue) {
		for _, i := range issues {
			i.Detail = place + i.Detail
			c.add(i)
		}
	}
	read(t.Issues)
	count := make(map[int]int, len(t.Steps)) // of steps, by number
	for i := range t.Steps {
		count[t.Steps[i].Number]++
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		read(s.Issues)
		c.step(t, s, fmt.Sprintf("%sstep %d: ", place, s.Number))
		if n := count[s.Number]; n > 1 { // add reports it once
			c.report(
				issueDuplicate, "%sstep %d: %d steps have this number; their sources are combined", place, s.Number, n,
			)
		}
		for _, n := range s.After {
			if n == s.Number {
				c.report(issueCycle, "%sstep %d: after itself", place, n)
			} else if count[n] == 0 {
				c.report(issueDangling, "%sstep %d: after %d, which does not exist", place, s.Number, n)
			}
		}
		if s.Nested != nil && depth < MaxNested {
			c.trail(s.Nested, fmt.Sprintf("%sstep %d: nested_run: ", place, s.Number), depth+1)
		}
	}
	if cycle := t.cycle(); cycle != "" {
		c.report(issueCycle, "%ssteps %s", place, cycle)
	}
	if t.Final != nil && t.Answer != "" && t.Answer != t.Final.Text {
		c.report(issueDiffers, "%sfinal_answer differs from the text of answer, whose sentences count", place)
	}
}

func (c *checker) step(t *Trail, s *Step, place string) {
	c.score(s.Confidence, place+"confidence_score")
	used := false
	for k := range s.Sources {
		f := &s.Sources[k]
		c.score(f.Relevance, place+"source_attributions["+strconv.Itoa(k)+"].relevance_score")
		used = used || f.counts()
	}
	for _, d := range []struct{ name, digest string }{
		{"inputs_digest", s.InputsDigest}, {"outputs_digest", s.OutputsDigest},
	} {
		if d.digest != "" && !isDigest(d.digest) {
			c.report(
				issueDigest, "%s%s: %s, want sha256: and 64 hexadecimal digits", place, d.name,
				strconv.Quote(Excerpt(d.digest, maxShown)),
			)
		}
	}
	if used && s.NoSources {
		c.report(issueContradicted, "%sit reports that it used no sources, but lists some", place)
	}
	if !t.Finished.IsZero() && s.Started.After(t.Finished) {
		c.report(issueAfterFinish, "%sit began %s after the run had ended", place, spell(s.Started.Sub(t.Finished)))
	}
	for _, f := range s.Fed {
		if f.Start < 0 || f.End < f.Start || f.End > len(t.text()) {
			c.report(
				issueSpan, "%sit fed bytes %d to %d of an answer of %d bytes", place, f.Start, f.End,
				len(t.text()),
			)
		}
	}
}

// spell formats a duration for people, in days if it is two days or more.
func spell(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 2*day {
		return d.String()
	}
	return strconv.Itoa(int(d/day)) + " days"
}

func (c *checker) score(f *float64, place string) {
	switch {
	case f == nil:
	case !isFinite(*f):
		c.report(issueNumber, "%s: %v, want a finite number", place, *f)
	case *f < 0 || *f > 1:
		c.report(issueScore, "%s: %v is not in 0…1", place, *f)
	}
}

// digest returns the digest that a trail has in place of data that must not be kept.
func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	sum, err := hex.DecodeString(digits)
	return ok && err == nil && len(sum) == sha256.Size
}

// text returns the text of the final answer, which sentences and spans refer to.
func (t *Trail) text() string {
	if t.Final != nil {
		return t.Final.Text
	}
	return t.Answer
}

// cycle describes one of the cycles of several steps, such as "2 → 3 → 2", or returns "" if there is none.
func (t *Trail) cycle() string {
	before := t.Graph()
	_, cyclic := order(before)
	if len(cyclic) == 0 {
		return ""
	}
	in := make(map[int]bool, len(cyclic))
	for _, i := range cyclic {
		in[i] = true
	}
	// Every step that is left has one before it that is left, too, so going back comes to a step again.
	var way []int
	seen := make(map[int]int)
	for i := cyclic[0]; ; {
		if from, ok := seen[i]; ok {
			way = append(way[from:], i)
			break
		}
		seen[i] = len(way)
		way = append(way, i)
		i = before[i][slices.IndexFunc(before[i], func(b int) bool { return in[b] })]
	}
	slices.Reverse(way)
	const shown = 20
	numbers := make([]string, 0, shown+1)
	for k, i := range way {
		if k == shown {
			numbers = append(numbers, "…")
			break
		}
		numbers = append(numbers, strconv.Itoa(t.Steps[i].Number))
	}
	return strings.Join(numbers, " → ")
}
