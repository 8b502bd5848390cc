package manifest

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid/snapshot"
)

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
	switch known := canonical != nil; {
	case w.Public && known && publishable(canonical):
		out.Inputs = canonical
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

// publishable reports whether inputs keep the limits of a manifest.
func publishable(inputs []byte) bool {
	m := Manifest{
		RunID:     "1",
		AgentID:   "a",
		EmittedAt: "2000-01-01T00:00:00Z",
		Chain:     []Step{{Step: 1, OutputsRef: "1", Inputs: inputs}},
	}
	_, err := m.Canonical()
	return err == nil
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
