package manifest

// object is a value whose members are known. It lists them in the order in which people read them, with the place each
// is read into and written from; what else there is goes into the extra ones.
type object interface {
	members() ([]member, *Extra)
}

// member is one known member of an object.
type member struct {
	name     string
	required bool
	form     func() *form // called for members that are there
	place    any          // a pointer into the object
}

func (m *Manifest) members() ([]member, *Extra) {
	return []member{
		{"version", false, versions, &m.Version},
		{"self", false, webURLs, &m.Self},
		{"run_id", true, nameForm, &m.RunID},
		{"agent_id", true, agents, &m.AgentID},
		{"emitted_at", true, times, &m.EmittedAt},
		{"expires_at", false, times, &m.ExpiresAt},
		{"supersedes", false, webURLs, &m.Supersedes},
		{"text_profile", false, nameForm, &m.TextProfile},
		{"output", false, func() *form { return recordForm(&Output{}) }, &m.Output},
		{"sources", false, func() *form { return listForm(0, MaxSources, recordForm(&Source{})) }, &m.Sources},
		{"claims", true, func() *form { return listForm(0, MaxClaims, recordForm(&Claim{})) }, &m.Claims},
		{"chain", false, func() *form { return listForm(0, MaxSteps, recordForm(&Step{})) }, &m.Chain},
	}, &m.Extra
}

func (o *Output) members() ([]member, *Extra) {
	return []member{
		{"media_type", true, nameForm, &o.MediaType},
		{"hash", true, hashes, &o.Hash},
		{"text_hash", false, hashes, &o.TextHash},
		{"text_length", false, naturalForm, &o.TextLength},
	}, &o.Extra
}

func (s *Source) members() ([]member, *Extra) {
	return []member{
		{"id", true, ids, &s.ID},
		{"url", true, anyURLs, &s.URL},
		{"original_url", false, sourceRef, &s.OriginalURL},
		{"final_url", false, anyURLs, &s.FinalURL},
		{"retrieved_at", true, times, &s.RetrievedAt},
		{"retrieved_by", false, func() *form { return wordsForm(ByPublisher, ByObserver) }, &s.RetrievedBy},
		{"status", false, httpStatus, &s.Status},
		{"media_type", false, nameForm, &s.MediaType},
		{"hash", false, hashes, &s.Hash},
		{"text_hash", false, hashes, &s.TextHash},
		{"text_length", false, naturalForm, &s.TextLength},
		{"cited", false, booleanForm, &s.Cited},
		{"archive_url", false, anyURLs, &s.ArchiveURL},
		{"unavailable", false, nameForm, &s.Unavailable},
		{"upstream_manifest", false, webURLs, &s.UpstreamManifest},
		{"title", false, func() *form { return textForm(0, MaxURL) }, &s.Title},
	}, &s.Extra
}

func (c *Claim) members() ([]member, *Extra) {
	return []member{
		{"claim_id", true, ids, &c.ID},
		{"text", true, func() *form { return textForm(1, MaxText) }, &c.Text},
		{"span", false, codePoints, &c.Span},
		{"rewritten", false, booleanForm, &c.Rewritten},
		{
			"confidence", false,
			func() *form { return wordsForm(ConfidenceHigh, ConfidenceMedium, ConfidenceLow, ConfidenceUnknown) },
			&c.Confidence,
		},
		{"confidence_score", false, shareForm, &c.ConfidenceScore},
		{"steps", false, func() *form { return listForm(0, MaxSteps, numberForm()) }, &c.Steps},
		{"sources", true, func() *form { return listForm(1, MaxClaimSources, recordForm(&ClaimSource{})) }, &c.Sources},
	}, &c.Extra
}

func (s *ClaimSource) members() ([]member, *Extra) {
	return []member{
		{"source", false, ids, &s.Source},
		{"url", true, anyURLs, &s.URL},
		{"original_url", false, sourceRef, &s.OriginalURL},
		{"retrieved_at", true, times, &s.RetrievedAt},
		{"hash", false, hashes, &s.Hash},
		{"excerpt_offset", false, codePoints, &s.ExcerptOffset},
		{"excerpt_hash", false, hashes, &s.ExcerptHash},
		{"excerpt", false, func() *form { return recordForm(&Excerpt{}) }, &s.Excerpt},
		{
			"excerpt_origin", false,
			func() *form { return wordsForm(OriginProvider, OriginPublisher, OriginInferred) },
			&s.ExcerptOrigin,
		},
		{
			"relation", false,
			func() *form { return wordsForm(RelationSupports, RelationContradicts, RelationContext) },
			&s.Relation,
		},
		{"unavailable", false, nameForm, &s.Unavailable},
	}, &s.Extra
}

func (e *Excerpt) members() ([]member, *Extra) {
	return []member{
		{"exact", true, func() *form { return textForm(1, MaxExact) }, &e.Exact},
		{"prefix", false, aroundForm, &e.Prefix},
		{"suffix", false, aroundForm, &e.Suffix},
	}, &e.Extra
}

func (s *Step) members() ([]member, *Extra) {
	return []member{
		{"step", true, numberForm, &s.Step},
		{"tool", true, func() *form { return textForm(0, MaxName) }, &s.Tool},
		{"inputs", false, anythingForm, &s.Inputs},
		{"inputs_ref", false, refsForm, &s.InputsRef},
		{"inputs_hash", false, privateHashes, &s.InputsHash},
		{"outputs_ref", true, refForm, &s.OutputsRef},
		{"outputs_url", false, webURLs, &s.OutputsURL},
		{"outputs_hash", false, privateHashes, &s.OutputsHash},
		{"sources", false, func() *form { return listForm(0, MaxSources, sourceRef()) }, &s.Sources},
		{"started_at", false, times, &s.StartedAt},
		{"ended_at", false, times, &s.EndedAt},
	}, &s.Extra
}
