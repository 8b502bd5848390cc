package verify

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// SourceResult is the result of checking one source of one claim. It is plain data.
type SourceResult struct {
	Status Status `json:"status"`
	Counts Counts `json:"counts"`
	// why the source was not read: dns, connect, tls, timeout, 5xx, 429 …; for an archived copy, the source's status
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"` // a sentence for people
	// the source's words, if it passed, in the form of the excerpt if it has them in another: evidence for the claim.
	// If the excerpt was cut short inside a sentence, it is completed from the source.
	Excerpt string `json:"excerpt,omitempty"`
	// the passage around Excerpt, if the excerpt was cut short: more evidence for the claim
	Passage string `json:"passage,omitempty"`
	// where the excerpt is now; nil if it was not found, or none was recorded
	Match *snapshot.Match `json:"match,omitempty"`
	Near  *snapshot.Near  `json:"near,omitempty"` // the most similar text found instead
	// the unit of the recorded offset, as found out if the manifest does not give it
	Unit       Unit      `json:"unit,omitempty"`
	Hash       string    `json:"hash,omitempty"`      // of the octets now
	TextHash   string    `json:"text_hash,omitempty"` // of the text now
	HTTPStatus int       `json:"http_status,omitempty"`
	FinalURL   string    `json:"final_url,omitempty"`
	Redirected bool      `json:"redirected,omitempty"` // FinalURL belongs to another domain than the one recorded
	CheckedAt  time.Time `json:"checked_at,omitzero"`  // when the source was read; zero if it was not

	// the source's sentences around Excerpt, if it is only a part of them or another one introduces it or refers to it
	Sentences string `json:"sentences,omitempty"`
	// notices of corrections that the source has elsewhere
	Corrections []string `json:"corrections,omitempty"`
}

// Unit is the unit of an offset.
type Unit string

// The units, in the order in which they are tried if a manifest names no text profile.
const (
	UnitText  Unit = "text"  // code points of the text
	UnitOctet Unit = "octet" // octets of the document
	UnitUTF16 Unit = "utf16" // UTF-16 code units of the text
)

// CompareOptions are the options of [Compare]. The zero value and nil mean the defaults.
type CompareOptions struct {
	Texts *snapshot.Texts // caches texts; nil disables caching
	// of the manifest; if manifest.Profiled does not know it, offsets may be in any unit
	TextProfile string
}

// Compare checks whether a source has what a manifest records of it. The source was fetched as snap, or failed with
// fetchErr. A nil src means that the manifest has no source with the claim's name. Compare does no I/O.
//
// The statuses are those of the attribution specification, §6 B, in the order of its table. Only an excerpt that is
// found, exactly or in another form, passes (see [snapshot.Find]); similar text only explains a failure. A document
// that is not the source, but a challenge or an error page in its place, is not compared.
func Compare(
	cs *manifest.ClaimSource, src *manifest.Source, snap *snapshot.Snapshot, fetchErr error, o *CompareOptions,
) SourceResult {
	return newComparison(cs, src, snap, o).compare(fetchErr)
}

// comparison compares one source with what one claim records of it.
type comparison struct {
	cs        *manifest.ClaimSource
	src       *manifest.Source
	snap      *snapshot.Snapshot
	options   CompareOptions
	hash      string // the recorded hash; empty if none
	unchanged bool
	text      *snapshot.Text
	searcher  *cachedSearcher
	claim     string        // what the source is cited for; empty if unknown
	explained *atomic.Int64 // see maxExplained
	result    SourceResult
}

// cachedSearcher is the searcher for the text that was searched last.
type cachedSearcher struct {
	text     *snapshot.Text
	searcher *snapshot.Searcher
}

// find looks for a quote in the text.
func (c *comparison) find(q *snapshot.Quote) (snapshot.Match, bool) {
	if c.searcher.searcher == nil || c.searcher.text != c.text {
		*c.searcher = cachedSearcher{c.text, c.text.Searcher()}
	}
	return c.searcher.searcher.Find(q)
}

// near returns the text most similar to a missing excerpt, or nil if there is none or the comparison would cost too
// much.
func (c *comparison) near(excerpt string) *snapshot.Near {
	n := utf8.RuneCountInString(excerpt)
	if n < snapshot.MinNearest {
		return nil
	}
	blocks := int64(min(n, snapshot.MaxNearest)/64 + 1)
	if c.explained.Add(min(int64(len(c.text.Content))*blocks, 1<<27)) > maxExplained {
		return nil
	}
	near, _ := snapshot.Nearest(c.text.Content, excerpt)
	return near
}

func newComparison(
	cs *manifest.ClaimSource, src *manifest.Source, snap *snapshot.Snapshot, o *CompareOptions,
) *comparison {
	if src == nil {
		src = &manifest.Source{}
	}
	c := &comparison{cs: cs, src: src, snap: snap, hash: cmp.Or(cs.Hash, src.Hash)}
	c.searcher, c.explained = &cachedSearcher{}, &atomic.Int64{}
	if o != nil {
		c.options = *o
	}
	return c
}

// end sets the status of the result and returns it.
func (c *comparison) end(s Status, note string) SourceResult {
	c.result.Status, c.result.Counts, c.result.Note = s, s.counts(), note
	return c.result
}

// compare implements [Compare].
func (c *comparison) compare(fetchErr error) SourceResult {
	cs, src, snap, r := c.cs, c.src, c.snap, &c.result
	switch {
	case strings.HasPrefix(cs.URL, manifest.SourceURN):
		return c.end(NotDereferenceable, "The source has no address.")
	case slices.ContainsFunc([]string{c.hash, cs.ExcerptHash, src.TextHash}, func(hash string) bool {
		return hash != "" && !strings.HasPrefix(hash, "sha256:")
	}):
		return c.end(AlgorithmUnsupported, "A hash uses an algorithm other than sha256.")
	case fetchErr != nil:
		if f, ok := errors.AsType[*snapshot.FetchError](fetchErr); ok {
			r.Reason, r.HTTPStatus, r.FinalURL = f.Reason, f.Status, f.FinalURL
			return c.end(cmp.Or(Status(f.Kind), Unreachable), "")
		}
		return c.end(Unreachable, "The source could not be read: "+fetchErr.Error()+".")
	case snap == nil:
		return c.end(Unreachable, "The source was not fetched.")
	case !snap.Whole():
		return c.end(Unreachable, "Only the hash of the source is kept.")
	}
	if r.Hash = snap.Hash; r.Hash == "" {
		r.Hash = snapshot.Hash(snap.Octets)
	}
	r.HTTPStatus, r.FinalURL, r.CheckedAt = snap.Status, snap.FinalURL, snap.FetchedAt
	recorded, now := domain(cmp.Or(src.FinalURL, cs.URL)), domain(snap.FinalURL)
	r.Redirected = recorded != "" && now != "" && recorded != now
	c.unchanged = c.hash != "" && r.Hash == c.hash
	profile := snapshot.TextProfile
	if c.options.TextProfile == snapshot.TextProfile1 {
		profile = snapshot.TextProfile1
	}
	text, hash, err := c.options.Texts.As(snap, profile)
	switch {
	case err == nil:
		c.text, r.TextHash = text, hash
	case errors.Is(err, snapshot.ErrEmpty):
		c.text = &snapshot.Text{Profile: snapshot.TextProfile, Obstacle: snapshot.ObstacleEmpty}
		r.TextHash = snapshot.Hash(nil)
	case errors.Is(err, snapshot.ErrUnsupported) && c.unchanged:
		return c.end(VerifiedHashOnly, "The source is unchanged, and is not a document with text.")
	case errors.Is(err, snapshot.ErrTooLarge):
		return c.end(TooLarge, "The source could not be read as text: "+err.Error()+".")
	default:
		return c.end(UnsupportedMedia, "The source could not be read as text: "+err.Error()+".")
	}
	switch {
	case cs.Excerpt != nil && snapshot.Normalize(cs.Excerpt.Exact) != "":
		return c.compareExcerpt()
	case cs.ExcerptHash != "" && cs.ExcerptOffset != nil:
		return c.compareExcerptHash()
	case cs.ExcerptOffset != nil && c.unchanged && !c.advisory():
		return c.takeSlice()
	case c.unchanged:
		return c.end(VerifiedHashOnly, "The source is unchanged; no excerpt was recorded.")
	case c.textUnchanged():
		return c.end(DriftedTextIntact, textIntact)
	case c.hash == "" && src.TextHash == "":
		return c.end(NothingRecorded, "The source can be read; nothing was recorded of it.")
	}
	if r, ok := c.notComparable(""); ok {
		return r
	}
	return c.end(HashMismatch, "The source changed, and no excerpt was recorded.")
}

const (
	textIntact    = "The source changed; its text did not."
	excerptIntact = "The source changed and still has the excerpt."
)

// compareExcerpt compares the recorded excerpt with the text.
func (c *comparison) compareExcerpt() SourceResult {
	inPlace := c.isInPlace()
	if !inPlace {
		e := c.cs.Excerpt
		q := &snapshot.Quote{Exact: e.Exact, Prefix: e.Prefix, Suffix: e.Suffix}
		if at := c.cs.ExcerptOffset; at != nil {
			q.Start, q.End = at[0], at[1]
		}
		m, ok := c.find(q)
		if !ok && c.readAgain() {
			m, ok = c.find(q)
		}
		if !ok {
			return c.missingResult()
		}
		c.setMatch(m)
	}
	anywhere := c.cs.ExcerptOffset == nil
	switch {
	case c.result.isCut() || reformattings[c.result.Match.How] == "" && c.hash == "":
		return c.foundResult()
	case reformattings[c.result.Match.How] != "":
		return c.end(ExcerptReformatted, "The source has the excerpt "+reformattings[c.result.Match.How]+".")
	case c.unchanged && !inPlace && !anywhere && !c.advisory():
		return c.end(OffsetWrong, "The source is unchanged and has the excerpt, but not in the recorded place.")
	case !c.unchanged && !inPlace && !anywhere:
		return c.end(DriftedExcerptIntact, excerptIntact)
	}
	return c.foundResult()
}

// unquoted returns the result for a source that was read, and of which an answer names no words: the passage that is
// nearest to the claim. Words in a text that nobody quoted may support the claim; they do not differ from it.
func (c *comparison) unquoted(ctx context.Context) SourceResult {
	finder := support.Finder{Texts: c.options.Texts}
	found, err := finder.Find(ctx, []support.Sought{{Claim: c.claim, Text: c.text}})
	near := err == nil && found[0].Evidence.Len() > 0
	if near && (c.text.Obstacle == "" || found[0].Verdict.IsClose()) {
		c.result.Passage = strings.Clone(c.text.Around(found[0].Evidence))
	} else if c.text.Obstacle != "" {
		r, _ := c.notComparable("")
		return r
	}
	return c.end(SourceRead, "The source can be read; the answer quotes nothing of it.")
}

// reformattings are the forms in which a source may have an excerpt, besides that of the excerpt itself.
var reformattings = map[snapshot.MatchKind]string{
	snapshot.MatchReformatted: "with other white space, punctuation or forms of characters",
	snapshot.MatchUnmarked:    "without its markup",
	snapshot.MatchInterrupted: "with something between that is set apart",
	snapshot.MatchShortened:   "without what its ellipses leave out, in one passage",
}

// readAgain reads the text as this version does if it was read according to an earlier profile.
func (c *comparison) readAgain() bool {
	if c.text.Profile != snapshot.TextProfile1 {
		return false
	}
	text, _, err := c.options.Texts.Of(c.snap)
	if err == nil {
		c.text = text
	}
	return err == nil
}

// foundResult returns the result if the excerpt, or text with its hash, is in its place.
func (c *comparison) foundResult() SourceResult {
	switch {
	case c.result.isCut():
		return c.end(ExcerptCut, "The source has the excerpt, but as part of a number or word: "+
			"it may mean something else there.")
	case c.hash == "":
		return c.end(ExcerptFound, "No hash was recorded; the source has the excerpt.")
	case c.unchanged:
		return c.end(Verified, "")
	case c.textUnchanged():
		return c.end(DriftedTextIntact, textIntact)
	}
	return c.end(DriftedExcerptIntact, excerptIntact)
}

// missingResult returns the result if the source does not have the excerpt.
func (c *comparison) missingResult() SourceResult {
	c.result.Near = c.near(c.cs.Excerpt.Exact)
	const layer = "a text layer that programs read in different ways."
	switch {
	case c.unchanged && c.advisory():
		return c.end(VerifiedHashOnly,
			"The source is unchanged; its text layer, which programs read in different ways, "+
				"does not have the excerpt.")
	case c.unchanged && c.inferred():
		return c.end(VerifiedHashOnly,
			"The source is unchanged; what a checker took for evidence is not found in it.")
	case c.unchanged:
		return c.end(ExcerptMismatch, "The source is unchanged and does not have the excerpt: it was misquoted.")
	case c.advisory() && c.hash == "":
		return c.end(UnsupportedMedia, "The excerpt is not found in "+layer)
	case c.advisory():
		return c.end(HashMismatch, "The source changed, and the excerpt is not found in "+layer)
	case c.result.Near == nil && c.text.Obstacle != "" && !c.unchanged:
		r, _ := c.notComparable(c.cs.Excerpt.Exact)
		return r
	case c.hash == "" && c.inferred():
		c.end(ExcerptMissing, "What a checker took for evidence is not found, and no hash was recorded.")
		c.result.Counts = CountUnverifiable
		return c.result
	case c.result.Near != nil:
		return c.end(ExcerptAltered, "The source does not have the excerpt, only something similar.")
	}
	if r, ok := c.notComparable(c.cs.Excerpt.Exact); ok {
		return r
	}
	return c.end(ExcerptMissing, "The source does not have the excerpt.")
}

// compareExcerptHash compares the text in the recorded place with the hash of a private excerpt.
func (c *comparison) compareExcerptHash() SourceResult {
	switch {
	case c.isInPlace():
		return c.foundResult()
	case !c.unchanged:
		if r, ok := c.notComparable(""); ok {
			return r
		}
		return c.end(HashMismatch, "The excerpt's place has other text now, and the excerpt's words were not recorded.")
	case c.advisory() || c.inferred():
		return c.end(VerifiedHashOnly, "The source is unchanged; the private excerpt is not found in its place.")
	}
	return c.end(ExcerptMismatch, "The source is unchanged and has other text in the excerpt's recorded place.")
}

// takeSlice takes the text in the recorded place of an unchanged source as the excerpt, if only the place was recorded.
// It must lie within the text and begin and end with whole words. If several units fit, the slice that shares most
// words with the claim counts.
func (c *comparison) takeSlice() SourceResult {
	at, outside := c.cs.ExcerptOffset, true
	var best SourceResult
	most := -1.
	for _, unit := range []Unit{UnitText, UnitOctet, UnitUTF16} {
		slice, start, ok := c.slice(unit, at)
		if !ok {
			continue
		}
		outside = false
		if !c.hasWholeWords(slice, start) {
			continue
		}
		if share := sharedWords(c.claim, slice); share > most {
			c.result.Unit, c.result.Match = "", nil
			if unit != UnitText {
				if !c.setUnit(unit, slice, start) {
					continue
				}
			} else {
				c.setMatch(snapshot.Match{Start: at[0], End: at[1], How: snapshot.MatchExact, Count: 1})
			}
			most, best = share, c.result
		}
		if manifest.Profiled(c.options.TextProfile) {
			break
		}
	}
	switch {
	case most >= 0:
		c.result = best
		return c.end(Verified, "The text in the recorded place is the excerpt.")
	case outside:
		return c.end(ExcerptMismatch, "The recorded place lies outside the source's text.")
	}
	return c.end(ExcerptMismatch,
		"The recorded place begins or ends inside a word of the source, so it is not that of an excerpt.")
}

// slice returns the text at a place given in a unit, and its start in the text in code points, or -1 for octets, which
// have no known place in the text.
func (c *comparison) slice(unit Unit, at *manifest.Range) (slice string, start int, ok bool) {
	start, end := at[0], at[1]
	if start < 0 || end <= start {
		return "", 0, false
	}
	switch unit {
	case UnitOctet:
		if end > len(c.snap.Octets) || !utf8.Valid(c.snap.Octets[start:end]) {
			return "", 0, false
		}
		return string(c.snap.Octets[start:end]), -1, true
	case UnitUTF16:
		var okEnd bool
		start, ok = fromUTF16(c.text.Content, start)
		if end, okEnd = fromUTF16(c.text.Content, end); !ok || !okEnd {
			return "", 0, false
		}
	default:
	}
	slice, ok = snapshot.Slice(c.text.Content, start, end)
	return slice, start, ok
}

// hasWholeWords reports whether a slice begins and ends with whole words. It starts at start in the text, in code
// points; if start is negative, it is the octets in the recorded place.
func (c *comparison) hasWholeWords(slice string, start int) bool {
	var before, after string
	if start < 0 {
		before = string(c.snap.Octets[:c.cs.ExcerptOffset[0]])
		after = string(c.snap.Octets[c.cs.ExcerptOffset[1]:])
	} else {
		before, _ = snapshot.Slice(c.text.Content, 0, start)
		after = c.text.Content[min(len(before)+len(slice), len(c.text.Content)):]
	}
	first, _ := utf8.DecodeRuneInString(slice)
	last, _ := utf8.DecodeLastRuneInString(slice)
	previous, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	return !unicode.IsSpace(first) && !unicode.IsSpace(last) &&
		!isInsideWord(previous, first) && !isInsideWord(last, next)
}

// isInsideWord reports whether two adjacent characters belong to one word, in scripts with spaces between words.
func isInsideWord(a, b rune) bool {
	return !isNoLetter(a) && !isNoLetter(b) &&
		!unicode.In(a, scriptsWithoutSpaces...) && !unicode.In(b, scriptsWithoutSpaces...)
}

var scriptsWithoutSpaces = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi, unicode.Thai, unicode.Lao,
	unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// advisory reports whether programs extract different texts from the source, so that a missing excerpt proves nothing.
func (c *comparison) advisory() bool { return c.text.Profile == snapshot.PDFProfile }

// inferred reports whether the excerpt was found by a checker and is not quoted by anyone.
func (c *comparison) inferred() bool { return c.cs.ExcerptOrigin == manifest.OriginInferred }

func (c *comparison) textUnchanged() bool {
	return c.src.TextHash != "" && c.src.TextHash == c.result.TextHash
}

// setMatch records where the excerpt was found.
func (c *comparison) setMatch(m snapshot.Match) {
	c.result.Match = &m
	content := c.text.Content
	before, _ := snapshot.Slice(content, 0, m.Start)
	there, _ := snapshot.Slice(content[len(before):], 0, m.End-m.Start)
	end := len(before) + len(there)
	excerpt := cmp.Or(m.Text, there)
	place := ibid.Span{Start: len(before), End: end}
	block := c.blockOf(place)
	around := sentencesAround(content, block, place)
	if whole := content[around.Start:len(before)] + excerpt + content[end:around.End]; whole != excerpt {
		c.result.Sentences = whole
	}
	c.result.Excerpt = strings.Clone(excerpt) // so that the whole text can be freed
	if whole, cut := c.completed(block, place); cut {
		if whole.Start < place.Start {
			excerpt = content[whole.Start:place.Start] + strings.TrimLeft(excerpt, ellipsis)
		}
		if whole.End > end {
			excerpt = strings.TrimRight(excerpt, ellipsis) + content[end:whole.End]
		}
		c.result.Excerpt = strings.Clone(excerpt)
		c.result.Passage = strings.Clone(c.text.Around(place))
	}
	c.result.Corrections = c.corrections(block)
}

// domain returns the registrable domain of an address, or "" if it has no host.
func domain(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if d, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return d
	}
	return host // an IP address, or a name that cannot be registered
}

// isInPlace reports whether the excerpt, or text with its hash, is where the manifest says, and records it. If the
// manifest does not name our text profile, offsets may also be in octets of the document or in UTF-16 units.
func (c *comparison) isInPlace() bool {
	at := c.cs.ExcerptOffset
	if at == nil || at[0] < 0 || at[1] <= at[0] {
		return false
	}
	known := manifest.Profiled(c.options.TextProfile)
	for _, unit := range []Unit{UnitText, UnitOctet, UnitUTF16} {
		slice, start, ok := c.slice(unit, at)
		if e := c.cs.Excerpt; e != nil && e.Exact != "" {
			ok = ok && (slice == e.Exact || snapshot.Normalize(slice) == snapshot.Normalize(e.Exact))
		} else {
			ok = ok && c.cs.ExcerptHash != "" && snapshot.Hash([]byte(slice)) == c.cs.ExcerptHash
		}
		switch {
		case !ok:
		case unit == UnitText:
			if !known {
				c.result.Unit = UnitText
			}
			c.setMatch(snapshot.Match{
				Start: at[0], End: at[1], How: snapshot.MatchExact, Count: max(1, strings.Count(c.text.Content, slice)),
				Cut: snapshot.IsCut(c.text.Content, at[0], at[1]),
			})
			return true
		default:
			return c.setUnit(unit, slice, start)
		}
		if known {
			break
		}
	}
	return false
}

// setUnit records an excerpt that is in place if offsets are in another unit. Start is its place in the text; if it is
// negative, setUnit searches for it.
func (c *comparison) setUnit(u Unit, slice string, start int) bool {
	c.result.Unit = u
	q := snapshot.Quote{Exact: slice}
	if start >= 0 {
		q.Start, q.End = start, start+utf8.RuneCountInString(slice)
	}
	m, ok := c.find(&q)
	if !ok {
		c.result.Unit = ""
		return false // in markup or in a script, where readers do not see it
	}
	m.How = snapshot.MatchExact
	c.setMatch(m)
	return true
}

// fromUTF16 returns the index of the code point that begins at the n-th UTF-16 unit of a text, and false if none does.
func fromUTF16(text string, n int) (int, bool) {
	units, runes := 0, 0
	for _, r := range text {
		if units >= n {
			break
		}
		units += utf16.RuneLen(r)
		runes++
	}
	return runes, units == n
}
