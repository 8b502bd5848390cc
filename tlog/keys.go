package tlog

import (
	"crypto"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"
)

// keys are those of a log at one moment.
type keys struct {
	signer *signer  // nil: there is none
	vkeys  []string // of the signer, and of those that signed before
	ours   note.Verifiers
}

// keys asks for them. Without a signer there is an error, and what the former ones signed can be read all the same; the
// keys are nil if there is none at all, or one that is no log's.
func (l *Log) keys() (*keys, error) {
	private, former, missing := l.ask()
	if missing != nil {
		missing = fmt.Errorf("asking for the log's key: %w", missing)
	} else if private == nil {
		missing = errors.New("asking for the log's key: there is none")
	} else {
		former = append([]crypto.PublicKey{private.Public()}, former...)
	}
	k := &keys{}
	var verifiers []note.Verifier
	for _, public := range former {
		vkey, err := vkeyOf(l.origin, public)
		if err != nil {
			return nil, err
		}
		if slices.Contains(k.vkeys, vkey) {
			continue
		}
		v, err := newVerifier(vkey)
		if err != nil {
			return nil, err
		}
		k.vkeys, verifiers = append(k.vkeys, vkey), append(verifiers, v)
	}
	if len(verifiers) == 0 {
		return nil, missing
	}
	if missing == nil {
		k.signer = &signer{name: l.origin, hash: verifiers[0].KeyHash(), key: private}
	}
	k.ours = note.VerifierList(verifiers...)
	return k, missing
}
