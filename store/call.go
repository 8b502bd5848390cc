package store

import (
	"time"

	"github.com/ibidhq/ibid"
)

// Call is one captured call: who made it, what was asked, what was answered.
//
// A Call that was encoded or put is not to be changed any more: it remembers its encoding. Calls that the store returns
// are the receiver's to keep.
type Call struct {
	AnswerID     string // minted before the call; its identity within the tenant
	Tenant       string
	Upstream     string // the name of the gateway's upstream
	Route        string // method and path without query: "POST /v1/responses"
	Conversation string // empty: in none
	Run          string // empty: in none, and then there is no event of it
	Agent        string
	Strategy     string // name@version of what attributes the run's answers to sources; empty: nothing does
	Step         Step
	Prompt       []Message // what may be kept of what was asked
	Status       int       // of the HTTP response
	Started      time.Time
	FirstByte    time.Duration // from Started to the response's first byte
	Duration     time.Duration // from Started to the response's end
	Bytes        int64         // of the response's body
	// Refetch marks the GET of an earlier answer. Its answer replaces the one that is stored under tenant, upstream and
	// the provider's id, which keeps everything else, its AnswerID too. Where there is none, the call is dropped. It is
	// dropped as well when it would replace a complete answer by an incomplete one, or by one that lacks its citations.
	Refetch bool
	// Of is the AnswerID of the call whose answer this one is a later state of, where citations were found for it after
	// it had ended. It is stored as a refetch is, under that id instead of the provider's, and told as an
	// [EventBackfill]. Calls that the store returns have none.
	Of string
	// Publish says that the answer is to be published: a manifest of it is to be made. See [Store.DuePublications]. Of
	// a later state of another answer it does not matter: that is published if the other one is.
	Publish bool
	Body    *CallBody    // what the client got; nil: not known
	Answer  *ibid.Answer // never nil in a Call that is encoded or put

	encoded []byte
	keys    []string // of its sources, as a numbering takes them up; nil while there is no encoding
}

// CallBody names the octets of a response's body, so that a manifest can be bound to them.
type CallBody struct {
	Hash      string `json:"hash"` // "sha256:" and 64 lower-case hexadecimal digits: of the body without content codings
	MediaType string `json:"media_type,omitempty"`
}

// Step is the place of a call in its run.
type Step struct {
	Number int    `json:"number"`         // from 1; 0 in a Call that is put: the run's next
	Tool   string `json:"tool,omitempty"` // which tool the step is
	// the steps it builds on; nil: the one with the number before its own; empty: none
	After []int `json:"after"`
}

// Message is one message of a prompt.
type Message struct {
	Role string `json:"role"`
	Text string `json:"text"`
}
