package support

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Remember returns a checker that gives equal pairs, in equal calls, the verdicts that c gave them before. It is for
// checkers whose verdicts depend on the claims, contexts and passages of a call alone, as those of [Lexical] do, and
// holds up to most verdicts, those of the latest calls. It is safe for concurrent use if c is.
func Remember(c Checker, most int) Checker {
	return &remembering{Checker: c, most: most, calls: map[[sha256.Size]byte][]Verdict{}}
}

type remembering struct {
	Checker

	most  int
	mu    sync.Mutex
	calls map[[sha256.Size]byte][]Verdict
	order [][sha256.Size]byte // of the calls, the oldest first
	held  int                 // verdicts
}

// Check implements [Checker].
func (r *remembering) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	key := sumOf(in)
	r.mu.Lock()
	known := r.calls[key]
	r.mu.Unlock()
	if known != nil {
		return slices.Clone(known), nil
	}
	verdicts, err := CheckPairs(ctx, r.Checker, in)
	if err != nil || len(in) == 0 || len(in) > r.most ||
		slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Err != nil }) {
		return verdicts, err
	}
	kept := make([]Verdict, len(verdicts))
	for i := range verdicts {
		kept[i] = verdicts[i].detached()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.calls[key]; there {
		return verdicts, nil
	}
	r.calls[key], r.order, r.held = kept, append(r.order, key), r.held+len(kept)
	for r.held > r.most {
		oldest := r.order[0]
		r.held -= len(r.calls[oldest])
		delete(r.calls, oldest)
		r.order = r.order[1:]
	}
	return verdicts, nil
}

// sumOf returns a hash of everything in pairs that the verdicts of a checker may depend on.
func sumOf(in []Pair) (sum [sha256.Size]byte) {
	h := sha256.New()
	add := func(s string) {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s)))) // never fails
		_, _ = h.Write([]byte(s))
	}
	for i := range in {
		p := &in[i]
		add(p.Claim)
		add(p.Context)
		add(strconv.Itoa(len(p.Passages)))
		for _, one := range p.Passages { // not their ids, which a checker does not read
			add(one.Text)
			add(one.Language)
		}
	}
	h.Sum(sum[:0])
	return sum
}

// detached returns a copy of v that does not hold the texts that it is about in memory.
func (v *Verdict) detached() Verdict {
	d := *v
	d.Missing = slices.Clone(d.Missing)
	for i := range d.Missing {
		d.Missing[i].Text = strings.Clone(d.Missing[i].Text)
	}
	d.Differences = slices.Clone(d.Differences)
	for i := range d.Differences {
		c := &d.Differences[i]
		c.A.Text, c.B.Text = strings.Clone(c.A.Text), strings.Clone(c.B.Text)
		c.About = slices.Clone(c.About)
		for k, word := range c.About {
			c.About[k] = strings.Clone(word)
		}
	}
	return d
}
