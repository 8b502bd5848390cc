package store

import (
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// How many items a page has: unless told otherwise, and at most.
const (
	DefaultLimit = 50
	MaxLimit     = 500
)

// Query chooses from a list. Nil and the zero value mean its first page, unfiltered. What is said in several fields
// must all hold. Fields that make no sense for a list are not looked at.
type Query struct {
	// Text asks for answers that have all of its words in their text, prompt, quotes or titles of sources. It is plain
	// text: nothing in it is syntax. Of its last word the beginning suffices, unless something that is no word follows
	// it.
	Text         string
	Source       string // the URL of a source, in any form, or its ibid.Source.Key
	Conversation string
	Run          string
	// Verification asks for answers by what came of checking their citations: [VerifiedFailed], [VerifiedUnverifiable],
	// [VerifiedPassed] and [VerifiedUnchecked] by all of them, any other word by one that has this status.
	Verification string
	Cursor       string // Page.Next of the page before; empty: the first page
	Limit        int    // 0: DefaultLimit; more than MaxLimit is MaxLimit
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	Next  string // the cursor of the page after it; empty: this is the last
}

// Conversation is a group of calls that its client named.
type Conversation struct {
	ID      string
	Started time.Time // its first call
	Updated time.Time // its last call
	Answers int       // how many calls it has
	Calls   []*Call   // a page of them, oldest first; nil in a list
	Before  *Call     // the one before those; nil: there is none
	Next    string    // the cursor of the page that ends with Before; empty: there is none
	// Numbering has the numbers of all sources of the conversation, also of answers that are deleted; nil in a list.
	Numbering ibid.Numbering
}

// Run is one piece of an agent's work: one call, or the steps that its client named or recorded. [Store.Trail] has all
// of it.
type Run struct {
	ID       string
	Agent    string
	Question string // as it was recorded; in a list only its beginning
	Strategy string // as it was recorded: name@version
	Started  time.Time
	Ended    time.Time // when its last call so far had its answer, or its last recorded step ended
	Finished time.Time // when it ended, as it was recorded; zero: that was not
	Answers  int       // how many calls it has
	Recorded int       // how many steps were recorded of it

	Parent   string // the run that it is nested in, as it was recorded; as all that follows not in a list
	Answer   string // the final answer, as it was recorded; empty: it was not
	AnswerID string // the captured answer that was said to be the final one

	Steps      []Step       // those of Calls, by number, After filled in
	Calls      []*Call      // a page of them, by step, then oldest first
	Recordings []trail.Step // that were recorded, on the same page, by number; those without one come last
	Next       string       // the cursor of the page with what was before; empty: there is nothing
}

// SourceQuery chooses uses of one source. One of URL and ID must be said; with both, either suffices.
type SourceQuery struct {
	URL    string // in any form: it is normalised
	ID     string // an ibid.Source.Key, a provider's global id, or the id that a source has in its answer
	Cursor string
	Limit  int
}

// SourceUse says that an answer has a source.
type SourceUse struct {
	Key          string // ibid.Source.Key
	URL          string
	Title        string
	AnswerID     string
	Conversation string
	Run          string
	Started      time.Time
	Citations    []SourceCitation // empty: the source was found, but not cited
}

// SourceCitation is what was cited of a source: the answer's words, and the source's.
type SourceCitation struct {
	CitedText string // empty: the citation has no place in the text
	Quote     string // empty: the provider sent none
}
