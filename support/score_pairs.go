package support

import (
	"cmp"
	"slices"
)

// follower is the second of two neighbours, by its slot in a passage.
type follower struct {
	slot uint32
	pair int32 // index of the two
}

// comparePairs returns the share of the claim's neighbours that are neighbours in a passage too, by weight. It looks at
// each place of a term once, however many neighbours the term has.
func (s *Scorer) comparePairs() float64 {
	c := s.claim
	var got, all float64
	var to int
	for from := 0; from < len(c.pairs); from = to {
		for to = from; to < len(c.pairs) && c.pairs[to].first == c.pairs[from].first; to++ {
			all += s.pairWeight(to)
		}
		if s.counts[c.pairs[from].first] > 0 {
			got += s.heldPairs(from, to)
		}
	}
	if all == 0 {
		return s.held() / c.total
	}
	return got / all
}

func (s *Scorer) pairWeight(n int) float64 {
	p := &s.claim.pairs[n]
	return float64(p.times) * (s.claim.terms[p.first].weight + s.claim.terms[p.second].weight)
}

// heldPairs returns the weight of those of some pairs with one first term that are neighbours in a passage.
func (s *Scorer) heldPairs(from, to int) float64 {
	pairs, n := s.claim.pairs[from:to], len(s.claim.terms)
	s.pairHeld = zeroed(s.pairHeld, len(pairs))
	left := len(pairs)
	for i, p := range s.passages {
		s.followers = s.followers[:0]
		for k := range pairs {
			if slot := s.slots[i*n+int(pairs[k].second)]; !s.pairHeld[k] && len(p.at(slot)) > 0 {
				s.followers = append(s.followers, follower{slot, int32(k)})
			}
		}
		if len(s.followers) > 0 {
			left -= s.follow(p, p.at(s.slots[i*n+int(pairs[0].first)]))
		}
		if left == 0 {
			break
		}
	}
	sum := 0.0
	for k := range pairs {
		if s.pairHeld[k] || s.pairAgrees(&pairs[k]) {
			sum += s.pairWeight(from + k)
		}
	}
	return sum
}

// follow looks for the followers behind the places of a term, and returns how many it found.
func (s *Scorer) follow(p *Index, places []uint32) int {
	if len(s.followers) > 1 {
		slices.SortFunc(s.followers, func(a, b follower) int { return cmp.Compare(a.slot, b.slot) })
	}
	found := 0
	for _, at := range places {
		slot := p.follow[at]
		if len(s.followers) == 1 {
			if slot != s.followers[0].slot {
				continue
			}
			s.pairHeld[s.followers[0].pair] = true
			return 1
		}
		k, ok := slices.BinarySearchFunc(
			s.followers, slot,
			func(f follower, slot uint32) int { return cmp.Compare(f.slot, slot) },
		)
		if !ok || s.pairHeld[s.followers[k].pair] {
			continue
		}
		s.pairHeld[s.followers[k].pair] = true
		if found++; found == len(s.followers) {
			break
		}
	}
	return found
}

// pairAgrees reports whether one of two neighbours stands in another form in a sentence that has the other one.
func (s *Scorer) pairAgrees(pair *neighbours) bool {
	for _, a := range s.agreed {
		if a.term == pair.first && s.stands(pair.second, a.sentence) ||
			a.term == pair.second && s.stands(pair.first, a.sentence) {
			return true
		}
	}
	return false
}
