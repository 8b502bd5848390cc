package otel

import "strings"

// patterns finds many texts in another one, in time that does not depend on how many there are.
type patterns struct {
	sizes []patternsOfSize // by the length of the windows that are looked up, the longest first
}

// patternsOfSize are the texts that begin with a window of a size.
type patternsOfSize struct {
	size  int
	bloom []uint64
	at    map[uint64][]string // by the hash of their window
}

// windows are the lengths of the windows. A shorter text is searched for by itself.
var windows = []int{24, 8, 1}

const (
	bloomBits = 1 << 20
	hashBase  = 0x9E3779B97F4A7C15
)

func hashOf(s string) (h uint64) {
	for i := range len(s) {
		h = h*hashBase + uint64(s[i]) + 1
	}
	return h
}

func bloomBit(h uint64) (word int, bit uint64) {
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	n := h >> (64 - 20)
	return int(n / 64), 1 << (n % 64)
}

// newPatterns returns the patterns of texts, which are not empty.
func newPatterns(texts []string) *patterns {
	p := &patterns{}
	for _, size := range windows {
		p.sizes = append(p.sizes, patternsOfSize{size: size, at: map[uint64][]string{}})
	}
	for _, s := range texts {
		for k := range p.sizes {
			of := &p.sizes[k]
			if len(s) < of.size {
				continue
			}
			if of.bloom == nil {
				of.bloom = make([]uint64, bloomBits/64)
			}
			h := hashOf(s[:of.size])
			word, bit := bloomBit(h)
			of.bloom[word] |= bit
			of.at[h] = append(of.at[h], s)
			break
		}
	}
	return p
}

// in calls found for each text that is in s, at each of its places. left is how many bytes may be searched and
// compared, and returned as what is left of them.
func (p *patterns) in(s string, left int, found func(text string, at int)) int {
	for k := range p.sizes {
		of := &p.sizes[k]
		if of.bloom == nil || len(s) < of.size {
			continue
		}
		left -= len(s)
		top := uint64(1) // hashBase to the power of the window's length
		for range of.size {
			top *= hashBase
		}
		h := hashOf(s[:of.size])
		for end := of.size; ; end++ {
			if word, bit := bloomBit(h); of.bloom[word]&bit != 0 {
				for _, text := range of.at[h] {
					if left -= len(text); left < 0 {
						return left
					}
					if strings.HasPrefix(s[end-of.size:], text) {
						found(text, end-of.size)
					}
				}
			}
			if end == len(s) {
				break
			}
			h = h*hashBase + uint64(s[end]) + 1 - top*(uint64(s[end-of.size])+1)
		}
	}
	return left
}
