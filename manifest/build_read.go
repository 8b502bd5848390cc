package manifest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
)

// Why a source has no hash, or a claim's source no excerpt or no offset: Source.Unavailable and
// ClaimSource.Unavailable, besides the words of snapshot.FetchErrorKind.
const (
	NotRead         = "not-read"          // nobody did
	NoContent       = "no-content"        // it has no address, and nothing was sent of it
	NoText          = "no-text"           // it was read, and has no text: an image, a damaged file
	AdvisoryText    = "advisory-text"     // a PDF, whose text programs read differently: no offset, no hash of it
	ExcerptNotFound = "excerpt-not-found" // the quote is not in the text
	ExcerptTooShort = "excerpt-too-short" // what was found or quoted is too short to tell anything
	ExcerptTooLong  = "excerpt-too-long"  // the quote is not in the text, and too long to be shown
	NoEvidence      = "no-evidence"       // nobody quoted, and the checker finds nothing that supports the claim
)

// plainText is what a provider's words are.
const plainText = "text/plain; charset=utf-8"

// readAll reads the sources, several at once, and makes their texts.
func (w *building) readAll(ctx context.Context) error {
	own := make(map[string]*snapshot.Snapshot, 2*len(w.Own))
	for _, s := range w.Own {
		if url := ownURL(s); url != "" {
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
			s.readSent()
		case w.Read == nil || !*s.Cited:
			s.Unavailable = NotRead
		default:
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				s.fetch(ctx, &w.Builder)
			})
		}
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range w.sources.list {
		s.describe(w)
	}
	return nil
}

func (s *source) fetch(ctx context.Context, b *Builder) {
	snap, err := b.Read(ctx, s.URL)
	switch {
	case err != nil:
		s.Unavailable = why(err)
	case snap == nil:
		s.Unavailable = NotRead
	default:
		s.read(snap, cmp.Or(b.By, ByObserver))
	}
}

// why returns the word for an error of reading a source.
func why(err error) string {
	var fetch *snapshot.FetchError
	if errors.As(err, &fetch) && fetch.Kind != "" {
		return string(fetch.Kind)
	}
	return string(snapshot.Unreachable)
}

// read says what was read.
func (s *source) read(snap *snapshot.Snapshot, by string) {
	s.snap, s.RetrievedBy, s.Status, s.MediaType = snap, by, snap.Status, short(snap.MediaType)
	if s.Hash = snap.Hash; s.Hash == "" {
		s.Hash = snapshot.Hash(snap.Octets)
	}
	if snap.FinalURL != "" {
		s.FinalURL = clean(snap.FinalURL)
	}
	s.UpstreamManifest = upstream(snap.Header)
}

// upstream returns the manifest that a document announces for itself: it is an agent's answer then. One that announces
// several was put together of several answers, and none of their manifests is of the whole.
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

// readSent takes what the provider sent of a source for the source: that is what the agent had.
func (s *source) readSent() {
	if len(s.pieces) == 0 {
		s.Unavailable = NoContent
		return
	}
	octets := []byte(strings.Join(s.pieces, "\n\n"))
	s.read(&snapshot.Snapshot{Octets: octets, MediaType: plainText}, ByPublisher)
}

// describe says when the source was read, and what its text is.
func (s *source) describe(w *building) {
	at := w.now // when it was found that it cannot be read
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

// seconds returns t as a manifest has it.
func seconds(t time.Time) Time { return At(t.Truncate(time.Second)) }
