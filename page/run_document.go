package page

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// documentView is a document of a run.
type documentView struct {
	*trail.SummarySource

	N        int // from 1
	Name     string
	Refs     []stepRef // of Steps
	Primary  bool
	Retired  bool // it was retrieved but not used
	Shown    bool // it is on the page; otherwise only its number and name are
	Passages []*passageView
}

// Uses returns the address of the page with all uses of the document; empty if there is none.
func (d *documentView) Uses() string { return usesURL(d.Key) }

// Checked returns the gravest result of checking the passages; the zero badge if none was checked.
func (d *documentView) Checked() badge {
	var worst standing
	for _, v := range d.Passages {
		if checked := v.Checked(); checked.Word != "" {
			worst.worsen(&standing{badge: checked})
		}
	}
	return worst.badge
}

// Unplaced returns the passages that no step on the page shows.
func (d *documentView) Unplaced() []*passageView {
	var list []*passageView
	for _, v := range d.Passages {
		same := func(other *passageView) bool { return other.Placed && other.Words == v.Words }
		if !v.Placed && !slices.ContainsFunc(d.Passages, same) {
			list = append(list, v)
		}
	}
	return list
}

// MorePassages returns how many passages are not shown.
func (d *documentView) MorePassages() int { return len(d.SummarySource.Passages) - len(d.Passages) }

// passageView is a passage of a document.
type passageView struct {
	*trail.SummaryPassage
	changedWords

	N         int // in the run, from 1
	Words     string
	plain     string // Words normalized for comparisons: see [trail.Excerpt]
	Sentences []int  // that rest on it
	Placed    bool   // a step shows it
	Choose    string
	Chosen    bool
	Related   bool
	standing  standing // the gravest of the citations that name it; the zero value if none does
}

// Checked returns the result of checking the citations of the passage, else of looking for it in its document; the zero
// badge if neither was done.
func (v *passageView) Checked() badge {
	if v.standing.Word != "" {
		return v.standing.badge
	}
	return checkedBadge(v.Verification)
}

// addDocuments numbers the documents, and their passages, in the order of the summary.
func (b *runBody) addDocuments() {
	s := b.Summary
	primary := map[string]bool{}
	for i := range s.Primary {
		primary[s.Primary[i].DocumentID] = true
	}
	for i := range s.Steps {
		if len(s.Steps[i].Documents) == 0 {
			b.Without++
		}
	}
	shown := b.shownDocuments(primary)
	for i := range s.Sources {
		d := b.document(&s.Sources[i], shown)
		if d.Primary = primary[d.DocumentID]; d.Shown {
			b.Sources = append(b.Sources, d)
		}
	}
	for i := range s.Unused {
		d := b.document(&s.Unused[i], shown)
		if d.Retired = true; d.Shown {
			b.Unused = append(b.Unused, d)
		}
	}
}

// shownDocuments chooses the documents that are shown: the primary ones, those of the steps on this page, then the most
// relevant.
func (b *runBody) shownDocuments(primary map[string]bool) map[string]bool {
	s := b.Summary
	here := map[int]bool{}
	for i := b.from; i < min(b.from+maxShownSteps, len(s.Run.Steps)); i++ {
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

func (b *runBody) document(f *trail.SummarySource, shown map[string]bool) *documentView {
	b.counted++
	d := &documentView{
		SummarySource: f, N: b.counted, Name: documentName(f.Title, f.DocumentID), Shown: shown[f.DocumentID],
		Refs: b.refs(f.Steps),
	}
	for i := range f.Passages {
		if !d.Shown || i == maxShownPassages {
			break
		}
		b.passed++
		from := &f.Passages[i]
		words := shownText(from.Excerpt)
		v := &passageView{
			SummaryPassage: from, N: b.passed, Words: words, plain: trail.Excerpt(words, 0),
			Choose:  b.choose("passage", b.passed, "passage-"+strconv.Itoa(b.passed)),
			Chosen:  b.chosen.Passage == b.passed,
			Related: b.chosen.Step != 0 && slices.Contains(from.Steps, b.chosen.Step),
		}
		if v.Checked().Kind == badgeBad {
			v.changedWords = b.changed(f.URL, v.Words)
		}
		d.Passages = append(d.Passages, v)
	}
	b.docs[f.DocumentID], b.all = d, append(b.all, d)
	for _, id := range f.OtherIDs {
		if b.docs[id] == nil {
			b.docs[id] = d
		}
	}
	return d
}

// passage finds the passage of a document that a step or a sentence names; nil if it is not shown, or is ambiguous.
func (d *documentView) passage(chunk *int, words string, step int) *passageView {
	if d == nil {
		return nil
	}
	excerpt := trail.Excerpt(words, 0)
	var byChunk, byStep *passageView
	for _, v := range d.Passages {
		if excerpt != "" && v.plain == excerpt {
			return v
		}
		if chunk != nil && v.ChunkIndex != nil && *chunk == *v.ChunkIndex && byChunk == nil {
			byChunk = v
		}
		if step != 0 && slices.Contains(v.Steps, step) && byStep == nil && chunk == nil {
			byStep = v
		}
	}
	switch {
	case byChunk != nil && d.MorePassages() > 0 && excerpt != "" && !strings.Contains(byChunk.plain, excerpt):
		return nil // it may be one of those that are not shown
	case byChunk != nil:
		return byChunk
	case len(d.Passages) == 1 && d.MorePassages() == 0:
		return d.Passages[0]
	case words == "":
		return byStep
	}
	return nil
}

// documentName returns a name for a document.
func documentName(title, id string) string { return sourceTitle(&ibid.Source{ID: id, Title: title}) }

// nameOr returns the name of the document, or one made of title and id if d is nil.
func (d *documentView) nameOr(title, id string) string {
	if d != nil {
		return d.Name
	}
	return documentName(title, id)
}
