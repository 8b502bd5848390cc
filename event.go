package ibid

// Event is one thing that became known while a response was read. Which fields count depends on Kind. What an Event
// points to is the receiver's to keep; it does not change later.
type Event struct {
	Kind      EventKind
	Candidate int       // which alternative it belongs to; 0 is the answer
	Text      string    // EventText: what was added; a corrected EventPart: the part's whole text
	At        int       // where Text begins in the answer's text, in bytes
	Part      *Part     // EventPart: the part that begins or was corrected
	Corrected bool      // EventPart: the provider's last word on the part differs from the text that was told of it
	Source    *Source   // EventSource
	Citation  *Citation // EventCitation: without its ID, which only the final answer has
	Key       string    // EventCitation: a later event of the same key replaces this one
	Withdrawn bool      // EventCitation: the citation is taken back
	Query     string    // EventQuery
	Display   *Display  // EventDisplay
	Issue     *Issue    // EventIssue
	Answer    *Answer   // EventAnswer
}

// EventKind says what an [Event] tells.
type EventKind string

// The kinds of event.
const (
	EventText     EventKind = "text"     // text was added to the answer
	EventPart     EventKind = "part"     // a part of the text begins, or its text was corrected by the provider
	EventSource   EventKind = "source"   // a source was named, or more is known of it (same ID replaces)
	EventCitation EventKind = "citation" // a citation is certain, changed (same Key replaces) or withdrawn
	EventQuery    EventKind = "query"
	EventDisplay  EventKind = "display"
	EventIssue    EventKind = "issue"
	EventAnswer   EventKind = "answer" // the response has ended: the final answer; always the last event
)
