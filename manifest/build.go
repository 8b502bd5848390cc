package manifest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// saltSize is the length of Builder.Salt in bytes.
const saltSize = 32

// Builder makes manifests of answers. The zero value does not read sources, so sources with a web address have no hash.
// It may be copied, and is safe for concurrent use as long as its functions are.
type Builder struct {
	Self, RunID, AgentID string // as in Manifest
	Supersedes           string // the URL of the manifest that the new one corrects
	ExpiresAt            time.Time
	Now                  func() time.Time // nil means time.Now

	// Read returns a snapshot of the cited source at url, which is clean (snapshot.CleanURL). It is called once for
	// each source, with up to 8 calls at once. Its error tells why the source could not be read; the kind of a
	// snapshot.FetchError is recorded. If Read is nil, or returns nil without an error, the source was not read.
	Read func(ctx context.Context, url string) (*snapshot.Snapshot, error)
	By   string // who calls Read: ByPublisher or ByObserver; empty means ByObserver
	// QuotedBy is the origin of the quotes in the answer's citations: OriginProvider, which empty means, or
	// OriginPublisher. In the latter case they are passages as the agent read them, and one that its source does not
	// have is not published as a quote.
	QuotedBy string
	// Own are the documents that the agent read itself, at addresses that can be published; the last one for each
	// address counts. They take precedence over Read, also for sources that are not cited, and are recorded as read by
	// ByPublisher.
	Own []*snapshot.Snapshot

	Texts   *snapshot.Texts // caches texts; nil disables caching between manifests
	Checker support.Checker // finds excerpts where there is no quote; nil means support.Lexical
	// Excerpts selects the sources whose titles and words are published; others are published with hashes only. Empty
	// means ExcerptsPublic.
	Excerpts Excerpts

	// Salt is the HMAC key for hashes of private inputs and outputs, without which they cannot be guessed. It must have
	// 32 bytes, and be kept for those who are to check these hashes. If it is nil, private data has no hash.
	Salt   []byte
	Public bool // publish inputs as they are, and outputs with a plain hash

	// The output that the manifest is bound to: the octets of the body without content codings, or their hash. If
	// neither is set, it is the answer's text in UTF-8. MediaType is the body's; empty means text/plain; charset=utf-8.
	Body      []byte
	BodyHash  string
	MediaType string
	// TextAt is the JSON Pointer of the answer's text in a body of the publisher's own form, for bodies whose octets
	// are not known here; in a stream, of its parts in the data of the events named TextEvent.
	TextAt, TextEvent string
}

// Excerpts selects the sources whose titles and words a manifest has.
type Excerpts string

// The values of Excerpts.
const (
	ExcerptsPublic Excerpts = "public" // sources with public addresses (snapshot.IsPublicURL)
	// ExcerptsAll is for all sources, including files, database rows, results of tools, and documents in private
	// networks.
	ExcerptsAll  Excerpts = "all"
	ExcerptsNone Excerpts = "none" // no sources
)

// setPrivate marks a source as private, which keeps its title and words out of the manifest, unless they may be
// published. Documents of a private network may be in a manifest whose own address is in a private network too.
func (b *Builder) setPrivate(s *source) {
	switch b.Excerpts {
	case ExcerptsAll:
	case ExcerptsNone:
		s.private = true
	default:
		public := b.Self == "" || snapshot.IsPublicURL(b.Self)
		s.private = s.user || s.local && public || strings.HasPrefix(s.URL, SourceURN)
	}
	if s.private {
		s.Title = ""
	}
}

// maxReads is how many sources are read concurrently.
const maxReads = 8

// memberLeftOut is the additional member in which Build counts what it left out of a manifest because of the limits, or
// because a citation has no place in the text: an object of numbers with the members claims, sources, claim_sources,
// steps and edges.
const memberLeftOut = "left_out"

// Build makes the manifest of an answer and of the run that led to it. It is deterministic. An answer that is nil, or
// has no citations, makes a manifest without claims; a nil trail is a run with one step, the model's.
//
// Each passage of the answer that is cited (ibid.Citation.Claim, or else its span) is one claim, with all the sources
// of all its citations. Claims with the same words in different places have the same id except for a suffix "-2", "-3"
// and so on. Citations without a place are left out. The confidence of a claim is the highest one that a provider gave
// for it.
//
// A quote is searched for in the source's text; if it is not there, it is published without an offset, so that others
// can see it. If there is no quote, or one too short to be meaningful, the excerpt is the evidence that the checker
// finds, marked as inferred; if it finds none, or the claim is not supported, there is no excerpt.
//
// Whatever exceeds the limits of manifests is left out (the last claims and sources, the first steps), and the ends of
// long claims and excerpts are cut off; memberLeftOut has the counts. For a source that could not be read, retrieved_at
// is the time when that was found out.
//
// The chain has the steps of the run, or, if the answer is that of an earlier step, this step and those it builds on. A
// nested run is part of its step, which has its sources. Steps keep their numbers unless one is not positive, occurs
// twice, or is not greater than those it builds on: then all are numbered from 1 in the order of their dependencies.
// Edges that close a cycle are left out. A claim was made by the step that gave the answer, or, if there is none, by
// those that no other builds on; and by those that, according to Trail.Link, it rests on.
//
// The error means that ctx ended, the checker failed, or the salt has the wrong size. Problems and Canonical tell
// whether the manifest can be published; with a valid URL, run and agent it can. A source that could not be read is not
// an error: the manifest records the reason.
func (b *Builder) Build(ctx context.Context, a *ibid.Answer, t *trail.Trail) (*Manifest, error) {
	if n := len(b.Salt); n != 0 && n != saltSize {
		return nil, fmt.Errorf("building a manifest: the salt has %d bytes, want %d", n, saltSize)
	}
	if a == nil {
		a = &ibid.Answer{}
	}
	w := &buildState{Builder: *b, answer: a, now: time.Now()}
	if b.Now != nil {
		w.now = b.Now()
	}
	if w.Texts == nil {
		w.Texts = &snapshot.Texts{}
	}
	w.Own = slices.DeleteFunc(slices.Clone(w.Own), func(s *snapshot.Snapshot) bool { return s == nil })
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

// buildState is the state of building one manifest.
type buildState struct {
	Builder
	answer  *ibid.Answer
	now     time.Time
	run     *run
	sources sources
	claims  []*claim
	leftOut leftOut
}

// leftOut counts what a manifest leaves out.
type leftOut struct {
	Claims       int `json:"claims,omitempty"`
	Sources      int `json:"sources,omitempty"`
	ClaimSources int `json:"claim_sources,omitempty"`
	Steps        int `json:"steps,omitempty"`
	Edges        int `json:"edges,omitempty"`
}

// manifest assembles the manifest and reduces it to the maximum size.
func (w *buildState) manifest() (*Manifest, error) {
	emitted := w.now // but not before any source was read
	for _, s := range w.sources.list {
		if s.snap != nil && s.snap.FetchedAt.After(emitted) {
			emitted = s.snap.FetchedAt
		}
	}
	m := &Manifest{
		Version: Version, Self: w.Self, RunID: w.RunID, AgentID: w.AgentID, EmittedAt: seconds(emitted),
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

// output returns the output, bound to the body or to the answer's text, or nil if there is neither.
func (w *buildState) output() *Output {
	o := &Output{
		MediaType: cmp.Or(w.MediaType, "text/plain; charset=utf-8"), Hash: w.BodyHash, TextAt: w.TextAt,
		TextEvent: w.TextEvent,
	}
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

// fit reduces m to MaxBytes by removing the last of the sources that are not cited, then the last claims, then the
// inputs of steps. It records in m what was left out.
func (w *buildState) fit(m *Manifest) error {
	for {
		m.Extra = nil
		if w.leftOut != (leftOut{}) {
			said, err := json.Marshal(w.leftOut)
			if err != nil {
				return fmt.Errorf("writing what was left out: %w", err)
			}
			m.Extra = Extra{memberLeftOut: said}
		}
		b, err := m.MarshalJSON() // the canonical form is no longer, except for rare numbers in inputs
		if err != nil {
			return err
		}
		if len(b) <= MaxBytes {
			return nil
		}
		if !w.shrink(m, len(b)-MaxBytes) {
			return errors.New("it is too large, even without claims")
		}
	}
}

// shrink removes about over bytes from m, but at least one thing. It returns false if nothing can be removed.
func (w *buildState) shrink(m *Manifest, over int) bool {
	sources, claims := len(m.Sources), len(m.Claims)
	for i := len(m.Sources) - 1; i >= 0 && over > 0; i-- {
		if s := &m.Sources[i]; s.Cited != nil && !*s.Cited {
			over -= size(s)
			url := s.URL
			m.Sources = slices.Delete(m.Sources, i, i+1)
			for k := range m.Chain {
				m.Chain[k].Sources = slices.DeleteFunc(m.Chain[k].Sources, func(in string) bool { return in == url })
			}
		}
	}
	for over > 0 && len(m.Claims) > 0 {
		last := len(m.Claims) - 1
		over -= size(&m.Claims[last])
		m.Claims = m.Claims[:last]
	}
	w.leftOut.Sources += sources - len(m.Sources)
	w.leftOut.Claims += claims - len(m.Claims)
	shrunk := sources+claims > len(m.Sources)+len(m.Claims)
	if shrunk {
		return true
	}
	for i := range m.Chain {
		shrunk = shrunk || m.Chain[i].Inputs != nil
		m.Chain[i].Inputs = nil
	}
	return shrunk
}

// size returns the approximate size of v as JSON, in bytes.
func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // Canonical returns the error
	}
	return len(b)
}

// modelTool is the tool of a step that calls no tool.
const modelTool = "model"

// chain returns the steps of the run.
func (w *buildState) chain(emitted Time) []Step {
	w.leftOut.Steps, w.leftOut.Edges = w.run.cut, w.run.edges
	ref := func(s *step) string { return "runs/" + w.RunID + "/step/" + strconv.Itoa(s.number) }
	chain := make([]Step, 0, len(w.run.steps))
	for _, s := range w.run.steps {
		out := Step{Step: s.number, Tool: cmp.Or(short(s.Tool), modelTool), OutputsRef: ref(s)}
		for _, b := range s.before {
			out.InputsRef = append(out.InputsRef, ref(b))
		}
		for _, one := range s.sources {
			if !one.dropped {
				out.Sources = append(out.Sources, one.URL)
			}
		}
		w.inputs(&out, s)
		out.OutputsHash = w.outputs(s)
		if !s.Started.IsZero() && s.Started.Year() > 0 && !s.Started.After(emitted.Time()) {
			out.StartedAt = seconds(s.Started)
			if end := s.Started.Add(s.Duration); s.Duration > 0 && !end.After(emitted.Time()) {
				out.EndedAt = seconds(end)
			}
		}
		chain = append(chain, out)
	}
	slices.SortStableFunc(chain, func(x, y Step) int { return cmp.Compare(x.Step, y.Step) })
	return chain
}

// inputs sets a step's inputs, or its question if nothing else is known, or the hash of either. A digest that the
// program made is published only if inputs are public, because short inputs can be guessed from it.
func (w *buildState) inputs(out *Step, s *step) {
	inputs := s.Inputs
	if len(inputs) == 0 && s.Question != "" {
		inputs, _ = json.Marshal(map[string]string{"question": s.Question}) // strings never fail
	}
	canonical := canonicalJSON(inputs)
	known := canonical != nil
	if w.Public && known {
		alone := Manifest{
			RunID: "1", AgentID: "a", EmittedAt: "2000-01-01T00:00:00Z",
			Chain: []Step{{Step: 1, OutputsRef: "1", Inputs: canonical}},
		}
		if _, err := alone.Canonical(); err == nil { // otherwise they exceed the limits of a manifest
			out.Inputs = canonical
			return
		}
	}
	switch {
	case w.Public && isDigest(s.InputsDigest):
		out.InputsHash = s.InputsDigest
	case !w.Public && known:
		out.InputsHash = w.private(canonical)
	}
}

// canonicalJSON returns b in the form of RFC 8785, or nil if it has none.
func canonicalJSON(b []byte) []byte {
	canonical := jsontext.Value(bytes.Clone(b))
	if canonical.Canonicalize() != nil {
		return nil
	}
	return canonical
}

// outputs returns the hash of a step's result: the text of its answer in UTF-8, or else its canonical outputs. The
// answer itself is not private.
func (w *buildState) outputs(s *step) string {
	octets := []byte(s.Answer)
	switch {
	case s.Answer != "" && s.Answer == w.answer.Text:
		return snapshot.Hash(octets)
	case s.Answer == "" && len(s.Outputs) > 0:
		if octets = canonicalJSON(s.Outputs); octets == nil {
			return ""
		}
	case s.Answer == "":
		if w.Public && isDigest(s.OutputsDigest) {
			return s.OutputsDigest
		}
		return ""
	}
	if w.Public {
		return snapshot.Hash(octets)
	}
	return w.private(octets)
}

// private returns the HMAC of octets under the salt, or "" if there is no salt.
func (w *buildState) private(octets []byte) string {
	if len(w.Salt) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, w.Salt)
	mac.Write(octets)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}
