package call

import (
	"bytes"
	"slices"

	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/scan"
)

// Given is what a request gives a model to answer from.
type Given struct {
	Passages []passage.Passage // in the order of the request
	// Unsure are passages that have nothing but numbers or labels in brackets, if nothing else is given and nothing
	// says that they are to be cited. They could be options or tasks: only an answer that cites them shows what they
	// are.
	Unsure    []passage.Passage
	Documents scan.Value // the list in a member of the request, as [wire.ReadDocuments] reads it
	// Round reports that sources are called by numbers in parentheses: (1).
	Round bool
}

// ReadGiven reads the passages in the messages of a request: in its instructions, in the user's turns and in the
// results of tools. Each message numbers its own. One whose numbers clash with those of a later one belongs to an
// earlier turn and is left out; others run on.
func ReadGiven(format string, body []byte) Given {
	var g Given
	r, err := ReadRequest(format, body)
	if err != nil {
		return g
	}
	g.Documents = scan.Value(bytes.TrimSpace(body)).Get("documents")
	var lists []givenList // the last message first
	turn, asked, cites := 0, false, false
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := &r.Messages[i]
		switch m.Role {
		case RoleAssistant:
			if asked {
				turn, asked = turn+1, false
			}
			continue
		case RoleUser:
			asked = true
		}
		p := passage.ReadPrompt(m.Text, m.Role == RoleTool)
		g.Round, cites = g.Round || p.Round, cites || p.Cites
		passages := p.Passages
		if len(passages) == 0 {
			passages = p.Options
		}
		if l := newGivenList(passages, turn); len(passages) > 0 && !l.clashes(lists) {
			l.unsure, l.options = p.Unsure, len(p.Passages) == 0
			lists = append(lists, l)
		}
	}
	for _, l := range slices.Backward(lists) {
		if l.options || l.unsure && !cites {
			g.Unsure = append(g.Unsure, l.passages...)
			continue
		}
		g.Passages = append(g.Passages, l.passages...)
	}
	if len(g.Passages) > 0 || !g.Documents.IsNull() {
		g.Unsure = nil
	}
	return g
}

// Gives reports whether a request gives, or may give, a model something to answer from.
func Gives(format string, body []byte) bool {
	g := ReadGiven(format, body)
	return len(g.Passages) > 0 || len(g.Unsure) > 0 || !g.Documents.IsNull()
}

// givenList is what one message gives.
type givenList struct {
	passages []passage.Passage
	labels   map[string]bool // empty if they are counted
	turn     int
	unsure   bool
	options  bool
}

func newGivenList(passages []passage.Passage, turn int) givenList {
	l := givenList{passages: passages, turn: turn, labels: map[string]bool{}}
	for i := range passages {
		if label := passages[i].Label; label != "" {
			l.labels[label] = true
		}
	}
	return l
}

// clashes reports whether the labels of l mean something else in a later list.
func (l *givenList) clashes(later []givenList) bool {
	for i := range later {
		other := &later[i]
		if len(l.labels) == 0 || len(other.labels) == 0 {
			if l.turn != other.turn || len(l.labels) != len(other.labels) {
				return true // positions in one list are not those in another
			}
			continue
		}
		for label := range l.labels {
			if other.labels[label] {
				return true
			}
		}
	}
	return false
}
