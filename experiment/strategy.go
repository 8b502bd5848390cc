package experiment

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// The scorers, which choose the passages that a checker is asked about.
const (
	ScorerRetriever = "retriever" // the retriever's own scores; passages without one come last
	ScorerBM25      = "bm25"      // BM25, for the words of each sentence
)

// CheckerLexical is the built-in checker. Others are configured by name.
const CheckerLexical = "lexical"

// maxSentenceCitations is the maximum of PerSentence.
const maxSentenceCitations = 10

// Strategy is a way of attributing answers to sources. A strategy that changes needs a new version, since runs record
// its [Strategy.ID].
type Strategy struct {
	Name    string `json:"name"`    // lower-case letters, digits and hyphens
	Version int    `json:"version"` // from 1
	// PostHoc gives sentences without a citation one, if a passage supports them.
	PostHoc bool `json:"post_hoc"`
	// Threshold is the closeness, above 0 and at most 1, from which a passage is cited post hoc. Without PostHoc it
	// is ignored.
	Threshold float64 `json:"threshold"`
	// PerSentence is the maximum number of citations that a sentence is given; 0 means 2.
	PerSentence int    `json:"per_sentence,omitempty"`
	Scorer      string `json:"scorer"`  // ScorerRetriever or ScorerBM25
	Checker     string `json:"checker"` // CheckerLexical, or the name of a configured one
}

// Builtin returns the strategies that need no configuration:
//
//   - provider@1 uses the provider's citations, and adds none;
//   - balanced@2 also cites passages, with a closeness of at least 0.35, for sentences without citations;
//   - strict@2 does so with at least 0.5.
func Builtin() []Strategy {
	return []Strategy{
		{Name: "provider", Version: 1, Scorer: ScorerRetriever, Checker: CheckerLexical},
		{
			Name:        "balanced",
			Version:     2,
			PostHoc:     true,
			Threshold:   support.Balanced,
			PerSentence: 2,
			Scorer:      ScorerBM25,
			Checker:     CheckerLexical,
		},
		{
			Name:        "strict",
			Version:     2,
			PostHoc:     true,
			Threshold:   support.Strict,
			PerSentence: 2,
			Scorer:      ScorerBM25,
			Checker:     CheckerLexical,
		},
	}
}

// ID returns the name and the version: "balanced@2".
func (s *Strategy) ID() string { return s.Name + "@" + strconv.Itoa(s.Version) }

// Check validates a strategy, such as one from a configuration file.
func (s *Strategy) Check() error {
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`).MatchString(s.Name):
		return fmt.Errorf(
			"strategy %q: a name is up to 64 lower-case letters, digits and hyphens, beginning with a letter", s.Name,
		)
	case s.Version < 1:
		return fmt.Errorf("strategy %s: versions count from 1, not %d", s.Name, s.Version)
	case s.PostHoc && !(s.Threshold > 0 && s.Threshold <= 1):
		return fmt.Errorf("strategy %s: the threshold is a closeness over 0 and up to 1, not %v", s.Name, s.Threshold)
	case s.PerSentence < 0 || s.PerSentence > maxSentenceCitations:
		return fmt.Errorf(
			"strategy %s: per_sentence is from 0 to %d, not %d", s.Name, maxSentenceCitations, s.PerSentence,
		)
	case s.Scorer != ScorerRetriever && s.Scorer != ScorerBM25:
		return fmt.Errorf("strategy %s: the scorer is %s or %s, not %q", s.Name, ScorerRetriever, ScorerBM25, s.Scorer)
	case s.Checker == "":
		return fmt.Errorf("strategy %s: it names no checker", s.Name)
	}
	return nil
}

// Find returns the strategy in list with the given name: "balanced@2", or "balanced" for its highest version.
func Find(list []Strategy, name string) (Strategy, error) {
	bare, version, exact := strings.Cut(name, "@")
	var found *Strategy
	for i := range list {
		s := &list[i]
		if s.Name == bare && (!exact || version == strconv.Itoa(s.Version)) &&
			(found == nil || found.Version < s.Version) {
			found = s
		}
	}
	if found == nil {
		ids := make([]string, 0, len(list))
		for i := range list {
			ids = append(ids, list[i].ID())
		}
		slices.Sort(ids)
		return Strategy{}, fmt.Errorf("there is no strategy %q, only %s", name, strings.Join(ids, ", "))
	}
	return *found, nil
}

// Split divides live traffic between two strategies. It must not change while it is in use.
type Split struct {
	Name string   // of the experiment; another name divides the runs differently
	A, B Strategy // A is the existing strategy
	// Share is the fraction of the runs that B gets, from 0 to 1.
	Share float64
}

// Check validates a split, such as one from a configuration file.
func (s *Split) Check() error {
	switch {
	case s.Name == "":
		return errors.New("the experiment has no name")
	case math.IsNaN(s.Share) || s.Share < 0 || s.Share > 1:
		return fmt.Errorf("experiment %s: the share is from 0 to 1, not %v", s.Name, s.Share)
	case s.A.ID() == s.B.ID():
		return fmt.Errorf("experiment %s: both sides are %s", s.Name, s.A.ID())
	}
	return errors.Join(s.A.Check(), s.B.Check())
}

// Choose returns the strategy of a run. It depends only on the names of the experiment and the run: if the first 53
// bits of the SHA-256 of both, divided by 2^53, are below Share, it is B.
func (s *Split) Choose(run string) *Strategy {
	sum := sha256.Sum256([]byte(s.Name + "\x00" + run))
	if at := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53); at < s.Share {
		return &s.B
	}
	return &s.A
}

// Link returns the strategy's options for [trail.Trail.Link], which also needs the strategy's checker.
func (s *Strategy) Link() *trail.LinkOptions {
	return &trail.LinkOptions{
		Threshold:   s.Threshold,
		PerSentence: s.PerSentence,
		NoInference: !s.PostHoc,
		ByScore:     s.Scorer == ScorerRetriever,
	}
}
