package trail

// Text returns as much of the passage as is known: all of it, or the words that were quoted, or its excerpt. Empty: none.
func (r *Rest) Text() string {
	if r.source != nil && r.source.Content != "" {
		return r.source.Content
	}
	return first(r.Evidence, r.Excerpt)
}
