package manifest

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/snapshot"
)

// The statuses of what can be wrong with a manifest by itself.
const (
	statusMalformed    = "manifest-malformed"
	statusVersion      = "version-unsupported"
	statusInconsistent = "manifest-inconsistent"
	statusAlgorithm    = "algorithm-unsupported"
	statusChain        = "chain-invalid"
	statusGap          = "chain-gap"
	statusShort        = "excerpt-too-short"
)

// maxProblems is how many problems with each status are reported for one manifest, so that many of one kind do not hide
// others.
const maxProblems = 1024

// Problem is a contradiction in a manifest.
type Problem struct {
	Status string `json:"status"` // one of the statuses
	Path   string `json:"path"`   // JSON pointer to the wrong member
	Detail string `json:"detail"` // a plain sentence
}

// Problems returns all inconsistencies of a manifest that Parse accepts: those of the manifest's own members first,
// then of its sources, its claims and its chain; at most 1024 for each status. It returns nil if there are none. It
// looks at nothing but the manifest.
func (m *Manifest) Problems() []Problem {
	c := &checker{m: m, steps: m.Chain[:min(len(m.Chain), maxSteps)], counts: make(map[string]int)}
	c.order("/expires_at", m.EmittedAt, m.ExpiresAt, "it expires before it was emitted")
	if m.Supersedes != "" && m.Supersedes == m.Self {
		c.inconsistent("/supersedes", "it supersedes itself")
	}
	if m.Output != nil {
		c.hash("/output/hash", m.Output.Hash)
		c.hash("/output/text_hash", m.Output.TextHash)
	}
	c.sources()
	c.indexSteps()
	c.claims()
	c.chain()
	return c.problems
}

// withoutFragment returns a URL without its fragment, as the header announces it.
func withoutFragment(url string) string {
	url, _, _ = strings.Cut(url, "#")
	return url
}

type checker struct {
	m        *Manifest
	steps    []Step // the chain, up to the limit
	problems []Problem
	counts   map[string]int // by status

	source  map[string]*Source // by id
	urls    map[string]bool    // all URLs of all sources
	outputs map[string]int     // of steps: index in the chain
	step    map[int]int        // index in the chain, by number
	before  []big.Int          // by index in the chain: the set of steps that led to each
	with    map[string][]int   // indexes in the chain of the steps that have a source, by the name that they use
	withURL map[string][]int   // the same, also by all URLs of the source
}

func (c *checker) add(status, path, detail string) {
	if c.counts[status]++; c.counts[status] > maxProblems {
		return
	}
	c.problems = append(c.problems, Problem{Status: status, Path: path, Detail: detail})
}

func (c *checker) inconsistent(path, detail string) { c.add(statusInconsistent, path, detail) }

// hash reports a hash with an algorithm that this version does not have.
func (c *checker) hash(path, hash string, algorithms ...string) {
	algorithm, _, _ := strings.Cut(hash, ":")
	if hash != "" && !slices.Contains(append(algorithms, "sha256"), algorithm) {
		c.add(statusAlgorithm, path, "the algorithm "+quoted(algorithm)+" is not part of this version of the format")
	}
}

// order reports a time that is later than limit.
func (c *checker) order(path string, at, limit Time, what string) {
	if at != "" && limit != "" && at.Time().After(limit.Time()) {
		c.inconsistent(path, what)
	}
}

func (c *checker) sources() {
	c.source, c.urls = make(map[string]*Source), make(map[string]bool)
	cited := make(map[string]bool)
	for i := range c.m.Claims {
		for k := range c.m.Claims[i].Sources {
			cited[c.m.Claims[i].Sources[k].Source] = true
		}
	}
	for i := range c.m.Sources {
		s := &c.m.Sources[i]
		path := "/sources/" + strconv.Itoa(i)
		if c.source[s.ID] != nil {
			c.inconsistent(path+"/id", "another source has this id: "+s.ID)
		} else {
			c.source[s.ID] = s
			if s.Cited != nil && !*s.Cited && cited[s.ID] {
				c.inconsistent(path+"/cited", "it says that no claim cites this source, but one does")
			}
		}
		for _, url := range []string{s.URL, s.OriginalURL, s.FinalURL} {
			c.urls[url] = true
		}
		c.order(path+"/retrieved_at", s.RetrievedAt, c.m.EmittedAt, "it was read after the manifest was emitted")
		c.hash(path+"/hash", s.Hash)
		c.hash(path+"/text_hash", s.TextHash)
	}
}

func (c *checker) claims() {
	ids := make(map[string]bool)
	for i := range c.m.Claims {
		claim := &c.m.Claims[i]
		path := "/claims/" + strconv.Itoa(i)
		if ids[claim.ID] {
			c.inconsistent(path+"/claim_id", "another claim has this id: "+claim.ID)
		}
		ids[claim.ID] = true
		c.span(path+"/span", claim)
		if claim.ConfidenceScore != nil && claim.Confidence != "" {
			if word := confidence(*claim.ConfidenceScore); word != claim.Confidence {
				c.inconsistent(path+"/confidence_score",
					"this score means "+word+", but the claim's confidence is "+claim.Confidence)
			}
		}
		reached, whole := c.reached(path, claim)
		for j := range claim.Sources {
			s := &claim.Sources[j]
			path := path + "/sources/" + strconv.Itoa(j)
			c.copies(path, s)
			c.excerpt(path, s)
			if whole && len(c.m.Chain) > 0 && !c.hasSource(reached, s) {
				c.add(statusGap, path, "no step that led to the claim has this source: "+quoted(s.URL))
			}
		}
	}
}

func (c *checker) span(path string, claim *Claim) {
	if claim.Span == nil {
		return
	}
	start, end := claim.Span[0], claim.Span[1]
	output := c.m.Output
	switch length := utf8.RuneCountInString(snapshot.Normalize(claim.Text)); {
	case start >= end:
		c.inconsistent(path, "it is empty: a span ends after its start")
	case output != nil && output.TextLength != nil && end > *output.TextLength:
		c.inconsistent(path, "it ends beyond the answer's text, which has "+plural(*output.TextLength, "code point"))
	case !claim.Rewritten && end-start != length:
		c.inconsistent(path, "it has "+plural(end-start, "code point")+" and the claim's text "+strconv.Itoa(length)+
			", so they are not the same words, and the claim does not say that it is rewritten")
	}
}

// confidence returns the word for a score.
func confidence(score float64) string {
	switch {
	case score >= 0.8:
		return ConfidenceHigh
	case score >= 0.5:
		return ConfidenceMedium
	}
	return ConfidenceLow
}

// copies compares the members that a claim repeats of a source with those of the source.
func (c *checker) copies(path string, s *ClaimSource) {
	if len(c.m.Sources) == 0 && s.Source == "" {
		return
	}
	of := c.source[s.Source]
	switch {
	case s.Source != "" && of == nil:
		c.inconsistent(path+"/source", "no source has this id: "+s.Source)
	case of == nil && !c.urls[s.URL]:
		c.inconsistent(path+"/url", "the manifest's sources do not have this one: "+quoted(s.URL))
	}
	if of == nil {
		if of = c.byURL(s); of == nil {
			return
		}
	}
	for _, m := range []struct{ name, here, there string }{
		{"url", s.URL, of.URL},
		{"original_url", s.OriginalURL, of.OriginalURL},
		{"hash", s.Hash, of.Hash},
	} {
		if m.here != m.there && m.here != "" && m.there != "" {
			c.inconsistent(path+"/"+m.name, "it differs from that of source "+of.ID)
		}
	}
	if !s.RetrievedAt.Time().Equal(of.RetrievedAt.Time()) {
		c.inconsistent(path+"/retrieved_at", "it differs from that of source "+of.ID)
	}
}

// byURL returns the source that a claim names by its URL, preferably one that it agrees with, or nil if there is none.
func (c *checker) byURL(s *ClaimSource) *Source {
	var of *Source
	for i := range c.m.Sources {
		at := &c.m.Sources[i]
		if s.URL == "" || s.URL != at.URL && s.URL != at.OriginalURL {
			continue
		}
		if of == nil || s.Hash == at.Hash && s.RetrievedAt.Time().Equal(at.RetrievedAt.Time()) {
			of = at
		}
	}
	return of
}

func (c *checker) excerpt(path string, s *ClaimSource) {
	c.order(path+"/retrieved_at", s.RetrievedAt, c.m.EmittedAt, "it was read after the manifest was emitted")
	c.hash(path+"/hash", s.Hash)
	c.hash(path+"/excerpt_hash", s.ExcerptHash)
	length := 0
	if s.Excerpt != nil {
		exact := s.Excerpt.Exact
		length = utf8.RuneCountInString(exact)
		if snapshot.ShortExcerpt(exact) {
			c.add(statusShort, path+"/excerpt/exact",
				"it is too short to mean anything: fewer than 16 code points and fewer than 3 words")
		}
		if strings.HasPrefix(s.ExcerptHash, "sha256:") && s.ExcerptHash != snapshot.Hash([]byte(exact)) {
			c.inconsistent(path+"/excerpt_hash", "it is not the hash of the excerpt")
		}
	}
	if s.ExcerptOffset == nil {
		return
	}
	start, end := s.ExcerptOffset[0], s.ExcerptOffset[1]
	of := c.source[s.Source]
	profiled := Profiled(c.m.TextProfile) // otherwise the unit of offsets is unknown
	switch path += "/excerpt_offset"; {
	case start >= end:
		c.inconsistent(path, "it is empty: an excerpt ends after its start")
	case profiled && of != nil && of.TextLength != nil && end > *of.TextLength:
		c.inconsistent(path, "it ends beyond the source's text, which has "+plural(*of.TextLength, "code point"))
	case profiled && length > 0 && end-start != length:
		c.inconsistent(path, "it has "+plural(end-start, "code point")+" and the excerpt "+strconv.Itoa(length))
	}
}

// indexSteps indexes the steps by number and output (the first of several), the steps that led to each, itself
// included, and the steps that have each source. It follows each edge once, not once per claim, so that a manifest of a
// megabyte takes no longer to check than to read.
func (c *checker) indexSteps() {
	c.outputs, c.step = make(map[string]int), make(map[int]int)
	chain := c.steps
	for i := range chain {
		if _, twice := c.step[chain[i].Step]; !twice {
			c.step[chain[i].Step] = i
		}
		if _, twice := c.outputs[chain[i].OutputsRef]; !twice {
			c.outputs[chain[i].OutputsRef] = i
		}
	}
	c.before, c.with, c.withURL = make([]big.Int, len(chain)), make(map[string][]int), make(map[string][]int)
	note := func(with map[string][]int, i int, names ...string) {
		for _, name := range names {
			if have := with[name]; len(have) == 0 || have[len(have)-1] != i {
				with[name] = append(have, i)
			}
		}
	}
	order := make([]int, len(chain))
	for i := range chain {
		order[i] = i
		for _, source := range chain[i].Sources {
			note(c.with, i, source)
			note(c.withURL, i, source)
			if of := c.source[source]; of != nil {
				note(c.withURL, i, of.URL, of.OriginalURL, of.FinalURL)
			}
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(chain[a].Step, chain[b].Step) })
	for _, i := range order {
		before := &c.before[i]
		before.SetBit(before, i, 1)
		for _, ref := range chain[i].InputsRef {
			if from, known := c.outputs[ref]; known && chain[from].Step < chain[i].Step {
				before.Or(before, &c.before[from])
			}
		}
	}
}

// chain checks the steps by themselves: each builds only on steps with smaller numbers, so there are no cycles.
func (c *checker) chain() {
	chain := c.steps
	for i := range chain {
		s := &chain[i]
		path := "/chain/" + strconv.Itoa(i)
		if c.step[s.Step] != i {
			c.add(statusChain, path+"/step", "another step has this number: "+strconv.Itoa(s.Step))
		}
		if c.outputs[s.OutputsRef] != i {
			c.add(statusChain, path+"/outputs_ref",
				"another step has this output, so it is ambiguous: "+quoted(s.OutputsRef))
		}
		c.hash(path+"/inputs_hash", s.InputsHash, "hmac-sha256")
		c.hash(path+"/outputs_hash", s.OutputsHash, "hmac-sha256")
		c.order(path+"/ended_at", s.StartedAt, s.EndedAt, "it ended before it started")
		c.order(path+"/ended_at", s.EndedAt, c.m.EmittedAt, "it ended after the manifest was emitted")
		if s.EndedAt == "" {
			c.order(path+"/started_at", s.StartedAt, c.m.EmittedAt, "it started after the manifest was emitted")
		}
		for j, source := range s.Sources {
			if len(c.m.Sources) > 0 && c.source[source] == nil && !c.urls[source] {
				c.inconsistent(path+"/sources/"+strconv.Itoa(j),
					"the manifest's sources do not have this one: "+quoted(source))
			}
		}
		path += "/inputs_ref"
		for _, ref := range s.InputsRef {
			from, known := c.outputs[ref]
			switch {
			case !known:
				c.add(statusChain, path, "no step has this output: "+quoted(ref))
			case chain[from].Step >= s.Step:
				c.add(statusChain, path, "it builds on "+quoted(ref)+", the output of a step that is not before it")
			}
		}
	}
}

// reached returns the steps that led to a claim. whole is false if the claim names steps that do not exist, so that its
// other steps are unknown. A claim that names no steps may rest on all.
func (c *checker) reached(path string, claim *Claim) (reached *big.Int, whole bool) {
	reached, whole = new(big.Int), true
	if len(claim.Steps) == 0 {
		for i := range c.before {
			reached.SetBit(reached, i, 1)
		}
		return reached, true
	}
	for j, number := range claim.Steps {
		if i, known := c.step[number]; known {
			reached.Or(reached, &c.before[i])
			continue
		}
		c.add(statusChain, path+"/steps/"+strconv.Itoa(j), "the chain has no step "+strconv.Itoa(number))
		whole = false
	}
	return reached, whole
}

// hasSource reports whether one of the steps has a claim's source: that source itself if the claim names it by id,
// otherwise any with its URL.
func (c *checker) hasSource(reached *big.Int, s *ClaimSource) bool {
	with, names := c.withURL, []string{s.URL, s.OriginalURL}
	if of := c.source[s.Source]; of != nil {
		with, names = c.with, []string{of.ID, of.URL, of.OriginalURL, of.FinalURL}
	}
	for _, name := range names {
		if name != "" && slices.ContainsFunc(with[name], func(i int) bool { return reached.Bit(i) == 1 }) {
			return true
		}
	}
	return false
}

// Level returns the conformance level of the manifest as its reader sees it: 3, a signed manifest that shows how the
// answer came about; 2, one that shows where in its sources every claim is; or else 1. signed tells whether its
// signature was verified. why lists what is missing for the next level, a sentence each, beginning with the place if
// there is one. Level only checks that the required members are there; whether they are true is for package verify to
// find out. What the publisher promises does not count.
func (m *Manifest) Level(signed bool) (level int, why []string) {
	var problems, chain []Problem
	for _, p := range m.Problems() {
		switch {
		case strings.HasPrefix(p.Status, "chain-"):
			chain = append(chain, p)
		case p.Status != statusShort: // it weakens a claim, but is no contradiction
			problems = append(problems, p)
		}
	}
	for i := range m.Claims {
		for j := range m.Claims[i].Sources {
			path := "/claims/" + strconv.Itoa(i) + "/sources/" + strconv.Itoa(j)
			s := &m.Claims[i].Sources[j]
			for _, p := range missing(s, path) {
				// the text in that place of the source with that hash is the excerpt
				if p.Status != "no-excerpt" || s.Hash == "" || s.ExcerptOffset == nil {
					problems = append(problems, p)
				}
			}
		}
	}
	if len(m.Chain) == 0 {
		chain = append(chain, Problem{Detail: "it has no chain, which shows how the answer came about"})
	}
	if !signed {
		chain = append(chain, Problem{Detail: "it is not signed, or its signature was not verified"})
	}
	level = 3
	switch {
	case len(problems) > 0:
		level = 1
	case len(chain) > 0:
		level, problems = 2, chain
	}
	for _, p := range problems {
		if p.Path != "" {
			p.Detail = p.Path + ": " + p.Detail
		}
		why = append(why, p.Detail)
	}
	return level, why
}

// missing returns what a claim's source lacks for its excerpt to be found again.
func missing(s *ClaimSource, path string) []Problem {
	var list []Problem
	lacks := func(code, what string) {
		if s.Unavailable != "" {
			what += " (" + quoted(s.Unavailable) + ")"
		}
		list = append(list, Problem{Status: code, Path: path, Detail: what})
	}
	if s.Hash == "" {
		lacks("no-hash", "it has no hash, so changes of the source go unnoticed")
	}
	if s.ExcerptOffset == nil {
		lacks("no-offset", "it has no excerpt_offset, so the place in the source is unknown")
	}
	if s.Excerpt == nil && s.ExcerptHash == "" {
		lacks(
			"no-excerpt",
			"it has neither excerpt nor excerpt_hash, so once the source changes, its words are unknown",
		)
	}
	return list
}
