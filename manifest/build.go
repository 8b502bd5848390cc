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

// saltSize is how many bytes Builder.Salt has.
const saltSize = 32

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
	By   string // who calls Read: ByPublisher or ByObserver; empty: ByObserver
	// QuotedBy says who quoted what the answer's citations quote: OriginProvider, which empty means, or
	// OriginPublisher: then these are passages as the agent read them, and one that a source does not have is not
	// quoted of it.
	QuotedBy string
	// Own is what the agent read itself, of addresses that can be published; the last of one address counts. It goes
	// before Read, for sources that nobody cited, too, and by ByPublisher.
	Own []*snapshot.Snapshot

	Texts   *snapshot.Texts // nil: texts are made anew for each manifest
	Checker support.Checker // finds the excerpts that nobody quoted; nil: support.Lexical
	// Excerpts says of which sources the titles and words are published; of the others their hashes are. Empty:
	// ExcerptsPublic.
	Excerpts Excerpts

	// Salt makes the hashes of private inputs and outputs, which nobody can guess who does not have it. It must be kept
	// for whoever is to check these, and have 32 bytes. Nil: what is private has no hash.
	Salt   []byte
	Public bool // inputs are published as they are, and outputs with a plain hash

	// The output that the manifest is bound to: the octets of the body without content codings, or their hash. With
	// neither it is the answer's text in UTF-8. MediaType is the body's; empty: text/plain; charset=utf-8.
	Body      []byte
	BodyHash  string
	MediaType string
}

// Excerpts says of which sources a manifest has the titles and words.
type Excerpts string

// Whose words are published.
const (
	ExcerptsPublic Excerpts = "public" // of sources with public addresses (snapshot.IsPublicURL)
	// ExcerptsAll is of all: also of files, of rows of a database, of what tools returned, and of private networks.
	ExcerptsAll  Excerpts = "all"
	ExcerptsNone Excerpts = "none" // of none
)

// keepBack keeps the title and words of a source out of the manifest, unless they may be published. Those of a private
// network may be in a manifest that nobody reads outside of one, as its own address says.
func (b *Builder) keepBack(s *source) {
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

// maxReads is how many sources are read at once.
const maxReads = 8

// memberLeftOut is the member, beside those of the format, in which Build says what a manifest would have and has not,
// for the limits' sake or because its citation has no place in the text: an object of numbers with the members claims,
// sources, claim_sources, steps and edges.
const memberLeftOut = "left_out"

// Build makes the manifest of an answer and of the run that led to it. Equal input makes equal manifests. An answer
// that is nil, or has no citations, makes one without claims; a nil trail is a run of one step, the model's.
//
// Each stretch of the answer that is cited (ibid.Citation.Claim, or else its span) is one claim, with all the sources
// of all citations of this stretch. Claims of the same words in different places have the same id but for a "-2", "-3"
// and so on at its end. What has no stretch, a citation without a place, is left out. The confidence of a claim is the
// greatest one that a provider gave for it.
//
// A quote is looked for in the source's text; one that is not there is published as it is, without an offset, so that
// others see it. Where there is no quote, or one too short to tell anything, the excerpt is the
// evidence that the checker finds, marked as inferred; if it finds none, or the claim is not supported, there is no
// excerpt.
//
// What is over the limits of manifests is left out (claims and sources at their end, steps at their beginning), and
// claims and excerpts are cut at their end; memberLeftOut says how much. A source that could not be read has
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
	if n := len(b.Salt); n != 0 && n != saltSize {
		return nil, fmt.Errorf("building a manifest: the salt has %d bytes and should have %d", n, saltSize)
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
	emitted := w.now // but never before a source was read
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

// fit leaves out of m what is over MaxBytes: the last of the sources that nobody cites, then the last claims, then the
// inputs of steps. It says in m what was left out.
func (w *building) fit(m *Manifest) error {
	for {
		m.Extra = nil
		if w.leftOut != (leftOut{}) {
			said, err := json.Marshal(w.leftOut)
			if err != nil {
				return fmt.Errorf("writing what was left out: %w", err)
			}
			m.Extra = Extra{memberLeftOut: said}
		}
		b, err := m.MarshalJSON() // what is canonical is no longer, but for rare numbers in inputs
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

// shrink leaves out as much of m as is over, by estimate, and always something; false: nothing is left to leave out.
func (w *building) shrink(m *Manifest, over int) bool {
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

// size returns about how many bytes of JSON v is.
func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // Canonical says so
	}
	return len(b)
}

// theModel is the tool of a step that calls none.
const theModel = "model"

// chain writes the steps of the run.
func (w *building) chain(emitted Time) []Step {
	w.leftOut.Steps, w.leftOut.Edges = w.run.cut, w.run.edges
	ref := func(s *step) string { return "runs/" + w.RunID + "/step/" + strconv.Itoa(s.number) }
	chain := make([]Step, 0, len(w.run.steps))
	for _, s := range w.run.steps {
		out := Step{Step: s.number, Tool: cmp.Or(short(s.Tool), theModel), OutputsRef: ref(s)}
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

// inputs says what a step was called with, or its question where nothing else is known, or the hash of that. A digest
// that the program made is published only where inputs are public: short inputs can be guessed from it.
func (w *building) inputs(out *Step, s *step) {
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
		if _, err := alone.Canonical(); err == nil { // else they are over the limits of a manifest
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

// canonicalJSON returns b by RFC 8785; nil: it is no JSON that has such a form.
func canonicalJSON(b []byte) []byte {
	canonical := jsontext.Value(bytes.Clone(b))
	if canonical.Canonicalize() != nil {
		return nil
	}
	return canonical
}

// outputs returns the hash of what came of a step: of the text of its answer in UTF-8, else of its canonical outputs.
// The answer itself is no secret.
func (w *building) outputs(s *step) string {
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

// private returns the hash of what only those can check who have the salt; empty: there is none.
func (w *building) private(octets []byte) string {
	if len(w.Salt) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, w.Salt)
	mac.Write(octets)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}
