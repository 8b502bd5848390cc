package wire

// The codes of what a parser finds odd. docs/answer.md says what each means to a reader.
const (
	// an item, annotation or event of a type without meaning here; its JSON is kept
	IssueUnknownType    = "unknown-type"
	IssueBadNumber      = "bad-number"                  // an offset or index that is no non-negative integer
	IssueWrongType      = "wrong-type"                  // a member of another JSON type than it must have
	IssueChunkIndex     = "chunk-index-out-of-range"    // a citation names a chunk past the list
	IssueDocumentIndex  = "document-index-out-of-range" // a citation names a document past those given
	IssueSourceless     = "citation-without-source"     // a citation names no source at all; left out
	IssueDuplicateEvent = "duplicate-event"             // an event came twice; the second was left out
	IssueSourceFailed   = "source-not-retrieved"        // the provider could not read a source (detail: why)
	IssueLimit          = "limit-reached"               // more of something than is kept (detail: of what)
)
