package experiment

import "github.com/ibidhq/ibid/trail"

// Link returns how a trail is linked by the strategy, whose checker is to be handed to [trail.Trail.Link] beside it.
func (s *Strategy) Link() *trail.LinkOptions {
	return &trail.LinkOptions{
		Threshold:   s.Threshold,
		PerSentence: s.PerSentence,
		NoInference: !s.PostHoc,
		ByScore:     s.Scorer == ScorerRetriever,
	}
}
