package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

const (
	// maxChanges is how many changes of sources are listed above an answer, each in a notice.
	maxChanges = 5
	// checkWait is how long a reader waits for sources to be read again, and checkLook the interval at which that is
	// polled.
	checkWait = 10 * time.Second
	checkLook = 300 * time.Millisecond
)

// trust is what the page of an answer knows about it in addition to the answer.
type trust struct {
	pins     map[string][]store.Pin // by the id of the citation, if a check of it failed
	found    excerpts               // nil if none were needed
	saved    map[string]savedCopy   // the cited copies, by the address of their source in pins
	manifest *panelManifest         // nil if none is published
	signer   string                 // who signs it: a host, or "this server"
	verify   string                 // where the manifest is verified; empty if nowhere
	again    string                 // where a reader can have the sources read again; empty if nowhere
	turn     string                 // the setting with which sources would be read; empty if they are, or none can be
	page     string                 // the address of the answer's page
	show     string                 // slug of the standing that the reader filtered for; empty for all
	// differing is the number of citations whose result changed when a reader had their sources read again; empty if no
	// one had.
	differing string
	late      bool // sources are still being read again
}

// savedCopy is a kept copy of a source.
type savedCopy struct {
	Hash string
	Read time.Time
}

// trustOf reads what is known about an answer in addition to it.
func (p *Page) trustOf(ctx context.Context, r *httpx.Request, call *store.Call) (*trust, error) {
	t := &trust{page: answerURL(call.AnswerID), show: asked(r, "show"), differing: asked(r, "differing")}
	if _, t.signer, _ = strings.Cut(p.baseURL(r), "://"); isHere(t.signer) {
		t.signer = "this server" // a loopback address identifies no one
	}
	var err error
	if t.manifest, err = p.manifestOf(ctx, r.Who.Tenant, call); err != nil {
		return nil, err
	}
	if t.manifest != nil && t.manifest.Digest != "" && p.o.Verifies {
		t.verify = verificationURL(call.AnswerID)
	}
	hasWeb := false
	for i := range call.Answer.Sources {
		hasWeb = hasWeb || openURL(&call.Answer.Sources[i]) != ""
	}
	switch may := r.Who.May(store.ScopeVerify) || r.Who.Token == ""; {
	case !hasWeb || !may || p.isPasted(call):
	case p.o.Recheck != nil:
		t.again = answerURL(call.AnswerID) + "/check"
	default:
		t.turn = "ibid serve --recheck 24h"
	}
	if since := int64(number(r, "checking")); since > 0 {
		pins, err := p.o.Store.AnswerPins(ctx, r.Who.Tenant, call.AnswerID)
		if err != nil {
			return nil, err
		}
		t.late = !isChecked(pins, time.UnixMicro(since), 1)
	}
	pins, err := p.pinsOf(ctx, r.Who.Tenant, call)
	if err != nil || pins == nil {
		return t, err
	}
	t.pins, t.saved, t.found = map[string][]store.Pin{}, map[string]savedCopy{}, foundIn(pins)
	for _, pin := range pins {
		if statusBadge(pin.Status, time.Time{}).Kind != badgeBad {
			continue
		}
		t.pins[pin.Citation] = append(t.pins[pin.Citation], pin)
		if _, known := t.saved[pin.URL]; known || len(t.saved) == maxChanges {
			continue
		}
		if t.saved[pin.URL], err = p.savedOf(ctx, r.Who.Tenant, &pin); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// pinsOf returns the pins of an answer; none if its citations have all that is shown.
func (p *Page) pinsOf(ctx context.Context, tenant string, call *store.Call) ([]store.Pin, error) {
	if !needsPins(call.Answer) {
		return nil, nil
	}
	return p.o.Store.AnswerPins(ctx, tenant, call.AnswerID)
}

// needsPins reports whether the citations of an answer lack something that its page shows of them.
func needsPins(a *ibid.Answer) bool {
	return slices.ContainsFunc(a.Citations, func(c ibid.Citation) bool {
		return quoteBadge(c.Verification).Kind == badgeBad ||
			c.Verification != nil && (quotesNothing(&c) || slices.ContainsFunc(c.Refs, isCutShort))
	})
}

// weighedWith returns the result for an answer with these pins, as its own page does.
func (p *Page) weighedWith(ctx context.Context, call *store.Call, pins []store.Pin) *weighed {
	var found excerpts
	if needsPins(call.Answer) {
		found = foundIn(pins)
	}
	return p.weighings.of(ctx, call, found)
}

// isCutShort reports whether the quote of a ref says that its source has more.
func isCutShort(r ibid.Ref) bool {
	before, after := snapshot.CutShort(r.Quote)
	return before || after
}

// foundIn returns the excerpts of pins, with what their sources had around those that were cut short.
func foundIn(pins []store.Pin) excerpts {
	found := excerpts{}
	for i := range pins {
		pin := &pins[i]
		if pin.Claim.Excerpt == nil || found[pin.Citation][pin.URL].text != "" {
			continue
		}
		if found[pin.Citation] == nil {
			found[pin.Citation] = map[string]sourceWords{}
		}
		words := sourceWords{text: pin.Claim.Excerpt.Exact}
		var result verify.SourceResult
		if json.Unmarshal(pin.Detail, &result) == nil && result.Passage != "" {
			words = sourceWords{result.Excerpt, result.Passage}
		}
		found[pin.Citation][pin.URL] = words
	}
	return found
}

// countStandings counts the citations of an answer by their standing, as on its own page but without feedback, and adds
// them to counts, the gravest first. Citations that are not compared with their quotes by the deadline count by what is
// known without it.
func (p *Page) countStandings(
	ctx context.Context, tenant string, counts []countedBadge, call *store.Call, until time.Time,
) ([]countedBadge, error) {
	pins, err := p.pinsOf(ctx, tenant, call)
	if err != nil {
		return nil, err
	}
	comparing, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	claims := p.weighedWith(comparing, call, pins).claims
	web := webSourcesOf(call.Answer)
	for i := range call.Answer.Citations {
		counts = countBadge(counts, standingOf(&call.Answer.Citations[i], web, reportOf(claims, i), nil).badge)
	}
	slices.SortStableFunc(counts, func(a, b countedBadge) int {
		return (&standing{badge: a.badge}).rank() - (&standing{badge: b.badge}).rank()
	})
	return counts, nil
}

// quotesNothing reports whether a citation names its sources without quoting them.
func quotesNothing(c *ibid.Citation) bool {
	return !slices.ContainsFunc(c.Refs, func(r ibid.Ref) bool { return strings.TrimSpace(r.Quote) != "" })
}

// savedOf returns the kept copy that a pin was made from, else the oldest listed one; the zero value if none is kept.
func (p *Page) savedOf(ctx context.Context, tenant string, pin *store.Pin) (savedCopy, error) {
	page, err := p.o.Store.Versions(ctx, tenant, pin.URL, &store.Query{Limit: maxVersions})
	if err != nil {
		return savedCopy{}, err
	}
	var oldest savedCopy
	for i := range page.Items {
		v := &page.Items[i]
		if !v.Kept {
			continue
		}
		oldest = savedCopy{v.Hash, v.FetchedAt}
		if v.Hash == pin.Source.Hash {
			break
		}
	}
	return oldest, nil
}

// manifestOf returns the manifest of an answer; nil if none is published. It is not checked here.
func (p *Page) manifestOf(ctx context.Context, tenant string, call *store.Call) (*panelManifest, error) {
	pub, err := p.o.Store.Pub(ctx, tenant, cmp.Or(call.Run, call.AnswerID))
	if err != nil {
		return nil, err
	}
	path, digest, err := p.o.Store.LastManifest(ctx, pub, call.AnswerID)
	if errors.Is(err, manifest.ErrNotFound) {
		return nil, nil //nolint:nilnil // having none is not an error
	}
	if err != nil {
		return nil, err
	}
	m := &panelManifest{URL: path, Digest: digest, Badge: badgeOf(aboutSignature, "pending")}
	if digest == "" {
		return m, nil
	}
	switch signed, err := p.o.Store.Manifest(ctx, path); {
	case err != nil:
		m.Badge = badgeOf(aboutSignature, "lost")
	case signed.SignatureInput == "":
		m.Badge = badgeOf(aboutSignature, "none")
	default:
		m.Badge = badgeOf(aboutSignature, "unchecked")
	}
	return m, nil
}

// trustView is the line under a question that sums up what is known about its answer.
type trustView struct {
	Parts   []trustPart
	Signed  string // empty if there is no manifest
	Verify  string
	Checked time.Time // when a source was last read again; zero if none was
	Ago     string
	Again   string
	Turn    string  // the setting with which sources are read; empty if they are, or none can be
	Late    bool    // sources are still being read again
	Read    string  // the result of just having had them read again; else empty
	Show    string  // the filter
	All     string  // the address without a filter
	Legend  []badge // explains the signs; nil if the page does so elsewhere
}

// trustPart is the number of citations or sentences with a standing. Its address filters for these.
type trustPart struct {
	badge

	Count int
	Text  string
	Slug  string
	URL   string
	On    bool
}

// trustLine counts the standings of an answer's citations.
func (l *layout) trustLine() *trustView {
	t := l.trust
	if t == nil || l.live || l.answer.Text == "" || l.strip && len(l.answer.Sources) == 0 {
		return nil
	}
	v := &trustView{Verify: t.verify, Again: t.again, Turn: t.turn, Late: t.late, All: t.page}
	if n, err := strconv.Atoi(t.differing); err == nil {
		v.Read = "Its sources were read again just now: nothing changed."
		if n > 0 {
			v.Read = "Its sources were read again just now: " + counted(n, "quote has", "quotes have") +
				" a different result."
		}
	}
	if t.manifest != nil {
		v.Signed = map[string]string{"unchecked": "signed by " + t.signer, "none": "not signed"}[t.manifest.Badge.Code]
	}
	counts, first := map[string]int{}, map[string]badge{}
	for i := range l.standings {
		s := &l.standings[i]
		if counts[s.Word]++; counts[s.Word] == 1 {
			first[s.Word] = s.badge
		}
		if c := l.answer.Citations[i].Verification; c != nil && c.CheckedAt.After(v.Checked) {
			v.Checked = c.CheckedAt
		}
	}
	n := len(l.weighed.bare)
	if l.sentences != nil {
		n = l.sentences.bare()
	}
	if n > 0 {
		counts[wordBare], first[wordBare] = n, badge{Kind: badgeBare, Word: wordBare}
	}
	// What was found, then what is wrong, the gravest first, then what is not known.
	order := append([]string{wordFound, wordSupported}, gravity[:len(gravity)-3]...)
	for _, word := range append(order, wordBare, wordUnchecked, wordNoQuote) {
		n := counts[word]
		if n == 0 {
			continue
		}
		part := trustPart{badge: first[word], Count: n, Slug: slug(word), On: t.show == slug(word)}
		switch word {
		case wordNoQuote:
			part.Text = counted(n, "citation without a quote", "citations without a quote")
		case wordBare:
			part.Text = counted(n, "sentence without a source", "sentences without a source")
		default:
			part.Text = countedBadge{first[word], n}.Text()
		}
		if l.checking && word == wordUnchecked {
			part.Text = "checking " + counted(n, "quote", "quotes") + " …"
		}
		part.URL = t.page + "?show=" + part.Slug
		if part.On {
			v.Show, part.URL = part.Slug, t.page
		}
		v.Parts = append(v.Parts, part)
	}
	switch {
	case l.strip:
		v.Turn = ""
	case len(v.Parts) > 0:
		v.Legend = legendOf(v.Parts)
	}
	if l.checking {
		v.Again = ""
	} else if !v.Checked.IsZero() {
		v.Ago = ago(time.Since(v.Checked))
	}
	return v
}

// ago returns how long ago something was, as people say it.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min ago"
	case d < 24*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h ago"
	}
	return counted(int(d.Hours()/24), "day", "days") + " ago"
}

// changeNotices returns notices of sources that no longer have, or never had, what the answer cites, and of wrong
// sources.
func (l *layout) changeNotices() []notice {
	if l.trust == nil {
		return nil
	}
	var all []notice
	seen, more := map[string]bool{}, 0
	// isWanted reports whether a notice is new, and there are not too many.
	isWanted := func(key string) bool {
		if seen[key] {
			return false
		}
		seen[key] = true
		if len(all) == maxChanges {
			more++
			return false
		}
		return true
	}
	for i := range l.answer.Citations {
		c := &l.answer.Citations[i]
		for k := range l.trust.pins[c.ID] {
			pin := &l.trust.pins[c.ID][k]
			n := notice{Kind: badgeBad, Text: readWords[statusBadge(pin.Status, time.Time{}).Word]}
			if change := changeOf(pin); change != nil {
				n.Text = change.sentence(plainWords(claimOf(l.answer, c)))
			}
			at := l.sourceAt(pin.URL)
			if n.Text == "" || at < 0 || !isWanted(pin.URL+"\x00"+n.Text) {
				continue
			}
			n.Links = append(n.Links, exportLink{panelURL(l.call.AnswerID, at+1), "See the change"})
			if saved := l.savedCopy(at); saved != nil {
				n.Links = append(n.Links, exportLink{saved.URL, "Saved copy of " + saved.On.UTC().Format("2 Jan")})
			}
			all = append(all, n)
		}
	}
	for i := range l.standings {
		if n := l.differsNotice(i); n.Text != "" && isWanted(n.Text) {
			all = append(all, n)
		}
	}
	if more > 0 {
		all = append(all, notice{Kind: badgeBad, Text: "And " + counted(more, "more change", "more changes") + "."})
	}
	return all
}

// differsNotice returns a notice on a citation whose quotes differ from its sentence: it has the words of both. The
// zero notice is empty.
func (l *layout) differsNotice(citation int) notice {
	if l.standings[citation].Word != wordDiffers || l.standings[citation].Note == "" {
		return notice{}
	}
	c := &l.answer.Citations[citation]
	differs := l.weighed.claims[citation].Differs[0]
	n := notice{Kind: badgeClose, Text: "The answer says “" + text.Shorten(line(differs.Claim), maxSaid) +
		"”, the source “" + text.Shorten(line(differs.Excerpt), maxSaid) + "”."}
	if at, ok := l.index[c.Refs[0].Source]; ok {
		n.Links = []exportLink{{panelURL(l.call.AnswerID, at+1), "See the source"}}
	}
	return n
}

// readWords are the sentences on a source that does not have what is cited from it.
var readWords = map[string]string{
	wordChanged:   "A source changed: it has similar words, but not the quoted ones.",
	wordMissing:   "A source does not have the words that the answer quotes.",
	wordMisquoted: "A source is unchanged and never had the words that the answer quotes.",
}

// sourceAt returns the index of the answer's source with an address in the form of pins; -1 if there is none.
func (l *layout) sourceAt(address string) int {
	for i := range l.answer.Sources {
		if cleanAddress(l.answer.Sources[i].URL) == address {
			return i
		}
	}
	return -1
}

// check has the sources of an answer read again, and redirects back when they were, or when it takes too long.
func (p *Page) check(w *httpx.Reply, r *httpx.Request) error {
	call, err := p.callOf(r.Context(), r)
	if err != nil {
		return err
	}
	if p.o.Recheck == nil {
		return errNotFound
	}
	begun := time.Now()
	before, err := p.o.Store.AnswerPins(r.Context(), r.Who.Tenant, call.AnswerID)
	if err != nil {
		return err
	}
	n, err := p.o.Recheck(r.Context(), call)
	if err != nil {
		return err
	}
	next := url.URL{Path: answerURL(call.AnswerID)}
	if r.Referer() != "" {
		next = *cameFrom(r)
	}
	after := before
	if n > 0 {
		if after, err = p.awaitCheck(r.Context(), call, begun, n); err != nil {
			return err
		}
	}
	q := url.Values{}
	switch {
	case n > 0 && after == nil:
		q.Set("checking", strconv.FormatInt(begun.UnixMicro(), 10))
	default:
		q.Set("differing", strconv.Itoa(countDiffering(before, after)))
	}
	next.RawQuery = q.Encode()
	http.Redirect(w, r.Request, next.RequestURI(), http.StatusSeeOther)
	return nil
}

// countDiffering returns the number of pins whose status differs from before.
func countDiffering(before, after []store.Pin) int {
	known := map[[2]string]string{}
	for i := range before {
		known[[2]string{before[i].Citation, before[i].URL}] = string(before[i].Status)
	}
	n := 0
	for i := range after {
		if was, ok := known[[2]string{after[i].Citation, after[i].URL}]; ok && was != string(after[i].Status) {
			n++
		}
	}
	return n
}

// isChecked reports whether all pins, which are of at least so many sources, were compared since a time.
func isChecked(pins []store.Pin, since time.Time, sources int) bool {
	read := map[string]bool{}
	for i := range pins {
		if pins[i].CheckedAt.Before(since) {
			return false
		}
		read[pins[i].URL] = true
	}
	return len(read) >= sources
}

// awaitCheck waits until so many sources of an answer were read again, and all that is known to be cited was compared,
// and returns the new pins; nil if it takes longer.
func (p *Page) awaitCheck(ctx context.Context, call *store.Call, since time.Time, sources int) ([]store.Pin, error) {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	tick := time.NewTicker(checkLook)
	defer tick.Stop()
	for {
		pins, err := p.o.Store.AnswerPins(ctx, call.Tenant, call.AnswerID)
		switch {
		case err != nil && ctx.Err() == nil:
			return nil, err
		case err == nil && isChecked(pins, since, sources):
			return pins, nil
		}
		select {
		case <-tick.C:
		case <-p.closing.Done():
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		}
	}
}
