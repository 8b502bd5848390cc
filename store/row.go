package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// maxLookup is how long a text may be that is looked up, in bytes. PostgreSQL's indexes take 2,704 for all columns of
// one.
const maxLookup = 384

// hashMark stands before the hash of what [lookup] does not take as it is.
const hashMark = "…sha256:"

// lookup returns s as what it is looked up by: itself, or a short form with its hash where it is too long, or has what
// a database's text cannot.
func lookup(s string) string {
	if len(s) <= maxLookup && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return plain(s[:min(len(s), maxLookup-80)]) + hashMark + hash(s)
}

// plain returns s as text that every database takes.
func plain(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// row is a call on its way into the store.
type row struct {
	*Call
	encoded []byte
	// For PostgreSQL.
	document string
	terms    string

	n         int64
	step      int
	counted   bool // nobody said the step
	refetched string
	pub       string   // the public id of its run; empty: it is not to be published
	cited     []string // the addresses that are to be read again
	// Of its event.
	seq   int64
	kind  string
	at    time.Time
	again bool // the answer was fetched again
}

// newRow works out what can be said of a call before its transaction begins.
func newRow(c *Call, postgres bool) (*row, error) {
	if c.AnswerID == "" || c.Tenant == "" {
		return nil, fmt.Errorf("%w: it has no answer id or no tenant", errCall)
	}
	encoded, err := c.Encode()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCall, err)
	}
	r := &row{Call: c, encoded: encoded, at: c.Ended()}
	if postgres {
		r.terms = tsvector(c)
		if r.document, err = postgresDocument(c); err != nil {
			return nil, fmt.Errorf("%w: %w", errCall, err)
		}
	}
	return r, nil
}

// tsvector returns the terms of an answer as PostgreSQL takes them.
func tsvector(c *Call) string {
	seen := map[string]bool{}
	var b strings.Builder
	var t tokenizer
	t.eachTerm(c, func(term []byte) bool {
		if seen[string(term)] {
			return false
		}
		seen[string(term)] = true
		b.WriteString("'")
		b.Write(term)
		b.WriteString("' ")
		return true
	})
	return b.String()
}

// numberedKeys returns the keys under which a numbering has the sources of c, in the order in which it takes them up.
func numberedKeys(c *Call) []string {
	if c.keys == nil { // it was decoded
		var fresh ibid.Numbering
		c.Answer.Document(&ibid.DocumentOptions{Bare: true, Numbering: &fresh})
		c.keys = inOrder(fresh)
	}
	return c.keys
}

// postgresDocument returns the document for queries by JSONB, which takes no NUL. What a provider sent besides is left
// out: it may hold numbers and depths that JSONB does not take.
func postgresDocument(c *Call) (string, error) {
	document := c.Answer.Document(&ibid.DocumentOptions{Bare: true, AnswerID: c.AnswerID})
	unverified(document)
	b, err := document.JSON()
	if err != nil {
		return "", err
	}
	return string(withoutNUL(bytes.ToValidUTF8(b, []byte("\uFFFD")))), nil
}

// withoutNUL replaces the escape of NUL by that of U+FFFD.
func withoutNUL(b []byte) []byte {
	const escape = `\u0000`
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(escape))
		if i < 0 {
			return b
		}
		at += i
		before := at
		for before > 0 && b[before-1] == '\\' {
			before--
		}
		if (at-before)%2 == 0 { // the backslash is not escaped itself
			copy(b[at:], `\uFFFD`)
		}
		at += len(escape)
	}
}

// answerEvent is the data of an [EventAnswer].
type answerEvent struct {
	AnswerID     string              `json:"answer_id"`
	Step         int                 `json:"step"`
	Tool         *string             `json:"tool"`
	Conversation *string             `json:"conversation"`
	Agent        *string             `json:"agent"`
	Upstream     string              `json:"upstream"`
	Provider     *string             `json:"provider"`
	Model        *string             `json:"model"`
	Complete     bool                `json:"complete"`
	Finish       *string             `json:"finish"`
	Citations    int                 `json:"citations"`
	Sources      int                 `json:"sources"`
	Error        *ibid.ProviderError `json:"error"`
	Refetch      bool                `json:"refetch"`
}

func (r *row) event() ([]byte, error) {
	a := r.Answer
	return json.Marshal(&answerEvent{
		r.AnswerID, r.step, nullable(r.Step.Tool), nullable(r.Conversation), nullable(r.Agent), r.Upstream,
		nullable(a.Provider), nullable(a.Model), a.Complete,
		nullable(string(a.Finish)),
		len(a.Citations), len(a.Sources), a.Error, r.again,
	})
}

// provider is by whose retention the answer goes.
func (r *row) provider() string { return lookup(cmp.Or(r.Answer.Provider, r.Upstream)) }

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// orNull returns what s is looked up by, or NULL for none.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return lookup(s)
}

func micros(t time.Time) int64 { return t.UnixMicro() }
func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
