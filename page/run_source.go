package page

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// documentView is a document of a run.
type documentView struct {
	N         int // from 1
	ID        string
	Title     string
	Site      string
	URL       string // where it can be opened; empty: nowhere
	Uses      string // the address of the page with all that uses it
	Primary   bool
	Unused    bool
	Shown     bool   // the page has it; if not, only its number and its title
	Relevance string // empty: nobody said it
	Origin    string // who said it, in words
	Overlap   string
	Usage     string
	Version   string
	Quality   *qualityView
	Steps     []stepRef
	Passages  []*passageView
	More      int // passages that are not shown
	others    []string
}

// passageView is a passage of a document.
type passageView struct {
	N         int // in the run, from 1; 0: it is not shown
	Words     string
	Where     string // chunk and page, in words
	Relevance string
	Origin    string
	Steps     []stepRef
	Sentences []int // that rest on it
	Choose    string
	Chosen    bool
	Related   bool

	StepList string // the numbers of its steps, for scripts
	chunk    *int
	steps    []int
}

// qualityView is what is known of a document as a source.
type qualityView struct {
	Score string // empty: nothing is known
	Known string // the share of what could be known
	Parts []qualityPart
}

type qualityPart struct{ Name, Value, Why string }

// addDocuments numbers the documents, and their passages, in the order of the summary.
func (p *runPage) addDocuments() {
	b, s := p.body, p.s
	primary := map[string]bool{}
	for i := range s.Primary {
		primary[s.Primary[i].DocumentID] = true
	}
	b.Counts.Steps, b.Counts.Sources, b.Counts.Primary, b.Counts.Retrieved = len(
		s.Steps,
	), len(
		s.Sources,
	), len(
		s.Primary,
	), len(
		s.Unused,
	)
	for i := range s.Steps {
		if len(s.Steps[i].Documents) == 0 {
			b.Counts.Without++
		}
	}
	shown := p.shownDocuments(primary)
	for i := range s.Sources {
		d := p.document(&s.Sources[i], shown)
		if d.Primary = primary[d.ID]; d.Shown {
			b.Sources = append(b.Sources, d)
		}
	}
	for i := range s.Unused {
		d := p.document(&s.Unused[i], shown)
		if d.Unused = true; d.Shown {
			b.Unused = append(b.Unused, d)
		}
	}
	b.Others = len(s.Sources) + len(s.Unused) - len(b.Sources) - len(b.Unused)
}

// shownDocuments chooses the documents that the page has: the primary ones, those of the steps on this page, then the
// most relevant.
func (p *runPage) shownDocuments(primary map[string]bool) map[string]bool {
	s := p.s
	here := map[int]bool{}
	for i := p.from; i < min(p.from+maxShownSteps, len(s.Run.Steps)); i++ {
		here[s.Run.Steps[i].Number] = true
	}
	isHere := func(n int) bool { return here[n] }
	shown := map[string]bool{}
	for _, pick := range []func(*trail.SummarySource) bool{
		func(f *trail.SummarySource) bool { return primary[f.DocumentID] },
		func(f *trail.SummarySource) bool { return slices.ContainsFunc(f.Steps, isHere) },
		func(*trail.SummarySource) bool { return true },
	} {
		for _, list := range [][]trail.SummarySource{s.Sources, s.Unused} {
			for i := range list {
				if len(shown) < maxShownDocuments && pick(&list[i]) {
					shown[list[i].DocumentID] = true
				}
			}
		}
	}
	return shown
}

func (p *runPage) document(f *trail.SummarySource, shown map[string]bool) *documentView {
	p.counted++
	d := &documentView{
		N:         p.counted,
		ID:        f.DocumentID,
		Title:     documentTitle(f.Title, f.DocumentID),
		URL:       webAddress(f.URL),
		Shown:     shown[f.DocumentID],
		Relevance: score(f.Relevance),
		Origin:    originWords(f.Origin),
		Overlap:   score(f.Overlap),
		Usage:     score(f.Usage),
		Version:   f.Version,
		Quality:   qualityOf(f.Quality),
		Steps:     p.refs(f.Steps),
		others:    f.OtherIDs,
	}
	d.Site = siteOf(&ibid.Source{URL: f.URL})
	if f.Key != "" {
		d.Uses = usesURL(f.Key)
	}
	for i := range f.Passages {
		if !d.Shown || i == maxShownPassages {
			d.More = len(f.Passages) - len(d.Passages)
			break
		}
		p.passed++
		from := &f.Passages[i]
		v := &passageView{
			N:         p.passed,
			Words:     shorten(from.Excerpt, maxShownText),
			Where:     placeWords(from.ChunkIndex, from.Locator),
			Relevance: score(from.Relevance),
			Origin: originWords(
				from.Origin,
			),
			Steps:    p.refs(from.Steps),
			StepList: list(from.Steps),
			chunk:    from.ChunkIndex,
			steps:    from.Steps,
		}
		v.Choose = p.choose("passage", v.N, "passage-"+strconv.Itoa(v.N))
		v.Chosen = p.chosen.Passage == v.N
		v.Related = p.chosen.Step != 0 && contains(from.Steps, p.chosen.Step)
		d.Passages = append(d.Passages, v)
	}
	p.docs[d.ID] = d
	for _, id := range d.others {
		if p.docs[id] == nil {
			p.docs[id] = d
		}
	}
	return d
}

// passage finds the passage of a document that a step or a sentence names; nil: it is not shown, or cannot be told from
// others.
func (d *documentView) passage(chunk *int, words string, step int) *passageView {
	if d == nil {
		return nil
	}
	excerpt := trail.Excerpt(words, 0)
	var byChunk, byStep *passageView
	for _, v := range d.Passages {
		if excerpt != "" && trail.Excerpt(v.Words, 0) == excerpt {
			return v
		}
		if chunk != nil && v.chunk != nil && *chunk == *v.chunk && byChunk == nil {
			byChunk = v
		}
		if step != 0 && contains(v.steps, step) && byStep == nil && chunk == nil {
			byStep = v
		}
	}
	switch {
	case byChunk != nil:
		return byChunk
	case len(d.Passages) == 1 && d.More == 0:
		return d.Passages[0]
	case words == "":
		return byStep
	}
	return nil
}

func qualityOf(q *support.Quality) *qualityView {
	if q == nil || q.Score == nil {
		return nil
	}
	v := &qualityView{Score: score(q.Score), Known: percent(q.Known)}
	for i := range q.Parts {
		part := &q.Parts[i]
		v.Parts = append(v.Parts, qualityPart{string(part.Kind), score(&part.Value), part.Note})
	}
	return v
}

// documentTitle returns what a reader knows a document by.
func documentTitle(title, id string) string {
	return sourceTitle(&ibid.Source{ID: id, Title: title})
}

// webAddress returns an address if it is one of the web, and nothing if it is not: only such can be opened.
func webAddress(address string) string { return passageURL(&ibid.Source{URL: address}, nil) }

// originWords says who gave a score.
func originWords(o ibid.ScoreOrigin) string {
	switch o {
	case "":
		return ""
	case ibid.ScoreProvider:
		return "said by the provider"
	case ibid.ScoreRank:
		return "made of its place in the list"
	case ibid.ScoreOverlap:
		return "from common words"
	case ibid.ScoreRetriever:
	}
	return "said by the " + string(o)
}

// placeWords says where in its document a passage stands.
func placeWords(chunk *int, l *ibid.Locator) string {
	where := locatorWords(l)
	switch {
	case chunk == nil || l != nil && l.Chunk != "":
		return where
	case where != "":
		where += ", "
	}
	return where + "chunk " + strconv.Itoa(*chunk)
}

// list returns numbers with spaces between them.
func list(numbers []int) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
