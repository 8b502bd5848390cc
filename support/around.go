package support

const (
	// maxWhole is how many sentences a text has at most to be looked at as a whole only: one in a hundred of the fit
	// has more.
	maxWhole = 150
	// around is how many sentences of a longer passage are looked at on either side of the window.
	around = 8
)

// score returns P(supported): that of all passages together, or that of what stands around the window alone, whichever
// is greater. What a passage supports no text beside it takes away. The features are those of the score.
func (s *Scorer) score() float64 {
	score := lexicalModel().score(&s.features)
	if s.compareAlone() {
		if alone := lexicalModel().score(&s.alone.features); alone > score {
			s.features, score = s.alone.features, alone
		}
	}
	return score
}

// compareAlone compares the claim with the passages that the window stands in, long ones cut. It reports false where
// the text is short.
func (s *Scorer) compareAlone() bool {
	if len(s.holds) <= maxWhole {
		return false
	}
	if s.alone == nil {
		s.alone = new(Scorer)
	}
	ok := s.alone.compare(s.claim, s.aroundWindow())
	s.alone.claim, s.alone.passages = nil, nil
	return ok
}

// aroundWindow returns the passages that the window stands in, long ones cut, and tells s.alone what agrees there.
func (s *Scorer) aroundWindow() []*Index {
	list := make([]*Index, 0, windowLength)
	s.alone.agreed = s.alone.agreed[:0]
	base, shown := 0, 0
	for _, p := range s.passages {
		n := len(p.sentences)
		from, to := s.window.from-base, s.window.to-base
		if from < n && to > 0 {
			from, to = max(0, from-around), min(n, to+around)
			if n <= maxWhole {
				from, to = 0, n
			} else {
				p = p.cut(from, to)
			}
			for _, a := range s.agreed {
				if at := a.sentence - base; at >= from && at-from < min(to-from, len(p.sentences)) {
					s.alone.agreed = append(s.alone.agreed, agreed{a.term, shown + at - from})
				}
			}
			list = append(list, p)
			shown += len(p.sentences)
		}
		base += n
	}
	return list
}

// cut returns some sentences of x as a passage.
func (x *Index) cut(from, to int) *Index {
	return NewIndex(x.text[x.sentences[from].start:x.sentences[to-1].end])
}
