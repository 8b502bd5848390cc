package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// fit leaves out of m what is over MaxBytes: the last of the sources that nobody cites, then the last claims, then the
// inputs of steps. It says in m what was left out.
func (w *building) fit(m *Manifest) error {
	for {
		if err := w.say(m); err != nil {
			return err
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
			m.dropSource(i)
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

// dropSource takes a source out of the manifest and of its steps.
func (m *Manifest) dropSource(i int) {
	url := m.Sources[i].URL
	m.Sources = slices.Delete(m.Sources, i, i+1)
	for k := range m.Chain {
		m.Chain[k].Sources = slices.DeleteFunc(m.Chain[k].Sources, func(s string) bool { return s == url })
	}
}

// size returns about how many bytes of JSON v is.
func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // Canonical says so
	}
	return len(b)
}

// say writes what was left out.
func (w *building) say(m *Manifest) error {
	m.Extra = nil
	if w.leftOut == (leftOut{}) {
		return nil
	}
	b, err := json.Marshal(w.leftOut)
	if err != nil {
		return fmt.Errorf("writing what was left out: %w", err)
	}
	m.Extra = Extra{MemberLeftOut: b}
	return nil
}
