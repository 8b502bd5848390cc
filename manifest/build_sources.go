package manifest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/trail"
)

// source is one source of a manifest that is being built.
type source struct {
	Source
	given            *ibid.Source // what the answer or the run records of it
	address          string       // where it is read: URL with its access parameters
	pieces           []string     // its content as sent by the provider, each piece once
	snap             *snapshot.Snapshot
	text             *snapshot.Text
	places           *ibid.Offsets // of text
	local            bool          // one of its addresses is not public
	user             bool          // an address has a user or password, or a signature or token in its query
	private, dropped bool
}

// foundAt records the properties of addresses at which the source was found, ignoring empty ones.
func (s *source) foundAt(addresses ...string) {
	for _, address := range addresses {
		u, err := url.Parse(address)
		s.user = s.user || err == nil && u.User != nil || snapshot.WithoutAccess(address) != address
		s.local = s.local || address != "" && !snapshot.IsPublicURL(address)
	}
}

// sources is a list of distinct sources, identified by address, or else by other names.
type sources struct {
	list     []*source
	byURL    map[string]*source
	byKey    map[string]*source // ibid.Source.Key
	byID     map[string]*source // within the run
	ofAnswer map[string]*source // by the ids of the answer
}

// Consulted returns the sources that an answer and its run drew on, cited or not, without reading any, so that a header
// can announce them before there is a manifest. Their ids and addresses are those that Build gives them.
func Consulted(a *ibid.Answer, t *trail.Trail) []Source { return (&Builder{}).consulted(a, t) }

func (b *Builder) consulted(a *ibid.Answer, t *trail.Trail) []Source {
	if a == nil {
		a = &ibid.Answer{}
	}
	w := &buildState{Builder: *b, answer: a, run: runOf(a, t)}
	w.gather()
	list := make([]Source, 0, len(w.sources.list))
	for _, s := range w.sources.list {
		list = append(list, s.Source)
	}
	return list
}

// Announce returns the members of a header that announces sources. manifest is empty at Level 1; digest is nil while
// the manifest is not built.
func Announce(sources []Source, manifest string, digest []byte) []Announcement {
	list := make([]Announcement, 0, len(sources))
	for i := range sources {
		s := &sources[i]
		list = append(list, Announcement{URL: s.URL, Manifest: manifest, Digest: digest})
	}
	return list
}

// gather lists the sources of the answer, then those of the run, then what else the agent read.
func (w *buildState) gather() {
	g := &w.sources
	*g = sources{
		byURL:    map[string]*source{},
		byKey:    map[string]*source{},
		byID:     map[string]*source{},
		ofAnswer: map[string]*source{},
	}
	cited := make(map[string]bool, len(w.answer.Sources))
	for i := range w.answer.Citations {
		for k := range w.answer.Citations[i].Refs {
			cited[w.answer.Citations[i].Refs[k].Source] = true
		}
	}
	for i := range w.answer.Sources {
		s := &w.answer.Sources[i]
		at := g.add(s, g.byURL[clean(s.URL)])
		g.name(at, s.ID, s.Key())
		if g.ofAnswer[s.ID] == nil {
			g.ofAnswer[s.ID] = at
		}
		if cited[s.ID] {
			*at.Cited = true
		}
	}
	maker := w.run.makers[len(w.run.makers)-1]
	for _, s := range g.list {
		maker.add(s)
	}
	for _, s := range w.run.steps {
		g.ofStep(s, s.Step, 0)
	}
	for _, s := range w.Own {
		if url := clean(s.URL); url != "" && g.byURL[url] == nil && g.byURL[clean(s.FinalURL)] == nil {
			g.add(&ibid.Source{URL: s.URL}, nil)
		}
	}
	w.limitSources()
	g.number()
	for _, s := range g.list {
		w.setPrivate(s)
	}
}

// clean returns a URL in the form that manifests have, without access parameters, or "" if there is none or manifests
// cannot have it.
func clean(url string) string {
	url, err := snapshot.CleanURL(snapshot.WithoutAccess(url))
	if err != nil || len(url) > MaxURL { // it is all ASCII
		return ""
	}
	return url
}

// short truncates s to the length of a name.
func short(s string) string { return text.Runes(strings.ToValidUTF8(s, ""), maxName) }

// add merges what is known of a source into at, or into a new source if at is nil.
func (g *sources) add(s *ibid.Source, at *source) *source {
	if at == nil {
		cited := false
		at = &source{given: s, Source: Source{Cited: &cited, Title: short(s.Title)}}
		g.list = append(g.list, at)
		if at.URL = clean(s.URL); at.URL != "" {
			g.byURL[at.URL] = at
			at.address, _ = snapshot.CleanURL(s.URL)
			if s.OriginalURL != "" && clean(s.OriginalURL) != at.URL {
				at.OriginalURL = clean(s.OriginalURL)
			}
		}
	}
	at.foundAt(s.URL, s.OriginalURL)
	at.addPiece(s.Content)
	for i := range s.Chunks {
		at.addPiece(s.Chunks[i].Content)
	}
	return at
}

func (s *source) addPiece(piece string) {
	if piece != "" && s.URL == "" && !slices.Contains(s.pieces, piece) {
		s.pieces = append(s.pieces, piece)
	}
}

// name registers names of s. A name that is taken keeps its source.
func (g *sources) name(s *source, id, key string) {
	if _, taken := g.byID[id]; !taken && id != "" {
		g.byID[id] = s
	}
	if _, taken := g.byKey[key]; !taken && key != "" && key != (&ibid.Source{}).Key() {
		g.byKey[key] = s
	}
}

// maxNested is how deeply nested runs are searched for sources.
const maxNested = 16

// ofStep adds the sources of a step, and of the runs nested in it, to the step chain.
func (g *sources) ofStep(chain *step, s *trail.Step, depth int) {
	for i := range s.Sources {
		r := &s.Sources[i]
		row := &ibid.Source{ID: r.DocumentID, Title: r.Title, URL: r.URL, Content: cmp.Or(r.Content, r.Excerpt)}
		at := g.known(row, r.Key)
		if at == nil && r.Key == "" && clean(r.URL) == "" {
			at = g.byID[r.DocumentID]
		}
		at = g.add(row, at)
		g.name(at, r.DocumentID, r.Key)
		chain.add(at)
	}
	for _, answer := range s.Answers {
		if answer.Answer == nil {
			continue
		}
		for i := range answer.Answer.Sources {
			other := &answer.Answer.Sources[i]
			at := g.known(other, other.Key())
			if at == nil {
				at = g.add(other, nil)
				g.name(at, "", other.Key()) // its id is meaningless outside that answer
			}
			chain.add(at)
		}
	}
	if s.Nested == nil || depth == maxNested {
		return
	}
	for i := range s.Nested.Steps {
		g.ofStep(chain, &s.Nested.Steps[i], depth+1)
	}
}

func (g *sources) known(s *ibid.Source, key string) *source {
	if url := clean(s.URL); url != "" {
		return g.byURL[url]
	}
	return g.byKey[key]
}

// limitSources keeps maxSources sources, cited ones first.
func (w *buildState) limitSources() {
	g := &w.sources
	over := len(g.list) - maxSources
	if over <= 0 {
		return
	}
	w.leftOut.Sources += over
	kept := 0
	for _, wanted := range []bool{true, false} {
		for _, s := range g.list {
			if *s.Cited == wanted {
				s.dropped = kept >= maxSources
				kept++
			}
		}
	}
	g.list = slices.DeleteFunc(g.list, func(s *source) bool { return s.dropped })
}

// number sets the ids of the sources, and the URNs of those without an address.
func (g *sources) number() {
	taken := map[string]bool{}
	for i, s := range g.list {
		s.ID = "s" + strconv.Itoa(i+1)
		if s.URL != "" {
			continue
		}
		name := urn(s.given)
		s.URL = name
		for n := 2; taken[s.URL]; n++ {
			s.URL = name + "-" + strconv.Itoa(n)
		}
		taken[s.URL] = true
	}
}

// maxURN is the maximum length in bytes of the id of a source without an address; longer ids are hashed.
const maxURN = 128

// urn returns the URN of a source without an address.
func urn(s *ibid.Source) string {
	id := cmp.Or(s.GlobalID, s.ID)
	var b strings.Builder
	for i := range len(id) {
		switch c := id[i]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() == 0 || b.Len() > maxURN {
		sum := sha256.Sum256([]byte(id + "\x00" + s.Key()))
		return SourceURN + hex.EncodeToString(sum[:16])
	}
	return SourceURN + b.String()
}

// The reasons why a source has no hash, or a claim's source no excerpt or no offset: Source.Unavailable and
// ClaimSource.Unavailable. Others are those of snapshot.FetchErrorKind.
const (
	NotRead         = "not-read"          // nobody read it
	NoContent       = "no-content"        // it has no address, and none of its content was sent
	NoText          = "no-text"           // it was read but has no text: an image, a damaged file
	AdvisoryText    = "advisory-text"     // a PDF, from which programs extract different texts: no offset, no text hash
	ExcerptNotFound = "excerpt-not-found" // the quote is not in the text
	ExcerptTooShort = "excerpt-too-short" // what was found or quoted is too short to mean anything
	ExcerptTooLong  = "excerpt-too-long"  // the quote is not in the text, and too long to publish
	NoEvidence      = "no-evidence"       // there is no quote, and the checker finds no support for the claim
)

// readAll reads the sources concurrently and extracts their texts.
func (w *buildState) readAll(ctx context.Context) error {
	own := make(map[string]*snapshot.Snapshot, 2*len(w.Own))
	for _, s := range w.Own {
		if url := clean(s.URL); url != "" {
			own[url], own[clean(s.FinalURL)] = s, s
		}
	}
	var wait sync.WaitGroup
	slots := make(chan struct{}, maxReads)
	for _, s := range w.sources.list {
		switch {
		case own[s.URL] != nil:
			s.read(own[s.URL], ByPublisher)
		case strings.HasPrefix(s.URL, SourceURN):
			if len(s.pieces) == 0 {
				s.Unavailable = NoContent
				continue
			}
			// The content that the provider sent stands in for the source: that is what the agent had.
			octets := []byte(strings.Join(s.pieces, "\n\n"))
			s.read(&snapshot.Snapshot{Octets: octets, MediaType: "text/plain; charset=utf-8"}, ByPublisher)
		case w.Read == nil || !*s.Cited:
			s.Unavailable = NotRead
		default:
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				snap, err := w.Read(ctx, s.address)
				switch {
				case err != nil:
					s.Unavailable = why(err)
				case snap == nil:
					s.Unavailable = NotRead
				default:
					s.read(snap, cmp.Or(w.By, ByObserver))
				}
			})
		}
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range w.sources.list {
		w.setPrivate(s) // it may have been redirected to an address that is not public
		s.describe(w)
	}
	return nil
}

// why returns the reason for an error of reading a source.
func why(err error) string {
	kind := snapshot.Unreachable
	if fetch, ok := errors.AsType[*snapshot.FetchError](err); ok {
		kind = cmp.Or(fetch.Kind, kind)
	}
	return string(kind)
}

// read records what was read.
func (s *source) read(snap *snapshot.Snapshot, by string) {
	s.snap, s.RetrievedBy, s.Status, s.MediaType = snap, by, snap.Status, short(snap.MediaType)
	s.foundAt(snap.URL, snap.FinalURL)
	if s.Hash = snap.Hash; s.Hash == "" {
		s.Hash = snapshot.Hash(snap.Octets)
	}
	if snap.FinalURL != "" {
		s.FinalURL = clean(snap.FinalURL)
	}
	s.UpstreamManifest = upstream(snap.Header)
}

// upstream returns the URL of the manifest that a document announces for itself, which makes it an agent's answer. A
// document that announces several was composed of several answers, and none of their manifests covers the whole.
func upstream(h http.Header) string {
	list, err := ParseHeader(h.Values(HeaderName))
	if err != nil {
		return ""
	}
	url := ""
	for i := range list {
		switch m := list[i].Manifest; {
		case m == "", m == url:
		case url == "":
			url = m
		default:
			return ""
		}
	}
	return clean(url)
}

// describe records when the source was read, and its text.
func (s *source) describe(w *buildState) {
	at := w.now // when it was found to be unreadable
	if said := s.given.RetrievedAt; !said.IsZero() && said.Year() > 0 && said.Before(at) {
		at = said
	}
	if s.snap == nil {
		s.RetrievedAt = seconds(at)
		return
	}
	if !s.snap.FetchedAt.IsZero() {
		at = s.snap.FetchedAt
	}
	s.RetrievedAt = seconds(at)
	s.readText(w.Texts)
}

func (s *source) readText(texts *snapshot.Texts) {
	text, hash, err := texts.Of(s.snap)
	if err != nil || text == nil {
		return
	}
	s.text, s.places = text, ibid.NewOffsets(text.Content)
	if text.Profile == TextProfile {
		length := utf8.RuneCountInString(text.Content)
		s.TextHash, s.TextLength = hash, &length
	}
}

// seconds returns t in whole seconds, in the form of a manifest.
func seconds(t time.Time) Time { return At(t.Truncate(time.Second)) }
