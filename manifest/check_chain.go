package manifest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// graph notes the steps by their numbers and outputs, of several the first, and how they lead to each other.
func (c *checker) graph() {
	c.outputs, c.step = make(map[string]int), make(map[int]int)
	chain := c.steps()
	for i := range chain {
		if _, twice := c.step[chain[i].Step]; !twice {
			c.step[chain[i].Step] = i
		}
		if _, twice := c.outputs[chain[i].OutputsRef]; !twice {
			c.outputs[chain[i].OutputsRef] = i
		}
	}
	c.ways(chain)
}

// steps returns the chain, as far as a manifest that was parsed has one.
func (c *checker) steps() []Step { return c.m.Chain[:min(len(c.m.Chain), MaxSteps)] }

// chain checks the steps by themselves: each follows only from steps with smaller numbers, so there are no cycles.
func (c *checker) chain() {
	chain := c.steps()
	for i := range chain {
		s := &chain[i]
		path := "/chain/" + strconv.Itoa(i)
		if c.step[s.Step] != i {
			c.add(StatusChain, path+"/step", "another step has this number: "+strconv.Itoa(s.Step))
		}
		if c.outputs[s.OutputsRef] != i {
			c.add(
				StatusChain, path+"/outputs_ref",
				"another step has this output, so it is ambiguous: "+quoted(s.OutputsRef),
			)
		}
		c.stepFacts(path, s)
		path += "/inputs_ref"
		for _, ref := range s.InputsRef {
			from, known := c.outputs[ref]
			switch {
			case !known:
				c.add(StatusChain, path, "no step has this output: "+quoted(ref))
			case chain[from].Step >= s.Step:
				c.add(StatusChain, path, "it follows from "+quoted(ref)+", the output of a step that is not before it")
			}
		}
	}
}

func (c *checker) stepFacts(path string, s *Step) {
	c.hash(path+"/inputs_hash", s.InputsHash, "hmac-sha256")
	c.hash(path+"/outputs_hash", s.OutputsHash, "hmac-sha256")
	c.order(path+"/ended_at", s.StartedAt, s.EndedAt, "it ended before it started")
	c.order(path+"/ended_at", s.EndedAt, c.m.EmittedAt, "it ended after the manifest was emitted")
	if s.EndedAt == "" {
		c.order(path+"/started_at", s.StartedAt, c.m.EmittedAt, "it started after the manifest was emitted")
	}
	for j, source := range s.Sources {
		if len(c.m.Sources) > 0 && c.source[source] == nil && !c.urls[source] {
			c.wrong(path+"/sources/"+strconv.Itoa(j), "the manifest's sources do not have this one: "+quoted(source))
		}
	}
}

// steps is a set of steps by their index in the chain.
type steps [MaxSteps / 64]uint64

func (s *steps) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s *steps) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s *steps) union(other *steps) {
	for i := range s {
		s[i] |= other[i]
	}
}

// ways finds the steps that led to each step, itself among them, and which steps have which source. A manifest of a
// megabyte must not take longer than its reading, so each edge is followed once and not once for each claim.
func (c *checker) ways(chain []Step) {
	c.before, c.with, c.withURL = make([]steps, len(chain)), make(map[string][]int), make(map[string][]int)
	order := make([]int, len(chain))
	for i := range chain {
		order[i] = i
		for _, source := range chain[i].Sources {
			note(c.with, source, i)
			note(c.withURL, source, i)
			if of := c.source[source]; of != nil {
				note(c.withURL, of.URL, i)
				note(c.withURL, of.OriginalURL, i)
				note(c.withURL, of.FinalURL, i)
			}
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(chain[a].Step, chain[b].Step) })
	for _, i := range order {
		c.before[i].add(i)
		for _, ref := range chain[i].InputsRef {
			if from, known := c.outputs[ref]; known && chain[from].Step < chain[i].Step {
				c.before[i].union(&c.before[from])
			}
		}
	}
}

// reached returns the steps that led to a claim. whole is false if the claim names steps that are not there: what else
// it rests on is unknown then. A claim that names no steps may rest on each.
func (c *checker) reached(path string, claim *Claim) (reached steps, whole bool) {
	if len(claim.Steps) == 0 {
		for i := range c.before {
			reached.add(i)
		}
		return reached, true
	}
	whole = true
	for j, number := range claim.Steps {
		if i, known := c.step[number]; known {
			reached.union(&c.before[i])
			continue
		}
		c.add(StatusChain, path+"/steps/"+strconv.Itoa(j), "the chain has no step "+strconv.Itoa(number))
		whole = false
	}
	return reached, whole
}

// note notes that the step at i has a source of that name.
func note(with map[string][]int, name string, i int) {
	if have := with[name]; len(have) == 0 || have[len(have)-1] != i {
		with[name] = append(have, i)
	}
}

// among reports whether one of the steps has a claim's source: itself, if the claim says which it is, else any of its
// URL.
func (c *checker) among(reached *steps, s *ClaimSource) bool {
	with, names := c.withURL, []string{s.URL, s.OriginalURL}
	if of := c.source[s.Source]; of != nil {
		with, names = c.with, []string{of.ID, of.URL, of.OriginalURL, of.FinalURL}
	}
	for _, name := range names {
		if name != "" && slices.ContainsFunc(with[name], reached.has) {
			return true
		}
	}
	return false
}

// chainProblem reports whether a status word is about the chain alone.
func chainProblem(status string) bool { return strings.HasPrefix(status, "chain-") }
