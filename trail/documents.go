package trail

import (
	"fmt"
	"strings"
)

// documents tells which rows of a run's steps are passages of the same document.
type documents struct {
	rows  []docRow
	at    map[*Source]int // index in rows
	names []string        // what each document is called in this run: unique
	also  [][]string      // the other ids it has
	known map[string]int  // identity to document
}

// docRow is one row of a step, or of a run nested in it.
type docRow struct {
	*Source
	step     int // index in Trail.Steps
	document int
}

// documents returns the documents of the run, numbered by first use in the order of its steps. Rows are of the same
// document if they have the same id, or addresses that mean the same page; ids that only count places, and hashes of
// content, are not enough by themselves.
func (t *Trail) documents() *documents {
	d := &documents{at: make(map[*Source]int)}
	for i := range t.Steps {
		d.collect(&t.Steps[i], i, 0)
	}
	parent := make([]int, len(d.rows))
	byName := make(map[string]int, len(d.rows))
	for i := range d.rows {
		parent[i] = i
		for _, name := range identities(d.rows[i].Source) {
			if other, ok := byName[name]; ok {
				join(parent, i, other)
			} else {
				byName[name] = i
			}
		}
	}
	d.number(t, parent)
	d.known = make(map[string]int, len(byName))
	for name, row := range byName {
		d.known[name] = d.rows[row].document
	}
	return d
}

// of returns the document of a row.
func (d *documents) of(s *Source) int { return d.rows[d.at[s]].document }

// find returns the document that a source is, or -1.
func (d *documents) find(s *Source) int {
	for _, name := range identities(s) {
		if n, ok := d.known[name]; ok {
			return n
		}
	}
	return -1
}

func (d *documents) collect(s *Step, step, depth int) {
	for k := range s.Sources {
		d.rows = append(d.rows, docRow{Source: &s.Sources[k], step: step})
	}
	if s.Nested == nil || depth == MaxNested {
		return
	}
	for i := range s.Nested.Steps {
		d.collect(&s.Nested.Steps[i], step, depth+1)
	}
}

// identities returns the names by which a row's document is known: rows that share one are of the same document.
func identities(s *Source) []string {
	var names []string
	if web := s.webKey(); web != "" {
		names = append(names, "key "+web)
	}
	counted := positional(s.DocumentID)
	if s.Key != "" && (counted || s.DocumentID == s.Key || !strings.HasPrefix(s.Key, "sha256:")) {
		names = append(names, "key "+s.Key)
	}
	switch {
	case !counted:
		names = append(names, "id "+s.DocumentID)
	case len(names) == 0:
		names = append(names, "counted "+s.DocumentID)
	}
	return names
}

// join makes the sets of a and b one; the earlier row stands for it.
func join(parent []int, a, b int) {
	if a, b = root(parent, a), root(parent, b); a < b {
		parent[b] = a
	} else {
		parent[a] = b
	}
}

func root(parent []int, i int) int {
	for parent[i] != i {
		parent[i] = parent[parent[i]]
		i = parent[i]
	}
	return i
}

// number numbers the documents and names them: by their first id that does not only count places.
func (d *documents) number(t *Trail, parent []int) {
	numbers := make(map[int]int)
	var firsts []int // the first row of each document
	for i := range d.rows {
		r := &d.rows[i]
		n, ok := numbers[root(parent, i)]
		if !ok {
			n = len(firsts)
			numbers[root(parent, i)] = n
			firsts = append(firsts, i)
			d.names, d.also = append(d.names, r.DocumentID), append(d.also, nil)
		}
		r.document, d.at[r.Source] = n, i
		if positional(d.names[n]) && !positional(r.DocumentID) {
			d.names[n] = r.DocumentID
		}
	}
	taken := make(map[string]bool, len(d.names))
	for n, name := range d.names {
		for base, again := name, 0; taken[name]; again++ {
			name = fmt.Sprintf("%s@step_%d", base, t.Steps[d.rows[firsts[n]].step].Number)
			if again > 0 {
				name += fmt.Sprintf("_%d", again+1)
			}
		}
		taken[name], d.names[n] = true, name
	}
	seen := make(map[[2]string]bool)
	for i := range d.rows {
		r := &d.rows[i]
		name := d.names[r.document]
		if pair := [2]string{
			name, r.DocumentID,
		}; r.DocumentID != name && !strings.HasPrefix(name, r.DocumentID+"@step_") &&
			!seen[pair] {
			seen[pair] = true
			d.also[r.document] = append(d.also[r.document], r.DocumentID)
		}
	}
}
