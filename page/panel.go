package page

import (
	"context"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

const (
	// maxQuotes is how many quotes of a source its panel shows.
	maxQuotes = 20
	// maxVersions is how many versions of a source its panel lists, and maxRead in how many of them quotes are looked
	// for.
	maxVersions, maxRead = 12, 4
	// maxRested is how many sentences of the answer a panel names.
	maxRested = 40
	// maxSummed is how many bytes may be stored of a run for a panel to say which of its steps use the source.
	maxSummed = 8 << 20
	// around is how many characters of context stand on either side of a quote.
	around = 300
	// maxWord is how many bytes of it are left out so that it begins and ends with a word.
	maxWord = 40
	// panelFor bounds how long making a panel may take, and stepsFor how long it waits for which steps of the run use
	// the source.
	panelFor = 15 * time.Second
	stepsFor = 3 * time.Second
	// maxSaving is how many kept copies are handed out to a tenant at the same time: each may be as large as
	// store.MaxCopy. saveFor is how long a reader may take to accept one.
	maxSaving = 4
	saveFor   = 5 * time.Minute
)

// panelBody is what a panel shows of a source.
type panelBody struct {
	Fragment  bool // it is shown beside the answer, and not alone
	N         int
	URL       string // of the panel
	Answer    link
	Title     string
	Letter    string
	Site      string
	Kind      string
	Open      string // where it can be opened, at its passage if possible; empty: nowhere
	Address   string // as the answer has it, whatever it is
	Original  string // as the provider sent it, if it differs
	Authors   string
	Published string
	License   string
	Retrieved time.Time
	Score     string
	Origin    string
	Uses      string

	Quotes     []*panelQuote
	MoreQuotes int
	Sent       *excerptView // the beginning of what the provider sent, where nothing is quoted
	Rested     []panelClaim
	MoreRested int
	Run        *link
	Steps      []stepRef
	StepsKnown bool
	Versions   []panelVersion
	More       bool // there are older versions
	Latest     *panelVersion
	Manifest   *panelManifest
	Busy       bool // too many copies are being read, so that none was
}

// panelClaim is a sentence of the answer that rests on the source.
type panelClaim struct {
	Text  string // as it reads; empty: the answer as a whole
	URL   string
	Badge badge

	claim string // as the answer has it
}

// panel makes a panel.
type panel struct {
	p      *Page
	tenant string
	call   *store.Call
	source *ibid.Source
	url    string // the source's address as it is looked up; empty: it has none
	body   *panelBody
}

// showPanel shows one source of an answer: a page of its own, or a fragment of the answer's.
func (p *Page) showPanel(w http.ResponseWriter, r *request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), panelFor)
	defer cancel()
	call, err := p.call(ctx, r.who.Tenant, id)
	if err != nil {
		return err
	}
	n := placeOf(r, len(call.Answer.Sources))
	if n == 0 {
		return store.ErrNotFound
	}
	one := &panel{p: p, tenant: r.who.Tenant, call: call, source: &call.Answer.Sources[n-1]}
	if err := one.make(ctx, n); err != nil {
		return err
	}
	one.body.Fragment = r.URL.Query().Has("fragment")
	s := &shown{name: "panel", view: &view{Title: one.body.Title, Section: "conversations", Body: one.body}}
	if one.body.Fragment {
		s.fragment = "panel"
	}
	return p.show(w, r, s)
}

func (o *panel) make(ctx context.Context, n int) error {
	s := o.source
	o.body = &panelBody{
		N:      n,
		URL:    answerURL(o.call.AnswerID) + "/sources/" + strconv.Itoa(n),
		Answer: link{o.call.AnswerID, answerURL(o.call.AnswerID)},
		Title: sourceTitle(
			s,
		),
		Letter:  letterOf(s),
		Site:    siteOf(s),
		Kind:    words(string(s.Kind)),
		Open:    passageURL(s, firstRef(o.call.Answer, s.ID)),
		Address: shownAddress(s.URL),
		Authors: strings.Join(
			s.Authors, ", ",
		),
		Published: published(s.PublishedAt),
		License:   s.License,
		Retrieved: s.RetrievedAt,
		Score:     score(s.Score),
		Origin:    originWords(s.ScoreOrigin),
		Uses:      usesURL(s.Key()),
	}
	if s.OriginalURL != s.URL {
		o.body.Original = shownAddress(s.OriginalURL)
	}
	o.url = cleanAddress(s.URL)
	for _, add := range []func(context.Context) error{o.addQuotes, o.addSteps, o.addManifest} {
		if err := add(ctx); err != nil {
			return err
		}
	}
	return nil
}

// firstRef returns the first ref to a source that quotes it, else the first of all; nil: there is none.
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

// addSteps says which steps of the answer's run use the source, if the run is not too large to be looked through for
// that.
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
	o.body.Run = &link{id, runURL(id)}
	if weight > maxSummed {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, stepsFor)
	defer cancel()
	s, err := o.p.o.API.Summary(waiting, o.tenant, id)
	if isGone(err) || waiting.Err() != nil {
		return nil // the panel then does not say it
	}
	if err != nil {
		return err
	}
	o.body.StepsKnown = true
	if s.Run.Question != "" {
		o.body.Run.Name = s.Run.Question
	}
	for i := range s.Sources {
		if f := &s.Sources[i]; isSame(f, o.source) {
			for _, n := range f.Steps {
				o.body.Steps = append(
					o.body.Steps,
					stepRef{n, runURL(id) + "?step=" + strconv.Itoa(n) + "#" + stepID(n)},
				)
			}
		}
	}
	return nil
}

// isGone reports whether an error says that something is not there.
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

// saveCopy hands out the octets of a source as they were read. Whatever they are, no browser shows them as a page of
// this origin.
func (p *Page) saveCopy(w http.ResponseWriter, r *request) error {
	digits, ok := strings.CutPrefix(r.PathValue("hash"), "sha256:")
	if b, err := hex.DecodeString(digits); !ok || err != nil || len(b) != 32 || digits != strings.ToLower(digits) {
		return store.ErrNotFound
	}
	release, ok := p.bounds.saving.take(r.who.Tenant, maxSaving)
	if !ok {
		return busy("Too many copies are being saved at the same time.")
	}
	defer release()
	version, err := p.readCopy(r.Context(), r.who.Tenant, "sha256:"+digits)
	if err != nil {
		return err
	}
	rc := http.NewResponseController(w)
	// a server that cannot set deadlines has its own ways with slow readers
	_ = rc.SetWriteDeadline(time.Now().Add(saveFor))
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	writeFile(w, r, digits+".bin", "application/octet-stream", version.Octets)
	return nil
}

// readCopy reads a kept copy. Only few are read at the same time, so that it is given back before it is handed out.
func (p *Page) readCopy(ctx context.Context, tenant, hash string) (*store.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	if err := p.bounds.reading.Acquire(ctx, 1); err != nil {
		return nil, gateway.Unavailable("too many copies are being read at the same time")
	}
	defer p.bounds.reading.Release(1)
	return p.o.Store.Copy(ctx, tenant, hash)
}
