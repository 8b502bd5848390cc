package verify

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// SourceResult is what was found about one source of one claim. It is plain data.
type SourceResult struct {
	Status Status `json:"status"`
	Counts Counts `json:"counts"`
	// of what was not read: dns, connect, tls, timeout, 5xx, 429 …; of an archive's copy: why the source was not read
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"` // a sentence for a person
	// what the source says, if it passed: evidence for the claim
	Excerpt string `json:"excerpt,omitempty"`
	// where the excerpt stands now; nil: nowhere, or none was recorded
	Match *snapshot.Match `json:"match,omitempty"`
	Near  *snapshot.Near  `json:"near,omitempty"` // what stands there instead
	// what the recorded offset turned out to count in, where the manifest does not say
	Unit       Unit      `json:"unit,omitempty"`
	Hash       string    `json:"hash,omitempty"`      // of the octets now
	TextHash   string    `json:"text_hash,omitempty"` // of the text now
	HTTPStatus int       `json:"http_status,omitempty"`
	FinalURL   string    `json:"final_url,omitempty"`
	Redirected bool      `json:"redirected,omitempty"` // FinalURL belongs to another domain than the one recorded
	CheckedAt  time.Time `json:"checked_at,omitzero"`  // when the source was read; zero: it was not
}

// Unit is what an offset counts.
type Unit string

// The units, in the order in which they are tried where a manifest names no text profile.
const (
	UnitText  Unit = "text"  // code points of the text
	UnitOctet Unit = "octet" // octets of the document
	UnitUTF16 Unit = "utf16" // UTF-16 code units of the text
)

// CompareOptions says what else is known of a comparison. Nil and the zero value mean: nothing.
type CompareOptions struct {
	Texts *snapshot.Texts // nil: texts are not remembered
	// of the manifest; any other than manifest.TextProfile: its offsets may count in something else
	TextProfile string
}

// Compare says whether a source says what a manifest has it say. The source was fetched as snap, or could not be, for
// the reason fetchErr. A nil src means that the manifest has no source of that name. Compare does no I/O.
//
// The statuses are those of the attribution specification, §6 B, in the order of its table. Only what is there exactly,
// or by its letters, digits and symbols, passes (see [snapshot.Find]); what is merely similar explains a failure.
func Compare(
	cs *manifest.ClaimSource, src *manifest.Source, snap *snapshot.Snapshot, fetchErr error, o *CompareOptions,
) SourceResult {
	return newComparison(cs, src, snap, o).compare(fetchErr)
}

func newComparison(
	cs *manifest.ClaimSource, src *manifest.Source, snap *snapshot.Snapshot, o *CompareOptions,
) *comparison {
	if src == nil {
		src = &manifest.Source{}
	}
	c := &comparison{
		cs:        cs,
		src:       src,
		snap:      snap,
		hash:      cmp.Or(cs.Hash, src.Hash),
		ready:     &searched{},
		explained: &atomic.Int64{},
	}
	if o != nil {
		c.options = *o
	}
	return c
}

// compare does what [Compare] says.
func (c *comparison) compare(fetchErr error) SourceResult {
	cs, src, snap := c.cs, c.src, c.snap
	switch {
	case strings.HasPrefix(cs.URL, manifest.SourceURN):
		return c.say(NotDereferenceable, CountUnverifiable, "The source has no address.")
	case !isSHA256(c.hash) || !isSHA256(cs.ExcerptHash) || !isSHA256(src.TextHash):
		return c.say(AlgorithmUnsupported, CountUnverifiable, "A hash is of another algorithm than sha256.")
	case fetchErr != nil:
		return c.unread(fetchErr)
	case snap == nil:
		return c.say(Unreachable, CountUnverifiable, "The source was not fetched.")
	case !snap.Whole():
		return c.say(Unreachable, CountUnverifiable, "Of the source only the hash is kept.")
	}
	if c.result.Hash = snap.Hash; c.result.Hash == "" {
		c.result.Hash = snapshot.Hash(snap.Octets)
	}
	c.result.HTTPStatus, c.result.FinalURL, c.result.CheckedAt = snap.Status, snap.FinalURL, snap.FetchedAt
	c.result.Redirected = otherDomain(cmp.Or(src.FinalURL, cs.URL), snap.FinalURL)
	c.unchanged = c.hash != "" && c.result.Hash == c.hash
	if r, ok := c.read(); !ok {
		return r
	}
	switch {
	case cs.Excerpt != nil && snapshot.Normalize(cs.Excerpt.Exact) != "":
		return c.excerpt()
	case cs.ExcerptHash != "" && cs.ExcerptOffset != nil:
		return c.excerptHash()
	default:
		return c.noExcerpt()
	}
}

// FromArchive returns what is to be said of a source that could not be read, as live says, and whose archived copy was
// compared instead: where the copy passes, that. Whether the archive is one to believe is the caller's to know.
func FromArchive(live, archived SourceResult) SourceResult {
	if live.Counts != CountUnverifiable || !archived.Counts.Passes() {
		return live
	}
	archived.Note = fmt.Sprintf(
		"The source could not be read; its copy at %s was compared (%s).",
		ascii(hostOf(archived.FinalURL)),
		archived.Status,
	)
	archived.Status, archived.Reason = VerifiedFromArchive, string(live.Status)
	if archived.Counts == CountPass {
		archived.Counts = CountInfo
	}
	return archived
}

// comparison compares one source with what one claim says of it.
type comparison struct {
	cs        *manifest.ClaimSource
	src       *manifest.Source
	snap      *snapshot.Snapshot
	options   CompareOptions
	hash      string // that was recorded; empty: none
	unchanged bool
	text      *snapshot.Text
	ready     *searched
	explained *atomic.Int64 // of maxExplained
	result    SourceResult
}

// searched is the text that was searched last.
type searched struct {
	text *snapshot.Text
	in   *snapshot.Searcher
}

// find looks for a quote in the text.
func (c *comparison) find(q *snapshot.Quote) (snapshot.Match, bool) {
	if c.ready.in == nil || c.ready.text != c.text {
		*c.ready = searched{c.text, snapshot.NewSearcher(c.text.Content)}
	}
	return c.ready.in.Find(q)
}

// near returns what is similar to an excerpt that is not there; nil: nothing, or it would take too much.
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

func (c *comparison) say(s Status, counts Counts, note string) SourceResult {
	c.result.Status, c.result.Counts, c.result.Note = s, counts, note
	return c.result
}

// unread says why a source was not read.
func (c *comparison) unread(err error) SourceResult {
	var fe *snapshot.FetchError
	if !errors.As(err, &fe) {
		return c.say(Unreachable, CountUnverifiable, "The source could not be read: "+err.Error()+".")
	}
	c.result.Reason, c.result.HTTPStatus, c.result.FinalURL = fe.Reason, fe.Status, fe.FinalURL
	status := Unreachable
	switch fe.Kind {
	case snapshot.Blocked:
		status = Blocked
	case snapshot.RobotsDisallowed:
		status = RobotsDisallowed
	case snapshot.Gone:
		status = Gone
	case snapshot.AccessDenied:
		status = AccessDenied
	case snapshot.TooLarge:
		status = TooLarge
	case snapshot.UnsupportedMedia:
		status = UnsupportedMedia
	case snapshot.Unreachable:
	}
	return c.say(status, CountUnverifiable, "")
}

// read reads the source's text. False: it has none that could be compared.
func (c *comparison) read() (SourceResult, bool) {
	text, hash, err := c.options.Texts.Of(c.snap)
	switch {
	case err == nil:
		c.text, c.result.TextHash = text, hash
	case errors.Is(err, snapshot.ErrEmpty):
		c.text, c.result.TextHash = &snapshot.Text{Profile: snapshot.TextProfile}, snapshot.Hash(nil)
	case errors.Is(err, snapshot.ErrUnsupported) && c.unchanged:
		return c.say(VerifiedHashOnly, CountInfo, "The source is unchanged, and nothing that has a text."), false
	case errors.Is(err, snapshot.ErrTooLarge):
		return c.say(TooLarge, CountUnverifiable, "The source could not be read as text: "+err.Error()+"."), false
	default:
		return c.say(
			UnsupportedMedia, CountUnverifiable, "The source could not be read as text: "+err.Error()+".",
		), false
	}
	return SourceResult{}, true
}

// advisory reports whether programs differ in what the source's text is, so that what is not in it proves nothing.
func (c *comparison) advisory() bool { return c.text.Profile != snapshot.TextProfile }

// inferred reports whether nobody claims that the source says the excerpt: a checker found it.
func (c *comparison) inferred() bool { return c.cs.ExcerptOrigin == manifest.OriginInferred }

// excerpt compares the recorded excerpt with the text.
func (c *comparison) excerpt() SourceResult {
	e := c.cs.Excerpt
	inPlace := c.inPlace()
	if !inPlace {
		q := &snapshot.Quote{Exact: e.Exact, Prefix: e.Prefix, Suffix: e.Suffix}
		if at := c.cs.ExcerptOffset; at != nil {
			q.Start, q.End = at[0], at[1]
		}
		m, ok := c.find(q)
		if !ok {
			return c.notFound()
		}
		c.stands(m)
	}
	how := c.result.Match.How
	switch {
	case c.result.Match.Cut:
		return c.cut()
	case c.hash == "" && how != snapshot.MatchReformatted:
		return c.say(ExcerptFound, CountInfo, "No hash was recorded; the source has the excerpt.")
	case how == snapshot.MatchReformatted:
		return c.say(ExcerptReformatted, CountInfo, "The source has the excerpt with other white space or punctuation.")
	case c.unchanged && (inPlace || c.cs.ExcerptOffset == nil || c.advisory()):
		return c.say(Verified, CountPass, "")
	case c.unchanged:
		return c.say(
			OffsetWrong, CountWarning, "The source is unchanged and has the excerpt in another place than recorded.",
		)
	case c.textUnchanged() && (inPlace || c.cs.ExcerptOffset == nil):
		return c.say(DriftedTextIntact, CountPass, "The source changed; its text did not.")
	default:
		return c.say(DriftedExcerptIntact, CountInfo, "The source changed and still has the excerpt.")
	}
}

// cut says that what stands there is a part of a number or word, of which nobody knows what it means.
func (c *comparison) cut() SourceResult {
	return c.say(
		ExcerptCut, CountWarning,
		"The source has the excerpt, which begins or ends inside a number or word: it may mean something else there.",
	)
}

// notFound says what it means that the source does not have the excerpt.
func (c *comparison) notFound() SourceResult {
	c.result.Near = c.near(c.cs.Excerpt.Exact)
	switch {
	case c.unchanged && c.advisory():
		return c.say(
			VerifiedHashOnly,
			CountInfo,
			"The source is unchanged; its text layer, of which programs make different texts, does not show the excerpt.",
		)
	case c.unchanged && c.inferred():
		return c.say(
			VerifiedHashOnly, CountInfo,
			"The source is unchanged; what a checker took for its evidence is not found in it.",
		)
	case c.unchanged:
		return c.say(
			ExcerptMismatch, CountFailure, "The source is unchanged and does not have the excerpt: it was misquoted.",
		)
	case c.advisory() && c.hash == "":
		return c.say(
			UnsupportedMedia, CountUnverifiable,
			"The excerpt is not found in a text layer of which programs make different texts.",
		)
	case c.advisory():
		return c.say(
			HashMismatch, CountUnverifiable,
			"The source changed, and the excerpt is not found in a text layer of which programs make different texts.",
		)
	case c.hash == "" && c.inferred():
		return c.say(
			ExcerptMissing, CountUnverifiable,
			"What a checker took for evidence is not found, and no hash was recorded.",
		)
	case c.result.Near != nil:
		return c.say(ExcerptAltered, CountFailure, "The source does not have the excerpt, only something similar.")
	default:
		return c.say(ExcerptMissing, CountFailure, "The source does not have the excerpt.")
	}
}

// excerptHash compares what stands in place with the hash of an excerpt that is private.
func (c *comparison) excerptHash() SourceResult {
	if c.inPlace() {
		switch {
		case c.result.Match.Cut:
			return c.cut()
		case c.hash == "":
			return c.say(ExcerptFound, CountInfo, "No hash was recorded; the source has the excerpt.")
		case c.unchanged:
			return c.say(Verified, CountPass, "")
		case c.textUnchanged():
			return c.say(DriftedTextIntact, CountPass, "The source changed; its text did not.")
		default:
			return c.say(DriftedExcerptIntact, CountInfo, "The source changed and still has the excerpt.")
		}
	}
	switch {
	case !c.unchanged:
		return c.say(
			HashMismatch, CountUnverifiable,
			"Where the excerpt stood there is something else, and its words were not recorded.",
		)
	case c.advisory() || c.inferred():
		return c.say(
			VerifiedHashOnly, CountInfo, "The source is unchanged; the private excerpt is not found in its place.",
		)
	default:
		return c.say(
			ExcerptMismatch, CountFailure,
			"The source is unchanged and has something else where the excerpt is said to stand.",
		)
	}
}

// noExcerpt compares hashes only.
func (c *comparison) noExcerpt() SourceResult {
	switch {
	case c.unchanged:
		return c.say(VerifiedHashOnly, CountInfo, "The source is unchanged; no excerpt was recorded.")
	case c.textUnchanged():
		return c.say(DriftedTextIntact, CountPass, "The source changed; its text did not.")
	case c.hash == "" && c.src.TextHash == "":
		return c.say(NothingRecorded, CountUnverifiable, "The source can be read; nothing was recorded of it.")
	default:
		return c.say(HashMismatch, CountUnverifiable, "The source changed, and no excerpt was recorded.")
	}
}

func (c *comparison) textUnchanged() bool {
	return c.src.TextHash != "" && c.src.TextHash == c.result.TextHash
}

// stands notes where the excerpt stands.
func (c *comparison) stands(m snapshot.Match) {
	c.result.Match = &m
	excerpt, _ := snapshot.Slice(c.text.Content, m.Start, m.End)
	c.result.Excerpt = strings.Clone(excerpt) // so that it does not hold the whole text
}

// isSHA256 reports whether a hash is one that can be compared; an empty one says nothing.
func isSHA256(hash string) bool { return hash == "" || strings.HasPrefix(hash, "sha256:") }

// otherDomain reports whether two addresses belong to different domains, as these are registered.
func otherDomain(recorded, now string) bool {
	if recorded == now {
		return false
	}
	a, errA := url.Parse(recorded)
	b, errB := url.Parse(now)
	if errA != nil || errB != nil || a.Hostname() == "" || b.Hostname() == "" {
		return false
	}
	return domain(a.Hostname()) != domain(b.Hostname())
}

func domain(host string) string {
	host = strings.ToLower(host)
	if d, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return d
	}
	return host // an address, or a name that nobody can register
}
