package bus

import (
	"crypto/sha256"
	"encoding/base64"
)

// The subjects. Their version changes when a node could misread another's messages.
const (
	runPrefix     = "ibid.v1.run."
	listenSubject = "ibid.v1.listen"

	eventSuffix = ".event"
	liveSuffix  = ".live"
	allSuffixes = ".*"
)

// subject returns the common beginning of the run's subjects.
func (k runKey) subject() string { return runPrefix + token(k.tenant) + "." + token(k.run) }

// token makes one token of a subject out of any string: of one length, and without dots, blanks and wildcards. 192 bits
// of a hash are enough that nobody finds two strings with one token.
func token(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}
