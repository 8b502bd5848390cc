package passage

// Passage is one passage of text with the names that its list gives it. Zero fields are unknown.
type Passage struct {
	// Label is what an answer cites the passage by, without brackets: "1" of [1], "doc-a", "S2". If its list shows
	// none, Label is empty and the passage is cited by its position.
	Label       string
	ID          string // the id that the list gives it, which may also be its label
	Title       string
	Filename    string
	Page        string // as written: "3", "xii", "3-5"
	URL         string
	Site        string
	Authors     []string
	PublishedAt string
	ChunkID     string
	Score       *float64 // the retriever's
	Text        string   // the words of the passage, without its names
	Raw         []byte   // its JSON, if it came as JSON
}
