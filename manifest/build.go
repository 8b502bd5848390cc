package manifest

import (
	"cmp"
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// SaltSize is how many bytes Builder.Salt has.
const SaltSize = 32

// Builder makes manifests of answers. Its zero value reads nothing, so that no source of a web address has a hash. It
// may be copied, and is safe for concurrent use as long as its functions are.
type Builder struct {
	Self, RunID, AgentID string // as in Manifest
	Supersedes           string // the URL of the manifest that the new one corrects
	ExpiresAt            time.Time
	Now                  func() time.Time // nil: time.Now

	// Read returns what was read of the cited source at url, which is clean (snapshot.CleanURL). It is called once for
	// each, for up to 8 at once. Its error says why the source could not be read; the word of a snapshot.FetchError is
	// kept. Nil, and nil without an error: the source was not read.
	Read func(ctx context.Context, url string) (*snapshot.Snapshot, error)
	By   string // who Read is: ByPublisher or ByObserver, which empty means
	// Own is what the agent read itself, of addresses that can be published; the last of one address counts. It goes
	// before Read, for sources that nobody cited, too, and by ByPublisher.
	Own []*snapshot.Snapshot

	Texts   *snapshot.Texts // nil: texts are made anew for each manifest
	Checker support.Checker // finds the excerpts that nobody quoted; nil: support.Lexical
	// Private says that the words of a source stay where they are: only their hashes are published. Nil: no source is
	// private.
	Private func(*ibid.Source) bool

	// Salt makes the hashes of private inputs and outputs, which nobody can guess who does not have it. It must be kept
	// for whoever is to check these, and have SaltSize bytes. Nil: what is private has no hash.
	Salt   []byte
	Public bool // inputs are published as they are, and outputs with a plain hash

	// The output that the manifest is bound to: the octets of the body without content codings, or their hash. With
	// neither it is the answer's text in UTF-8. MediaType is the body's; empty: text/plain; charset=utf-8.
	Body      []byte
	BodyHash  string
	MediaType string
}

// maxReads is how many sources are read at once.
const maxReads = 8

// MemberLeftOut is the member, beside those of the format, in which Build says what a manifest would have and has not,
// for the limits' sake or because its citation has no place in the text: an object of numbers with the members claims,
// sources, claim_sources, steps and edges.
const MemberLeftOut = "left_out"

// Build makes the manifest of an answer and of the run that led to it. Equal input makes equal manifests. An answer
// that is nil, or has no citations, makes one without claims; a nil trail is a run of one step, the model's.
//
// Each stretch of the answer that is cited (ibid.Citation.Claim, or else its span) is one claim, with all the sources
// of all citations of this stretch. Claims of the same words in different places have the same id but for a "-2", "-3"
// and so on at its end. What has no stretch, a citation without a place, is left out. The confidence of a claim is the
// greatest one that a provider gave for it.
//
// A quote of the provider is looked for in the source's text; one that is not there is published as it is, without an
// offset, so that others see it. Where there is no quote, or one too short to tell anything, the excerpt is the
// evidence that the checker finds, marked as inferred; if it finds none, or the claim is not supported, there is no
// excerpt.
//
// What is over the limits of manifests is left out (claims and sources at their end, steps at their beginning), and
// claims and excerpts are cut at their end; MemberLeftOut says how much. A source that could not be read has
// retrieved_at all the same: when that was found.
//
// The chain has the steps of the run, or if the answer is that of a step before the end, this step and those it builds
// on. A nested run is its step: its sources are the step's. Steps keep their numbers, unless one is not positive,
// occurs twice, or is not greater than those it builds on: then all are counted from 1 in the order in which they
// follow from each other. Edges of a cycle that lead back are left out. A claim was made by the step that gave the
// answer, or where none did, by those that no other builds on; and by those of which Trail.Link found that the claim
// rests on them.
//
// The error says that ctx ended, the checker could not work, or the salt has another size. Whether the manifest can be
// published, Problems and Canonical say; with a proper URL, run and agent it can. A source that could not be read is no
// error: the manifest says why.
func (b *Builder) Build(ctx context.Context, a *ibid.Answer, t *trail.Trail) (*Manifest, error) {
	if n := len(b.Salt); n != 0 && n != SaltSize {
		return nil, fmt.Errorf("building a manifest: the salt has %d bytes and should have %d", n, SaltSize)
	}
	if a == nil {
		a = &ibid.Answer{}
	}
	w := &building{Builder: *b, answer: a, now: time.Now()}
	if b.Now != nil {
		w.now = b.Now()
	}
	if w.Texts == nil {
		w.Texts = &snapshot.Texts{}
	}
	w.run = runOf(a, t)
	w.gather()
	w.findClaims()
	if err := w.readAll(ctx); err != nil {
		return nil, fmt.Errorf("building a manifest: %w", err)
	}
	if err := w.pinAll(ctx); err != nil {
		return nil, fmt.Errorf("building a manifest: %w", err)
	}
	m, err := w.manifest()
	if err != nil {
		return nil, fmt.Errorf("building a manifest: %w", err)
	}
	return m, nil
}

// building is the making of one manifest.
type building struct {
	Builder
	answer  *ibid.Answer
	now     time.Time
	run     *run
	sources sources
	claims  []*claim
	leftOut leftOut
}

// leftOut counts what a manifest has not.
type leftOut struct {
	Claims       int `json:"claims,omitempty"`
	Sources      int `json:"sources,omitempty"`
	ClaimSources int `json:"claim_sources,omitempty"`
	Steps        int `json:"steps,omitempty"`
	Edges        int `json:"edges,omitempty"`
}

// manifest puts together what was found, and leaves out what is over the size.
func (w *building) manifest() (*Manifest, error) {
	m := &Manifest{
		Version: Version, Self: w.Self, RunID: w.RunID, AgentID: w.AgentID, EmittedAt: w.emittedAt(),
		Supersedes: w.Supersedes, TextProfile: TextProfile, Output: w.output(),
	}
	if !w.ExpiresAt.IsZero() {
		m.ExpiresAt = seconds(w.ExpiresAt)
	}
	for _, s := range w.sources.list {
		m.Sources = append(m.Sources, s.Source)
	}
	m.Claims = make([]Claim, 0, len(w.claims))
	for _, c := range w.claims {
		m.Claims = append(m.Claims, c.Claim)
	}
	m.Chain = w.chain(m.EmittedAt)
	return m, w.fit(m)
}

// emittedAt is now, but never before a source was read.
func (w *building) emittedAt() Time {
	at := w.now
	for _, s := range w.sources.list {
		if s.snap != nil && s.snap.FetchedAt.After(at) {
			at = s.snap.FetchedAt
		}
	}
	return seconds(at)
}

// output binds the manifest to the body, or to the answer's text; nil: there is neither.
func (w *building) output() *Output {
	o := &Output{MediaType: cmp.Or(w.MediaType, "text/plain; charset=utf-8"), Hash: w.BodyHash}
	switch {
	case w.Body != nil:
		o.Hash = snapshot.Hash(w.Body)
	case o.Hash == "" && w.answer.Text == "":
		return nil
	case o.Hash == "":
		o.Hash = snapshot.Hash([]byte(w.answer.Text))
	}
	if w.answer.Text != "" {
		normal := snapshot.Normalize(w.answer.Text)
		length := utf8.RuneCountInString(normal)
		o.TextHash, o.TextLength = snapshot.Hash([]byte(normal)), &length
	}
	return o
}
