package manifest

import "strconv"

// The conformance levels.
const (
	LevelHeader   = 1 // the header announces sources
	LevelManifest = 2 // and a manifest says where every claim stands in its sources
	LevelSigned   = 3 // and how the answer came about, and it is signed
)

// Level returns the conformance level that the manifest deserves, as its reader sees it: LevelSigned, LevelManifest or,
// if it is neither, LevelHeader; signed says whether its signature was verified. why says what is missing for the next
// level, a sentence each, which begins with the place if there is one. Whether it has what a level wants is all that is
// looked at here; whether that is true is for package verify. What the publisher promises counts nothing.
func (m *Manifest) Level(signed bool) (level int, why []string) {
	level, problems := m.level(signed)
	for _, p := range problems {
		if p.Path != "" {
			p.Detail = p.Path + ": " + p.Detail
		}
		why = append(why, p.Detail)
	}
	return level, why
}

func (m *Manifest) level(signed bool) (level int, why []Problem) {
	var chain []Problem
	for _, p := range m.Problems() {
		switch {
		case chainProblem(p.Status):
			chain = append(chain, p)
		case p.Status != StatusShort: // it weakens a claim, and is no contradiction
			why = append(why, p)
		}
	}
	for i := range m.Claims {
		for j := range m.Claims[i].Sources {
			why = append(
				why,
				missing(&m.Claims[i].Sources[j], "/claims/"+strconv.Itoa(i)+"/sources/"+strconv.Itoa(j))...)
		}
	}
	if len(why) > 0 {
		return LevelHeader, why
	}
	why = chain
	if len(m.Chain) == 0 {
		why = append(
			why, Problem{Status: adviceChain, Detail: "it has no chain: how the answer came about is not told"},
		)
	}
	if !signed {
		why = append(why, Problem{Status: "unsigned", Detail: "it is not signed, or its signature was not verified"})
	}
	if len(why) > 0 {
		return LevelManifest, why
	}
	return LevelSigned, nil
}

// missing says what a claim's source lacks for its excerpt to be found again.
func missing(s *ClaimSource, path string) []Problem {
	var list []Problem
	lacks := func(code, what string) {
		if s.Unavailable != "" {
			what += " (" + quoted(s.Unavailable) + ")"
		}
		list = append(list, Problem{Status: code, Path: path, Detail: what})
	}
	if s.Hash == "" {
		lacks(adviceHash, "it has no hash: that the source changed cannot be seen")
	}
	if s.ExcerptOffset == nil {
		lacks(adviceOffset, "it has no excerpt_offset: where the source says so is not told")
	}
	if s.Excerpt == nil && s.ExcerptHash == "" {
		lacks(adviceExcerpt, "it has neither excerpt nor excerpt_hash: what stood there cannot be checked")
	}
	return list
}
