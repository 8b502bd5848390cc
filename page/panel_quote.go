package page

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// panelQuote is words that the answer cites of a source, and where the source has them.
type panelQuote struct {
	Quote   string
	Where   string
	Badge   badge
	Excerpt *excerptView // nil: nothing of the source is there to look in
	Found   bool         // Excerpt has the words
	Note    string       // what a reader must know of it; empty: nothing
	Diff    []diffPart   // from the quote to what the source says now, where that was altered; nil: it was not
	Checked time.Time

	quote snapshot.Quote
}

// excerptView is a piece of a text around its marked words.
type excerptView struct {
	Before, Marked, Behind string
	CutBefore, CutBehind   bool // the text goes on
	From                   string
}

// panelVersion is a state of a source.
type panelVersion struct {
	Hash        string
	Short       string // its beginning
	Copy        string // where it can be saved; empty: it is not kept
	MediaType   string
	FinalURL    string
	Status      int
	First, Last time.Time
	Looked      bool // quotes were looked for in it
	Has, Of     int  // how many of how many quotes it has
	Why         string
}

// text is a text to look in.
type text struct {
	content string           // normalised
	blocks  []snapshot.Block // what it is made of; nil: one
	from    string           // what it is, in words
	copied  bool             // it is of a kept copy; the first of these is the latest
}

// piece returns a part of the content, each block on a line of its own.
func (t *text) piece(from, to int) string {
	b := []byte(t.content[from:to])
	for i := range t.blocks {
		if at := t.blocks[i].Span.Start - 1; from <= at && at < to {
			b[at-from] = '\n' // it was a space
		}
	}
	return string(b)
}

// addQuotes shows what the answer cites of the source, looks for it in what is there of the source, and lists its
// versions.
func (o *panel) addQuotes(ctx context.Context) error {
	pins, err := o.pins(ctx)
	if err != nil {
		return err
	}
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

// pins returns what was noted of this answer's citations of the source, by citation.
func (o *panel) pins(ctx context.Context) (map[string]*store.Pin, error) {
	byCitation := map[string]*store.Pin{}
	if o.url == "" {
		return byCitation, nil
	}
	all, err := o.p.o.Store.Pins(ctx, o.tenant, o.url)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if pin := &all[i]; pin.AnswerID == o.call.AnswerID {
			byCitation[pin.Citation] = pin
		}
	}
	return byCitation, nil
}

// collect lists the quotes, each once, and the sentences that rest on the source.
func (o *panel) collect(pins map[string]*store.Pin) {
	a, b := o.call.Answer, o.body
	seen := map[string]*panelQuote{}
	for i := range a.Citations {
		c := &a.Citations[i]
		for k := range c.Refs {
			ref := &c.Refs[k]
			if ref.Source != o.source.ID {
				continue
			}
			o.rests(c)
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

// rests names the sentence of a citation.
func (o *panel) rests(c *ibid.Citation) {
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
		Badge: quoteBadge(c.Verification),
	}
	if fragment := textFragment(one.Text); fragment != "" {
		one.URL += "#:~:text=" + fragment
	}
	b.Rested = append(b.Rested, one)
}

func quoteOf(c *ibid.Citation, ref *ibid.Ref, pin *store.Pin) *panelQuote {
	q := &panelQuote{
		Quote: shorten(ref.Quote, maxShownText),
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
	q.Diff = byWords(found.Near.Diff)
	return q
}

// versions lists the states of the source, and returns the texts of the latest that are kept.
func (o *panel) versions(ctx context.Context) ([]text, error) {
	if o.url == "" {
		return nil, nil
	}
	page, err := o.p.o.Store.Versions(ctx, o.tenant, o.url, &store.Query{Limit: maxVersions})
	if err != nil {
		return nil, err
	}
	b := o.body
	b.More = page.Next != ""
	var texts []text
	read := 0
	for i := range page.Items {
		v := panelVersionOf(&page.Items[i])
		if page.Items[i].Kept && read < maxRead {
			read++
			read, err := o.lookIn(ctx, &v)
			if err != nil {
				return nil, err
			}
			if v.Looked {
				texts = append(
					texts,
					text{read.Content, read.Blocks, "the copy that was read on " + day(v.First), true},
				)
			}
		}
		b.Versions = append(b.Versions, v)
	}
	if len(b.Versions) > 0 {
		b.Latest = &b.Versions[0]
	}
	return texts, nil
}

// lookIn counts the quotes that a kept version has, and returns its text, if it can be read.
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

func panelVersionOf(v *store.Version) panelVersion {
	view := panelVersion{
		Hash:      v.Hash,
		Short:     short(v.Hash, len("sha256:")+12),
		MediaType: v.MediaType,
		Status:    v.Status,
		First:     v.FetchedAt,
		Last:      v.LastSeen,
	}
	if v.FinalURL != v.URL {
		view.FinalURL = shownAddress(v.FinalURL)
	}
	if v.Kept {
		view.Copy = "/ui/copies/" + v.Hash
	}
	return view
}

// read returns the text of a kept copy, or why there is none.
func (o *panel) read(ctx context.Context, hash string) (read *snapshot.Text, why string, err error) {
	if !o.p.bounds.reading.TryAcquire(1) {
		o.body.Busy = true
		return nil, "too many copies are being read now", nil
	}
	defer o.p.bounds.reading.Release(1)
	version, err := o.p.o.Store.Copy(ctx, o.tenant, hash)
	if errors.Is(err, store.ErrNotFound) {
		return nil, "it is not kept any more", nil
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
func (o *panel) sent() []text {
	var all []text
	for i := range o.source.Chunks {
		c := &o.source.Chunks[i]
		if c.Content == "" {
			continue
		}
		from := "what the provider sent of it"
		if where := placeWords(nil, c.Locator); where != "" {
			from += ", " + where
		} else if len(o.source.Chunks) > 1 {
			from += ", piece " + strconv.Itoa(i+1)
		}
		all = append(all, text{content: snapshot.Normalize(c.Content), from: from})
	}
	if len(all) == 0 && o.source.Content != "" {
		all = append(all, text{content: snapshot.Normalize(o.source.Content), from: "what the provider sent of it"})
	}
	return all
}

// locate looks for a quote in the texts, the first that has it counting, and shows what stands around it. Where it is
// not found exactly, nothing is marked.
func (q *panelQuote) locate(texts []text) {
	for i := range texts {
		t := &texts[i]
		m, ok := snapshot.Find(t.content, &q.quote)
		if !ok || m.Cut {
			continue
		}
		q.Found, q.Excerpt = true, excerptAt(t, m)
		switch {
		case i > 0 && texts[0].copied:
			q.Note = "The latest copy of the source does not have it."
		case m.How == snapshot.MatchReformatted:
			q.Note = "There it has other spaces, quotes or hyphens."
		case m.Count > 1:
			q.Note = "It stands there " + strconv.Itoa(m.Count) + " times; this is the place that fits best."
		}
		return
	}
	switch {
	case len(texts) == 0:
		q.Note = "No text of the source is kept here, so its words cannot be shown in their place."
	default:
		q.Note = "These words were not found exactly in what is kept of the source, so nothing is marked."
	}
}

// excerptAt returns what stands around a match.
func excerptAt(t *text, m snapshot.Match) *excerptView {
	start := byteAt(t.content, 0, m.Start)
	end := byteAt(t.content, start, m.End-m.Start)
	from, to := back(t.content, start, around), byteAt(t.content, end, around)
	if at := strings.IndexByte(t.content[from:start], ' '); from > 0 && at >= 0 && at < maxWord { // with a whole word
		from += at + 1
	}
	if at := strings.LastIndexByte(t.content[end:to], ' '); to < len(t.content) && at >= 0 && to-end-at < maxWord {
		to = end + at
	}
	return &excerptView{
		Before: t.piece(
			from, start,
		),
		Marked:    t.piece(start, end),
		Behind:    t.piece(end, to),
		CutBefore: from > 0,
		CutBehind: to < len(t.content),
		From:      t.from,
	}
}

// beginning returns the first words of a text.
func beginning(t *text) *excerptView {
	end := byteAt(t.content, 0, 2*around)
	return &excerptView{Behind: t.piece(0, end), CutBehind: end < len(t.content), From: t.from}
}

// byteAt returns where n characters after the byte from end; the end of the text, if there are fewer.
func byteAt(s string, from, n int) int {
	for ; n > 0 && from < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[from:])
		from += size
	}
	return from
}

// back returns where n characters before the byte from begin; 0, if there are fewer.
func back(s string, from, n int) int {
	for ; n > 0 && from > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:from])
		from -= size
	}
	return from
}

func cleanAddress(address string) string {
	clean, err := snapshot.CleanURL(address)
	if err != nil {
		return ""
	}
	return clean
}

// panelManifest says where the manifest of an answer is.
type panelManifest struct {
	URL    string
	Digest string // of its body; empty: it is still to be built
	Badge  badge
}

// addManifest says where the answer's manifest is, if one is published. Nothing of it is checked here.
func (o *panel) addManifest(ctx context.Context) error {
	run := o.call.Run
	if run == "" {
		run = o.call.AnswerID
	}
	pub, err := o.p.o.Store.Pub(ctx, o.tenant, run)
	if err != nil {
		return err
	}
	path, digest, err := o.p.o.Store.LastManifest(ctx, pub, o.call.AnswerID)
	if errors.Is(err, manifest.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	m := &panelManifest{
		URL:    path,
		Digest: digest,
		Badge:  badge{Kind: badgeNone, Word: "being built", Title: "The manifest is not built yet."},
	}
	o.body.Manifest = m
	if digest == "" {
		return nil
	}
	signed, err := o.p.o.Store.Manifest(ctx, path)
	if err != nil {
		m.Badge = badge{Kind: badgeLost, Word: "not there", Title: "The manifest cannot be read now."}
		return nil //nolint:nilerr // it is shown
	}
	m.Badge = badge{
		Kind:  badgeNone,
		Word:  "signed, not checked",
		Title: "The manifest has a signature. Verify checks it.",
	}
	if signed.SignatureInput == "" {
		m.Badge = badge{Kind: badgeNone, Word: "not signed", Title: "Nobody signed the manifest."}
	}
	return nil
}
