package ibid

import "github.com/ibidhq/ibid/internal/wire"

// Mapping says where the responses of a provider of one's own have their text and their sources, so that
// [DecodeOptions].Mappings make [Decode] and [Decoder] read them, as the format generic-sources. An [Adapter] can read
// what a mapping cannot describe.
//
// A response is the provider's if [DecodeOptions].Provider is its name, or if it has a value at Member; without a
// Member, if it has both Text and List. All fields but Provider are paths: names of members with dots between them,
// such as result.sources. A number is an element of a list, counted from 0, and * is each element or member.
type Mapping struct {
	Provider string // as in [Answer]
	Member   string // that only this provider's responses have; may be empty
	Text     string // the answer's text. In a stream, what each event adds to it
	// Delta is what an event of a stream adds to the text, if that is elsewhere than Text, where a later event may then
	// repeat all of it. JSON lines are a stream only if they have it. May be empty.
	Delta string
	// List holds the sources: a list, a single source, or an object whose members are sources, by what marks call them.
	List string
	// The others are paths from an element of List. Where one is empty, the members of usual names are read.
	Title   string
	URL     string
	ID      string
	Passage string // the source's words; several are its chunks
	// Mark is what marks in the text call the source by: 3 or [3], doc-a. Empty means its position, from 1.
	Mark string
}

// CheckPath returns an error if a path of a [Mapping] is none.
func CheckPath(path string) error { return wire.CheckPath(path) }

// Check returns an error if a mapping lacks a name, Text or List, or has a path that is none.
func (m *Mapping) Check() error { return (*wire.Mapping)(m).Check() }
