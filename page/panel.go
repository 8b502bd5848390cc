package page

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

const (
	// maxQuotes is how many quotes of a source its panel shows.
	maxQuotes = 20
	// maxVersions is how many versions of a source its panel lists, and maxRead in how many of them quotes are searched
	// for.
	maxVersions, maxRead = 12, 4
	// maxRested is how many sentences of the answer a panel names.
	maxRested = 40
	// maxSummed is the maximum stored size in bytes of a run for a panel to name the steps that use the source.
	maxSummed = 8 << 20
	// around is how many characters of context are shown on either side of a quote.
	around = 300
	// maxWord is how many bytes of the context are cut to begin and end it with a word.
	maxWord = 40
	// panelFor limits how long making a panel may take, and stepsFor how long it waits for the steps that use the
	// source.
	panelFor = 15 * time.Second
	stepsFor = 3 * time.Second
	// maxSaving is how many kept copies are sent to a tenant at the same time: each may be as large as store.MaxCopy.
	// saveFor is how long a client may take to accept one.
	maxSaving = 4
	saveFor   = 5 * time.Minute
)

// panelBody is the content of a source's panel.
type panelBody struct {
	*ibid.Source

	Fragment   bool // it is shown beside the answer, not on its own
	N          int
	AnswerID   string
	Title      string
	Letter     string
	Site       string
	Open       string // where it can be opened, at its passage if possible; empty if nowhere
	Quotes     []*panelQuote
	MoreQuotes int
	Sent       *excerptView // the beginning of what the provider sent, if nothing is quoted
	Rested     []panelClaim
	MoreRested int
	Run        string // the answer's; empty if it is in none that is stored
	Question   string // of the run; empty if it is not known
	Steps      []stepRef
	StepsKnown bool
	Versions   []panelVersion
	More       bool // there are older versions
	Manifest   *panelManifest
	Busy       bool // too many copies were being read, so none was
}

// Uses returns the address of the page with all answers that use the source; empty if there is none.
func (b *panelBody) Uses() string { return usesURL(b.Key()) }

// Latest returns the latest version of the source; nil if it was never read.
func (b *panelBody) Latest() *panelVersion {
	if len(b.Versions) == 0 {
		return nil
	}
	return &b.Versions[0]
}

// panelClaim is a sentence of the answer that rests on the source.
type panelClaim struct {
	Text  string // as it reads; empty for the answer as a whole
	URL   string
	Badge badge
	Judge string // where a reader can give feedback on it; empty if nowhere

	claim string // as in the answer
}

// panel collects the content of a panel.
type panel struct {
	p      *Page
	tenant string
	call   *store.Call
	url    string // the source's address, cleaned for lookups; empty if it has none
	may    bool   // its reader may give feedback
	body   *panelBody
	claims []verify.ClaimReport // by citation: whether its quotes support it; nil if not weighed
	web    webSources
}

// showPanel shows one source of an answer: a page of its own, or a fragment of the answer's.
func (p *Page) showPanel(w *httpx.Reply, r *httpx.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), panelFor)
	defer cancel()
	call, err := p.callOf(ctx, r)
	if err != nil {
		return err
	}
	n := pathNumber(r, len(call.Answer.Sources))
	if n == 0 {
		return store.ErrNotFound
	}
	if q := r.URL.Query(); q.Has("row") {
		return p.showRow(ctx, w, r, call, n)
	}
	s := &call.Answer.Sources[n-1]
	body := &panelBody{
		Source: s, Fragment: r.URL.Query().Has("fragment"), N: n, AnswerID: call.AnswerID, Title: sourceTitle(s),
		Letter: letterOf(s), Site: siteOf(s), Open: passageURL(s, firstRef(call.Answer, s.ID)),
	}
	one := &panel{
		p: p, tenant: r.Who.Tenant, call: call, url: cleanAddress(s.URL), body: body,
		may: mayWrite(r) && !p.isPasted(call), web: webSourcesOf(call.Answer),
	}
	for _, add := range []func(context.Context) error{one.addQuotes, one.addSteps, one.addManifest} {
		if err := add(ctx); err != nil {
			return err
		}
	}
	for _, q := range body.Quotes {
		if q.now != "" { // the quoted words are no longer there
			body.Open = passageURL(s, &ibid.Ref{Quote: q.now})
			break
		}
	}
	if !body.Fragment {
		return p.show(w, r, &view{Name: "panel", Title: body.Title, Section: "answers", Body: body})
	}
	html, err := p.fragment("panel", "panel", body)
	if err == nil {
		writeBody(w, r, &response{status: http.StatusOK, mediaType: mediaHTML, body: html})
	}
	return err
}

// showRow shows a row of the list of an answer's sources, with all that citations take from it.
func (p *Page) showRow(ctx context.Context, w *httpx.Reply, r *httpx.Request, call *store.Call, n int) error {
	o, err := p.optionsFor(ctx, r, call)
	if err != nil {
		return err
	}
	o.prefix, o.unfolded = idPrefix(r.URL.Query().Get("row")), n
	v := p.answerView(r.Context(), call, o) //nolint:contextcheck // it may take longer than ctx
	for _, row := range slices.Concat(v.Cited, v.Uncited) {
		if row.N != n {
			continue
		}
		html, err := p.fragment("answer", "source", row)
		if err == nil {
			writeBody(w, r, &response{status: http.StatusOK, mediaType: mediaHTML, body: html})
		}
		return err
	}
	return errNotFound
}

// firstRef returns the first ref to a source that quotes it, else the first one; nil if there is none.
func firstRef(a *ibid.Answer, source string) *ibid.Ref {
	var first *ibid.Ref
	for i := range a.Citations {
		for k := range a.Citations[i].Refs {
			ref := &a.Citations[i].Refs[k]
			switch {
			case ref.Source != source:
			case ref.Quote != "":
				return ref
			case first == nil:
				first = ref
			}
		}
	}
	return first
}

// addSteps adds the steps of the answer's run that use the source, unless the run is too large.
func (o *panel) addSteps(ctx context.Context) error {
	id := o.call.Run
	if id == "" {
		return nil
	}
	weight, err := o.p.o.Store.Weight(ctx, o.tenant, id)
	if isGone(err) {
		return nil // it is not stored yet
	}
	if err != nil {
		return err
	}
	o.body.Run = id
	if weight > maxSummed {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, stepsFor)
	defer cancel()
	s, err := o.p.o.API.Summary(waiting, o.tenant, id)
	if isGone(err) || waiting.Err() != nil {
		return nil // the panel then leaves it out
	}
	if err != nil {
		return err
	}
	o.body.StepsKnown, o.body.Question = true, s.Run.Question
	for i := range s.Sources {
		if f := &s.Sources[i]; isSame(f, o.body.Source) {
			for _, n := range f.Steps {
				to := runURL(id) + "?step=" + strconv.Itoa(n) + "#" + stepID(n)
				o.body.Steps = append(o.body.Steps, stepRef{N: n, URL: to})
			}
		}
	}
	return nil
}

// isGone reports whether an error means that something does not exist.
func isGone(err error) bool {
	return err != nil && gateway.ProblemOf(err).Status == http.StatusNotFound
}

// isSame reports whether a document of a run is a source of an answer.
func isSame(f *trail.SummarySource, s *ibid.Source) bool {
	if f.Key != "" && f.Key == s.Key() {
		return true
	}
	here := cleanAddress(s.URL)
	return here != "" && here == cleanAddress(f.URL)
}

// saveCopy sends the octets of a source as they were read. Whatever they are, browsers do not show them as a page of
// this origin.
func (p *Page) saveCopy(w *httpx.Reply, r *httpx.Request) error {
	release, ok := p.bounds.saving.Take(r.Who.Tenant)
	if !ok {
		return busy("Too many copies are being saved at the moment.")
	}
	defer release()
	version, err := p.readCopy(r.Context(), r.Who.Tenant, r.PathValue("hash"))
	if err != nil {
		return err
	}
	rc := http.NewResponseController(w)
	// A server that cannot set deadlines has its own limits for slow clients.
	_ = rc.SetWriteDeadline(time.Now().Add(saveFor))
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	writeFile(w, r, strings.TrimPrefix(version.Hash, "sha256:")+".bin", "application/octet-stream", version.Octets)
	return nil
}

// readCopy reads a kept copy. Few are read at the same time, so the slot is released before the copy is sent.
func (p *Page) readCopy(ctx context.Context, tenant, hash string) (*store.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	if err := p.bounds.reading.Acquire(ctx, 1); err != nil {
		return nil, gateway.Unavailable("too many copies are being read at the moment")
	}
	defer p.bounds.reading.Release(1)
	return p.o.Store.Copy(ctx, tenant, hash)
}

// panelQuote is words that the answer cites of a source, and their place in it.
type panelQuote struct {
	Quote   string
	Where   string
	Badge   badge
	Excerpt *excerptView // nil if no text of the source is available
	Note    string       // a remark for the reader; else empty
	Quoted  []piece
	Found   []piece // what the source says now in place of Quoted; nil if the same, or not known

	quote snapshot.Quote
	now   string // the words of Found; empty if there are none
}

// excerptView is a piece of a text around marked words.
type excerptView struct {
	Quote []piece
	From  string
}

// panelVersion is a version of a source.
type panelVersion struct {
	store.Version

	Looked  bool // quotes were searched for in it
	Has, Of int  // it has so many of so many quotes
	Why     string
}

// sourceText is a text of the source to search.
type sourceText struct {
	content string           // normalised
	blocks  []snapshot.Block // that it consists of; nil for a single one
	from    string           // where it is from, in words
	copied  bool             // it is from a kept copy; the first of these is the latest
}

// piece returns a part of the content, each block on a line of its own.
func (t *sourceText) piece(from, to int) string {
	b := []byte(t.content[from:to])
	for i := range t.blocks {
		if at := t.blocks[i].Span.Start - 1; from <= at && at < to {
			b[at-from] = '\n' // which was a space
		}
	}
	return string(b)
}

// addQuotes adds the answer's quotes of the source, looks for them in its available texts, and lists its versions.
func (o *panel) addQuotes(ctx context.Context) error {
	pins, err := o.p.o.Store.AnswerPins(ctx, o.tenant, o.call.AnswerID)
	if err != nil {
		return err
	}
	o.claims = o.p.weighedWith(ctx, o.call, pins).claims
	o.collect(pins)
	versions, err := o.versions(ctx)
	if err != nil {
		return err
	}
	texts := append(versions, o.sent()...)
	if len(o.body.Quotes) == 0 && len(texts) > 0 {
		o.body.Sent = beginning(&texts[len(texts)-1])
	}
	for _, q := range o.body.Quotes {
		q.locate(texts)
	}
	return nil
}

// pinsOfSource returns those of an answer's pins that are of the source, by citation. For one in several manifests it
// prefers a failure.
func (o *panel) pinsOfSource(all []store.Pin) map[string]*store.Pin {
	byCitation := map[string]*store.Pin{}
	for i := range all {
		pin := &all[i]
		if o.url == "" || pin.URL != o.url {
			continue
		}
		before := byCitation[pin.Citation]
		if before == nil || statusBadge(before.Status, time.Time{}).Kind != badgeBad {
			byCitation[pin.Citation] = pin
		}
	}
	return byCitation
}

// collect lists the quotes, each once, and the sentences that rest on the source.
func (o *panel) collect(all []store.Pin) {
	a, b, pins := o.call.Answer, o.body, o.pinsOfSource(all)
	seen := map[string]*panelQuote{}
	for i := range a.Citations {
		c := &a.Citations[i]
		for k := range c.Refs {
			ref := &c.Refs[k]
			if ref.Source != o.body.ID {
				continue
			}
			o.addClaim(i)
			if ref.Quote == "" || seen[ref.Quote] != nil {
				continue
			}
			q := quoteOf(c, ref, pins[c.ID])
			seen[ref.Quote] = q
			if len(b.Quotes) == maxQuotes {
				b.MoreQuotes++
				continue
			}
			b.Quotes = append(b.Quotes, q)
		}
	}
}

// addClaim adds the sentence of a citation.
func (o *panel) addClaim(citation int) {
	c := &o.call.Answer.Citations[citation]
	b, claim := o.body, claimOf(o.call.Answer, c)
	if len(b.Rested) > 0 && b.Rested[len(b.Rested)-1].claim == claim {
		return
	}
	if len(b.Rested) == maxRested {
		b.MoreRested++
		return
	}
	one := panelClaim{
		claim: claim,
		Text:  plainWords(claim),
		URL:   answerURL(o.call.AnswerID),
		Badge: standingOf(c, o.web, reportOf(o.claims, citation), nil).badge,
	}
	if o.may {
		one.Judge = feedbackURL(o.call.AnswerID, c.ID)
	}
	if fragment := textFragment(one.Text); fragment != "" {
		one.URL += "#:~:text=" + fragment
	}
	b.Rested = append(b.Rested, one)
}

func quoteOf(c *ibid.Citation, ref *ibid.Ref, pin *store.Pin) *panelQuote {
	q := &panelQuote{
		Quote: shownText(ref.Quote),
		Where: placeWords(nil, ref.Locator),
		Badge: quoteBadge(c.Verification),
		quote: snapshot.Quote{Exact: ref.Quote},
	}
	if pin == nil {
		return q
	}
	if e := pin.Claim.Excerpt; e != nil && e.Exact == ref.Quote {
		q.quote = snapshot.Quote{Exact: e.Exact, Prefix: e.Prefix, Suffix: e.Suffix}
	}
	if pin.Status == "" {
		return q
	}
	q.Badge = quoteBadge(&ibid.Verification{Status: string(pin.Status), CheckedAt: pin.CheckedAt})
	var found verify.SourceResult
	if err := json.Unmarshal(pin.Detail, &found); err != nil || found.Near == nil {
		return q
	}
	q.Quoted, q.Found = compareWords(sidesOf(found.Near))
	if change := changeOf(pin); change != nil {
		q.now = change.near
	}
	return q
}

// versions lists the versions of the source, and returns the texts of the latest kept ones.
func (o *panel) versions(ctx context.Context) ([]sourceText, error) {
	if o.url == "" {
		return nil, nil
	}
	page, err := o.p.o.Store.Versions(ctx, o.tenant, o.url, &store.Query{Limit: maxVersions})
	if err != nil {
		return nil, err
	}
	b := o.body
	b.More = page.Next != ""
	var texts []sourceText
	read := 0
	for i := range page.Items {
		v := panelVersion{Version: page.Items[i]}
		if v.Kept && read < maxRead {
			read++
			read, err := o.lookIn(ctx, &v)
			if err != nil {
				return nil, err
			}
			if v.Looked {
				from := "the copy that was read on " + day(v.FetchedAt)
				texts = append(texts, sourceText{read.Content, read.Blocks, from, true})
			}
		}
		b.Versions = append(b.Versions, v)
	}
	return texts, nil
}

// lookIn counts the quotes that a kept version has, and returns its text if it can be read.
func (o *panel) lookIn(ctx context.Context, v *panelVersion) (*snapshot.Text, error) {
	read, why, err := o.read(ctx, v.Hash)
	if v.Why = why; err != nil || why != "" {
		return nil, err
	}
	v.Looked, v.Of = true, len(o.body.Quotes)
	for _, q := range o.body.Quotes {
		if _, ok := snapshot.Find(read.Content, &q.quote); ok {
			v.Has++
		}
	}
	return read, nil
}

// read returns the text of a kept copy, or why there is none.
func (o *panel) read(ctx context.Context, hash string) (read *snapshot.Text, why string, err error) {
	if !o.p.bounds.reading.TryAcquire(1) {
		o.body.Busy = true
		return nil, "too many copies are being read at the moment", nil
	}
	defer o.p.bounds.reading.Release(1)
	version, err := o.p.o.Store.Copy(ctx, o.tenant, hash)
	if errors.Is(err, store.ErrNotFound) {
		return nil, "it is no longer kept", nil
	}
	if err != nil {
		return nil, "", err
	}
	read, _, err = o.p.bounds.texts.Of(&version.Snapshot)
	if err != nil {
		return nil, "its text cannot be read", nil
	}
	return read, "", nil
}

// sent returns what the provider sent of the source.
func (o *panel) sent() []sourceText {
	var all []sourceText
	for i := range o.body.Chunks {
		c := &o.body.Chunks[i]
		if c.Content == "" {
			continue
		}
		from := "what the provider sent of it"
		if where := placeWords(nil, c.Locator); where != "" {
			from += ", " + where
		} else if len(o.body.Chunks) > 1 {
			from += ", piece " + strconv.Itoa(i+1)
		}
		all = append(all, sourceText{content: snapshot.Normalize(c.Content), from: from})
	}
	if len(all) == 0 && o.body.Content != "" {
		all = append(all, sourceText{content: snapshot.Normalize(o.body.Content), from: "what the provider " +
			"sent of it"})
	}
	return all
}

// locate searches the texts for a quote and shows the context in the first that has it. Nothing is marked unless it is
// found exactly.
func (q *panelQuote) locate(texts []sourceText) {
	for i := range texts {
		t := &texts[i]
		m, ok := snapshot.Find(t.content, &q.quote)
		if !ok || m.Cut {
			continue
		}
		q.Excerpt = excerptAt(t, m)
		switch {
		case i > 0 && texts[0].copied:
			q.Note = "The latest copy of the source does not have it."
		case m.How != snapshot.MatchExact && m.How != snapshot.MatchElsewhere:
			q.Note = "There, it has another form."
		case m.Count > 1:
			q.Note = "It occurs there " + strconv.Itoa(m.Count) + " times; this is the best match."
		}
		return
	}
	q.Note = "These words were not found exactly in what is kept of the source, so nothing is marked."
	if len(texts) == 0 {
		q.Note = "No text of the source is kept here, so its words cannot be shown in context."
	}
}

// excerptAt returns the context of a match.
func excerptAt(t *sourceText, m snapshot.Match) *excerptView {
	start := len(text.Runes(t.content, m.Start))
	end := start + len(text.Runes(t.content[start:], m.End-m.Start))
	from, to := start, end+len(text.Runes(t.content[end:], around))
	for n := around; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(t.content[:from])
		from -= size
	}
	if at := strings.IndexByte(t.content[from:start], ' '); from > 0 && at >= 0 && at < maxWord { // at a whole word
		from += at + 1
	}
	if at := strings.LastIndexByte(t.content[end:to], ' '); to < len(t.content) && at >= 0 && to-end-at < maxWord {
		to = end + at
	}
	v := &excerptView{From: t.from}
	if from > 0 {
		v.Quote = appendPiece(v.Quote, "…", false)
	}
	v.Quote = appendPiece(v.Quote, t.piece(from, start), false)
	v.Quote = appendPiece(v.Quote, t.piece(start, end), true)
	v.Quote = appendPiece(v.Quote, t.piece(end, to), false)
	if to < len(t.content) {
		v.Quote = appendPiece(v.Quote, "…", false)
	}
	return v
}

// beginning returns the first words of a text.
func beginning(t *sourceText) *excerptView {
	end := len(text.Runes(t.content, 2*around))
	v := &excerptView{Quote: appendPiece(nil, t.piece(0, end), false), From: t.from}
	if end < len(t.content) {
		v.Quote = appendPiece(v.Quote, "…", false)
	}
	return v
}

// panelManifest names the manifest of an answer.
type panelManifest struct {
	URL    string
	Digest string // of its body; empty if it is still to be built
	Badge  badge
}

// addManifest adds the answer's manifest, if one is published. It is not checked here.
func (o *panel) addManifest(ctx context.Context) error {
	var err error
	o.body.Manifest, err = o.p.manifestOf(ctx, o.tenant, o.call)
	return err
}
