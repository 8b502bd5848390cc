package trail

// passageIndex finds rows that are of the same passage: of one document, of one chunk, with the same words. Where a row
// has no words, its chunk tells; where it has only an excerpt, that does. Passages are numbered from 0 as they are
// added.
type passageIndex struct {
	at  map[passageID]int
	all []Source // what is known of each: its document, words and chunk
}

// passageID is one of the ways to tell a passage.
type passageID struct {
	document, text string
	chunk          int // -1: not said
	by             passageBy
}

type passageBy int

const (
	byContent     passageBy = iota // text is the whole passage
	byExcerpt                      // text is the excerpt of it
	byExcerptOnly                  // the same, of a passage of which there is no more
	byChunk                        // by its chunk alone
	byChunkOnly                    // the same, of a passage without words
)

func newPassageIndex(size int) *passageIndex {
	return &passageIndex{at: make(map[passageID]int, size), all: make([]Source, 0, size)}
}

func (s *Source) passageID(by passageBy, text string) passageID {
	id := passageID{document: s.DocumentID, text: text, chunk: -1, by: by}
	if s.ChunkIndex != nil {
		id.chunk = *s.ChunkIndex
	}
	return id
}

// find returns the number of the passage that a row of a document is of.
func (p *passageIndex) find(document string, s *Source) (n int, ok bool) {
	f := Source{
		DocumentID: document,
		Content:    s.Content,
		Excerpt:    first(s.Excerpt, s.Content),
		ChunkIndex: s.ChunkIndex,
	}
	switch {
	case s.Content != "":
		if n, ok = p.at[f.passageID(byContent, f.Content)]; !ok {
			n, ok = p.at[f.passageID(byExcerptOnly, f.Excerpt)]
		}
	case s.Excerpt != "":
		n, ok = p.at[f.passageID(byExcerpt, f.Excerpt)]
	case s.ChunkIndex != nil:
		n, ok = p.at[f.passageID(byChunk, "")]
	}
	if !ok && (s.ChunkIndex != nil || s.bare()) {
		n, ok = p.at[f.passageID(byChunkOnly, "")]
	}
	return n, ok
}

// add adds the passage of a row.
func (p *passageIndex) add(document string, s *Source) {
	p.all = append(p.all, Source{DocumentID: document})
	p.join(len(p.all)-1, s)
}

// join notes what a row knows besides of the passage that it is of.
func (p *passageIndex) join(n int, s *Source) {
	f := &p.all[n]
	f.Content, f.Excerpt = first(f.Content, s.Content), first(f.Excerpt, first(s.Excerpt, s.Content))
	f.ChunkIndex = first(f.ChunkIndex, s.ChunkIndex)
	p.note(f.passageID(byContent, f.Content), n, f.Content != "")
	p.note(f.passageID(byExcerpt, f.Excerpt), n, f.Excerpt != "")
	p.note(f.passageID(byExcerptOnly, f.Excerpt), n, f.Content == "" && f.Excerpt != "")
	p.note(f.passageID(byChunk, ""), n, f.ChunkIndex != nil)
	p.note(f.passageID(byChunkOnly, ""), n, f.Excerpt == "")
}

// note notes whether a passage can be told by id. Of several the first is.
func (p *passageIndex) note(id passageID, n int, is bool) {
	switch old, ok := p.at[id]; {
	case is && !ok:
		p.at[id] = n
	case !is && ok && old == n:
		delete(p.at, id)
	}
}

// version returns the hash of the words that are held of a passage; empty: an excerpt at most is.
func (p *passageIndex) version(n int) string {
	if words := p.all[n].Content; words != "" {
		return digest([]byte(words))
	}
	return ""
}

func (s *Source) bare() bool { return s.ChunkIndex == nil && s.text() == "" }
