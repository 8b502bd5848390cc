package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/tlog"
)

// maxSignatures is how many signatures of one manifest are tried: a publisher may sign with both an old and a new key.
const maxSignatures = 4

// requiredComponents lists the components that a manifest's signature must cover.
var requiredComponents = []httpsig.Component{
	{Name: "@status"}, {Name: "content-type"}, {Name: "content-digest"}, {Name: "@target-uri", Request: true},
}

// signatureResult is the result of verifying one signature: its key, or why it is not good.
type signatureResult struct {
	code       Status // empty if it is good
	why        string
	unresolved bool // it might be good, but the log could not be read
	key        *keyring.Key
	sig        *httpsig.Signature
}

// beforeRevocation reports whether the signature is valid, but its key was revoked after the time the signature claims:
// whoever stole the key could have made it since.
func (v *signatureResult) beforeRevocation() bool { return v.code == "" && !v.key.RevokedAt.IsZero() }

// checkSignature verifies the manifest's signatures, until one is good.
func (m *checked) checkSignature(ctx context.Context) error {
	message := &httpsig.Message{
		Status: m.served.Status, Header: m.header,
		Request: &httpsig.Message{Method: http.MethodGet, TargetURI: m.served.TargetURI},
	}
	signatures, err := httpsig.Parse(message)
	var all []*httpsig.Signature // those with our tag; if there are none, an unreadable one may be ours
	for _, s := range signatures {
		switch {
		case s.Tag == manifest.SignatureTag:
			all = append(all, s)
		case !s.Readable && s.Tag == "":
			err = s.Err
		}
	}
	switch {
	case err != nil && len(all) == 0:
		m.signature = CountFailure
		m.found(SignatureInvalid, "%s", sentence("The signature cannot be read", err))
		return nil
	case len(all) == 0 && m.RequireLevel >= 3:
		m.foundAs(Unsigned, CountFailure, "The manifest is not signed, and a signature is required.")
		return nil
	case len(all) == 0 && m.bare:
		m.found(Unsigned, "The file has no signature: it is in the response header of the manifest's URL.")
		return nil
	case len(all) == 0:
		m.found(Unsigned, "The manifest is not signed.")
		return nil
	}
	best := m.verifySignature(ctx, message, all[0])
	for _, s := range all[1:min(len(all), maxSignatures)] {
		if best.code == "" && !best.beforeRevocation() {
			break
		}
		if v := m.verifySignature(ctx, message, s); v.code == "" && (best.code != "" || !v.beforeRevocation()) {
			best = v
		}
	}
	if best.beforeRevocation() {
		// A signature whose key was revoked later counts only if the manifest is in the publisher's log, to which a
		// thief of the key has no access.
		if err := m.checkLog(ctx); err != nil {
			return err
		}
		if !m.out.Logged {
			best.code, best.unresolved = KeyRevoked, m.logUnread
			best.why = "no log proves that the manifest is older: whoever stole the key can write any date."
			if best.unresolved {
				best.why = "whether the manifest is in the publisher's log could not be checked."
			}
			best.why = "The key was revoked at " + best.key.RevokedAt.Format(time.RFC3339) + ", and " + best.why
		}
	}
	m.out.KeyID = best.sig.KeyID
	if best.sig.Created != nil {
		m.out.SignedAt = at(*best.sig.Created).Format(time.RFC3339)
	}
	if best.code != "" {
		m.signature = CountFailure
		if best.code == KeyUnavailable || best.unresolved {
			m.signature = CountUnverifiable
		}
		m.foundAs(best.code, m.signature, "%s", best.why)
		return nil
	}
	m.out.Verified = true
	m.found(SignatureValid, "The signature of key %s is valid, and the key was good when it was made.", best.key.ID)
	if !m.keysSeen {
		m.found(KeyFromBundle, "The key comes from the bundle; whether it is the publisher's was not checked.")
	}
	if m.man.EmittedAt.Time().After(at(*best.sig.Created).Add(skew)) {
		m.found(ManifestInconsistent, "The manifest claims to be emitted at %s, after it was signed.",
			m.man.EmittedAt)
	}
	return nil
}

func at(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// verifySignature checks whether one signature is valid and was made in time with a good key.
func (m *checked) verifySignature(ctx context.Context, message *httpsig.Message, s *httpsig.Signature) signatureResult {
	v := signatureResult{sig: s}
	bad := func(code Status, format string, args ...any) signatureResult {
		v.code, v.why = code, fmt.Sprintf(format, args...)
		return v
	}
	if s.Err != nil {
		return bad(SignatureInvalid, "%s", sentence("The signature cannot be read", s.Err))
	}
	if err := httpsig.CheckDigest(message.Header.Values("Content-Digest"), m.served.Body, "sha-256"); err != nil {
		return bad(SignatureInvalid, "%s", sentence("The body is not the one that was signed", err))
	}
	if s.Alg != "" && s.Alg != keyring.Ed25519 && s.Alg != keyring.ECDSAP256 {
		return bad(SignatureInvalid, "The algorithm of the signature, %s, is not allowed.", s.Alg)
	}
	lacks := ""
	missing := slices.IndexFunc(requiredComponents, func(c httpsig.Component) bool {
		return !slices.Contains(s.Components, c)
	})
	switch {
	case missing >= 0:
		lacks = `"` + requiredComponents[missing].Name + `"`
		if requiredComponents[missing].Request {
			lacks += ";req"
		}
	case s.Created == nil:
		lacks = "created"
	case s.KeyID == "":
		lacks = "keyid"
	}
	if lacks != "" {
		return bad(CoverageInsufficient, "The signature does not cover %s, which it must.", lacks)
	}
	key, code, why := m.findKey(ctx, s.KeyID)
	if key == nil {
		return bad(code, "%s", why)
	}
	v.key = key
	if err := s.Verify(message, key.Public); err != nil {
		return bad(SignatureInvalid, "%s", sentence("The signature is not valid", err))
	}
	created := at(*s.Created)
	said := created.Format(time.RFC3339)
	word, good := key.Good(created)
	switch {
	case !good && word == keyring.Revoked:
		return bad(KeyRevoked, "The key was revoked at %s, before the signature was made.",
			key.RevokedAt.Format(time.RFC3339))
	case s.Expires != nil && m.now.After(at(*s.Expires).Add(skew)):
		return bad(SignatureExpired, "The signature expired at %s.", at(*s.Expires).Format(time.RFC3339))
	case created.After(m.now.Add(skew)):
		return bad(NotYetValid, "The signature claims to be made at %s, which is in the future.", said)
	case !good:
		return bad(KeyOutsideValidity, "The key was not valid for signing at %s.", said)
	}
	return v
}

// checkAuthority checks whether the signer may speak for the agent and for the response.
func (m *checked) checkAuthority(ctx context.Context) error {
	host, _, _ := strings.Cut(m.man.AgentID, "/")
	if m.url == "" {
		m.found(AuthorityUnchecked, "Where the manifest comes from is unknown, and so is who speaks in it.")
		return nil
	}
	if !isAt(m.url, host) {
		m.found(AuthorityMismatch, "The manifest speaks for the agent %s, but comes from %s.",
			m.man.AgentID, hostOf(m.url))
		return nil
	}
	from := "" // the origin of what the manifest is about; empty if unknown
	switch {
	case m.upstream != nil:
		from = origin(m.upstream.source.URL)
	case m.response != nil && !m.response.hinted:
		from = origin(m.response.URL)
	}
	own := origin(m.url)
	switch {
	case m.stored && (!m.out.Verified || !m.keysSeen):
		m.found(AuthorityUnchecked, "Only the manifest itself says that it comes from %s.", host)
	case from == "" && m.response == nil && m.upstream == nil:
		m.found(AuthorityVerified, "The manifest comes from the host of its agent, %s.", host)
	case from == "":
		m.found(AuthorityUnchecked,
			"Where the response comes from is unknown; the manifest comes from the host of its agent, %s.", host)
	case from == own:
		m.found(AuthorityVerified, "Response and manifest come from the host of the agent, %s.", host)
	case m.directory(ctx, from, false).delegates(own):
		m.found(AuthorityVerified, "The origin of the response, %s, lets %s speak for it.", from, own)
	default:
		m.found(AuthorityMismatch, "The response comes from %s, which does not let manifests of %s speak for it.",
			from, own)
		return nil
	}
	if !m.out.Verified {
		return nil
	}
	for _, entry := range m.Trust {
		byHost := strings.EqualFold(strings.TrimSuffix(entry, "."), hostOf(m.url)) && m.keysSeen && unforgeable(m.url)
		if byHost || entry == m.out.KeyID {
			m.out.Trusted, m.out.TrustedBy = true, entry
			return nil
		}
	}
	return nil
}

// directory is what an origin publishes about itself: the level it promises, and its keys. It is stored in Memory as
// JSON.
type directory struct {
	FetchedAt time.Time           `json:"fetched_at"` // of Active
	Discovery *manifest.Discovery `json:"discovery"`  // nil if there is none, or it cannot be read
	Active    json.RawMessage     `json:"active"`     // the current keys; nil if they could not be fetched
	Former    json.RawMessage     `json:"former"`     // the former keys as well
	// FormerErr is why the published list of former keys could not be fetched: it may have the key.
	FormerErr string `json:"former_err"`

	err   error // why Active could not be fetched
	fresh bool  // fetched by this job
}

// directory returns what an origin publishes, fetched by this job or remembered. If fetching fails, remembered keys are
// good for a day.
func (j *job) directory(ctx context.Context, at string, again bool) *directory {
	j.all.mu.Lock()
	d := j.all.from[at]
	j.all.mu.Unlock()
	if d != nil && (d.fresh || !again) {
		return d
	}
	var kept *directory
	if b, err := j.Memory.Recall(ctx, memoryKeys, at); err == nil && b != nil {
		kept = &directory{}
		if json.Unmarshal(b, kept) != nil || kept.Active == nil || kept.FetchedAt.After(j.now.Add(skew)) {
			kept = nil
		}
	}
	if d = kept; kept == nil || again || j.now.Sub(kept.FetchedAt) > cmp.Or(j.KeyTTL, defaultKeyTTL) {
		d = j.fetchKeys(ctx, at)
		if d.err == nil {
			d.err = j.rememberRevoked(ctx, at, d)
		}
		if d.err == nil {
			if b, err := json.Marshal(d); err == nil {
				_ = j.Memory.Replace(ctx, memoryKeys, at, b) // at worst it is fetched again
			}
		} else if kept != nil && j.now.Sub(kept.FetchedAt) <= keyCache {
			d, kept.fresh = kept, true
		}
	}
	j.all.mu.Lock()
	defer j.all.mu.Unlock()
	j.all.from[at] = d
	return d
}

func (j *job) fetchKeys(ctx context.Context, at string) *directory {
	d := &directory{FetchedAt: j.now, fresh: true}
	var said manifest.Discovery
	snap, err := j.fetchOK(ctx, at+manifest.DiscoveryPath)
	if err == nil {
		if err = json.Unmarshal(snap.Octets, &said); err != nil {
			err = fmt.Errorf("reading a discovery document: %w", err)
		} else if major, _, _ := strings.Cut(said.Version, "."); major != "1" {
			err = fmt.Errorf("reading a discovery document: its version is %q, not 1", said.Version)
		} else {
			d.Discovery = &said
		}
	}
	if err != nil && !isMissing(err) {
		d.err = fmt.Errorf("reading the discovery document of %s: %w", at, err)
		return d
	}
	address, former := at+manifest.DirectoryPath, ""
	if d.Discovery != nil {
		address, former = cmp.Or(d.Discovery.JWKSURI, address), d.Discovery.ManifestKeysURI
	}
	if d.Active, d.err = j.fetchKeySet(ctx, at, address); d.err != nil || former == "" {
		return d
	}
	if d.Former, err = j.fetchKeySet(ctx, at, former); err != nil {
		d.FormerErr = err.Error()
	}
	return d
}

// fetchKeySet fetches a directory of keys.
func (j *job) fetchKeySet(ctx context.Context, at, address string) (json.RawMessage, error) {
	if origin(address) != at {
		return nil, fmt.Errorf("fetching the keys of %s: their URL is at another origin", at)
	}
	snap, err := j.fetchOK(ctx, address)
	if err != nil {
		return nil, err
	}
	if _, err := keyring.ParseDirectory(snap.Octets, &keyring.ParseOptions{TestKeys: true}); err != nil {
		return nil, fmt.Errorf("reading the keys at %s: %w", address, err)
	}
	return snap.Octets, nil
}

// fetchOK fetches a trust document, and fails unless the status is 200.
func (j *job) fetchOK(ctx context.Context, address string) (*snapshot.Snapshot, error) {
	snap, err := j.fetchTrusted(ctx, address, maxDirectory)
	if err == nil && snap.Status != http.StatusOK {
		return nil, fmt.Errorf("fetching %s: the status is %d, not 200", address, snap.Status)
	}
	return snap, err
}

// isMissing reports whether a fetch failed because the document does not exist.
func isMissing(err error) bool {
	f, ok := errors.AsType[*snapshot.FetchError](err)
	return ok && f.Kind == snapshot.Gone
}

// promised returns the highest level that is promised for what was emitted at a time, or 0 if there is none.
func (d *directory) promised(at time.Time) int {
	highest := 0
	if d.Discovery == nil {
		return highest
	}
	for _, level := range d.Discovery.Levels {
		since, dated := d.Discovery.LevelsSince[strconv.Itoa(level)]
		if !dated || !at.Before(since.Time()) {
			highest = max(highest, min(level, 3))
		}
	}
	return highest
}

// delegates reports whether the origin lets manifests of another origin speak for it.
func (d *directory) delegates(to string) bool {
	return d.Discovery != nil &&
		slices.ContainsFunc(d.Discovery.ManifestOrigins, func(other string) bool { return origin(other) == to })
}

// findKey returns the key of a signature, or a status and the reason why there is none.
func (m *checked) findKey(ctx context.Context, id string) (key *keyring.Key, code Status, why string) {
	at := origin(m.url)
	d := m.directory(ctx, at, false)
	key, code, why = m.keyIn(d, id)
	if key == nil && !d.fresh {
		d = m.directory(ctx, at, true) // the key may be new
		key, code, why = m.keyIn(d, id)
	}
	switch {
	case key != nil:
		m.keysSeen = true
		if m.served.JWKS == nil {
			m.served.JWKS = d.Active
			if keyByID(d.Active, id, m.TestKeys) == nil {
				m.served.JWKS = d.Former
			}
		}
	case m.stored && code == KeyUnavailable:
		key = keyByID(m.served.JWKS, id, m.TestKeys)
	}
	if key == nil {
		return nil, code, why
	}
	if err := m.staysRevoked(ctx, at, key); err != nil {
		return nil, KeyUnavailable, sentence("Whether the key was revoked before could not be looked up", err)
	}
	return key, "", ""
}

// staysRevoked revokes a key that its origin ever called revoked, from the earliest such time: who stole the key may be
// able to publish keys, too, and a publisher may have restored an old copy of them.
func (m *checked) staysRevoked(ctx context.Context, at string, key *keyring.Key) error {
	known, err := m.revokedBefore(ctx, at, key.ID)
	if err == nil && !known.IsZero() && (key.RevokedAt.IsZero() || known.Before(key.RevokedAt)) {
		key.RevokedAt = known
	}
	return err
}

// revokedBefore returns the earliest time from which an origin ever called a key revoked, zero if it did not.
func (j *job) revokedBefore(ctx context.Context, at, id string) (known time.Time, err error) {
	b, err := j.Memory.Recall(ctx, memoryRevoked, at+" "+id)
	if err != nil || known.UnmarshalText(b) != nil {
		return time.Time{}, err
	}
	return known, nil
}

// rememberRevoked remembers which of an origin's keys are revoked.
func (j *job) rememberRevoked(ctx context.Context, at string, d *directory) error {
	for _, set := range [][]byte{d.Active, d.Former} {
		if set == nil {
			continue
		}
		keys, err := keyring.ParseDirectory(set, &keyring.ParseOptions{TestKeys: true})
		if err != nil {
			return err
		}
		for i := range keys {
			revoked := keys[i].RevokedAt
			if revoked.IsZero() {
				continue
			}
			known, err := j.revokedBefore(ctx, at, keys[i].ID)
			if err == nil && (known.IsZero() || revoked.Before(known)) {
				text, _ := revoked.MarshalText() // fails only after the year 9999, which no directory may name
				err = j.Memory.Replace(ctx, memoryRevoked, at+" "+keys[i].ID, text)
			}
			if err != nil {
				return fmt.Errorf("remembering a revoked key of %s: %w", at, err)
			}
		}
	}
	return nil
}

func (m *checked) keyIn(d *directory, id string) (*keyring.Key, Status, string) {
	if d.err != nil {
		return nil, KeyUnavailable, sentence("The publisher's keys cannot be read", d.err)
	}
	key, former := keyByID(d.Active, id, m.TestKeys), keyByID(d.Former, id, m.TestKeys)
	switch {
	case former != nil && (key == nil || !former.RevokedAt.IsZero()):
		return former, "", ""
	case key != nil:
		return key, "", ""
	case d.FormerErr != "":
		return nil, KeyUnavailable,
			"The key is not a current one, and the publisher's former keys cannot be read: " + d.FormerErr + "."
	case !m.TestKeys && (keyByID(d.Active, id, true) != nil || keyByID(d.Former, id, true) != nil):
		return nil, KeyUnknown, "The key is published in RFC 9421: anyone can sign with it."
	}
	return nil, KeyUnknown, "The publisher's keys do not include the key " + id + "."
}

// keyByID returns the key with an id from a directory, or nil if it is not there.
func keyByID(set []byte, id string, testKeys bool) *keyring.Key {
	if set == nil {
		return nil
	}
	keys, err := keyring.ParseDirectory(set, &keyring.ParseOptions{TestKeys: testKeys})
	if i := slices.IndexFunc(keys, func(k keyring.Key) bool { return k.ID == id }); err == nil && i >= 0 {
		return &keys[i]
	}
	return nil
}

// checkLog checks whether the manifest is in the publisher's transparency log, and whether that log is consistent with
// what was seen of it before. Only the first call has an effect: checkSignature may need it early.
func (m *checked) checkLog(ctx context.Context) error {
	if m.url == "" || m.logChecked {
		return nil
	}
	m.logChecked = true
	d := m.directory(ctx, origin(m.url), false)
	if d.Discovery == nil && d.err != nil {
		m.logUnread = true
	}
	if d.Discovery == nil || d.Discovery.Log == nil || d.Discovery.Log.VKey == "" {
		had, err := m.Memory.Recall(ctx, memoryLog, origin(m.url))
		switch {
		case err != nil:
			return fmt.Errorf("looking up the earlier log of a publisher: %w", err)
		case had != nil:
			m.foundAs(NotLogged, CountWarning, "The publisher no longer names a transparency log; it had %s.", had)
		default:
			m.found(NotLogged, "The publisher names no transparency log.")
		}
		return nil
	}
	proof, why := m.served.Proof, ""
	if !m.stored || proof == nil {
		proof, why = m.fetchProof(ctx)
	}
	if proof == nil {
		m.found(NotLogged, "%s", why)
		return nil
	}
	log := d.Discovery.Log
	c, err := m.verifyProof(proof, log)
	if err != nil && m.stored && m.served.Proof != nil && !m.Offline { // the log's key may have changed
		if newer, _ := m.fetchProof(ctx); newer != nil {
			proof = newer
			c, err = m.verifyProof(proof, log)
		}
	}
	switch {
	case err != nil && m.bare:
		m.found(NotLogged,
			"The octets of this file are not in the publisher's log: its JSON may be formatted differently there.")
		return nil
	case err != nil:
		m.found(LogProofInvalid, "%s", sentence("The proof that the manifest is in the log is not valid", err))
		return nil
	}
	m.served.Proof = proof
	if ok, err := m.checkConsistency(ctx, log, c); err != nil || !ok {
		return err
	}
	// A publisher could name another log to hide what is in its first one.
	had, err := m.Memory.Remember(ctx, memoryLog, origin(m.url), []byte(c.Origin))
	if err != nil {
		return fmt.Errorf("remembering the log of a publisher: %w", err)
	}
	if string(had) != c.Origin {
		m.found(LogChanged, "The publisher's log is %s; it was %s. Entries of the one may be missing from the other.",
			c.Origin, had)
	}
	m.out.Logged, m.out.LogSize = true, c.Size
	m.found(Logged, "The manifest is in the log %s of size %d.", c.Origin, c.Size)
	return nil
}

// fetchProof returns the proof of inclusion, or nil and the reason why there is none.
func (m *checked) fetchProof(ctx context.Context) (proof []byte, why string) {
	snap, err := m.fetchTrusted(ctx, m.url+manifest.ProofSuffix, maxProof)
	switch {
	case err != nil:
		m.logUnread = !isMissing(err)
		return nil, sentence("There is no proof that the manifest is in the publisher's log", err)
	case snap.Status != http.StatusOK:
		m.logUnread = true
		return nil, fmt.Sprintf("The proof that the manifest is in the publisher's log is not there yet (%d).",
			snap.Status)
	}
	return snap.Octets, ""
}

// verifyProof returns the checkpoint with which a proof shows that the manifest is in the log.
func (m *checked) verifyProof(proof []byte, log *manifest.DiscoveryLog) (*tlog.Checkpoint, error) {
	c, err := tlog.VerifyProof(proof, m.served.Digest(), log.VKey)
	if err == nil && c.Origin != log.Origin {
		err = fmt.Errorf("it is for the log %q, and the publisher's is %q", c.Origin, log.Origin)
	}
	return c, err
}

// seenCheckpoint is the largest checkpoint seen of a log.
type seenCheckpoint struct {
	Origin string    `json:"origin"`
	Size   int64     `json:"size"`
	Root   tlog.Hash `json:"root"`
}

// checkConsistency compares a checkpoint with the largest one seen of the log. The log's key plays no part: a log that
// was rewritten may have a new one.
func (m *checked) checkConsistency(ctx context.Context, log *manifest.DiscoveryLog, c *tlog.Checkpoint) (bool, error) {
	key := origin(m.url) + " " + log.Origin
	now, err := json.Marshal(seenCheckpoint{c.Origin, c.Size, c.Root})
	var kept []byte
	if err == nil {
		kept, err = m.Memory.Remember(ctx, memoryCheckpoint, key, now)
	}
	if err != nil {
		return false, fmt.Errorf("remembering a checkpoint: %w", err)
	}
	before := seenCheckpoint{c.Origin, c.Size, c.Root}
	var seen seenCheckpoint
	if json.Unmarshal(kept, &seen) == nil {
		before = seen
	}
	older, newer := &tlog.Checkpoint{Origin: before.Origin, Size: before.Size, Root: before.Root}, c
	if older.Size > newer.Size {
		older, newer = newer, older
	}
	err = tlog.VerifyConsistency(ctx, older, newer, func(ctx context.Context, path string) ([]byte, error) {
		snap, err := m.fetchDocument(ctx, &snapshot.FetchRequest{
			URL:        strings.TrimSuffix(log.URL, "/") + "/" + path,
			NoRedirect: true, NoCopy: true, MaxBytes: tlog.MaxResource,
		})
		switch {
		case isMissing(err):
			return nil, fmt.Errorf("reading %s of a log: %w", path, tlog.ErrNotFound)
		case err != nil:
			return nil, err
		}
		return snap.Octets, nil
	})
	switch {
	case errors.Is(err, tlog.ErrInconsistent):
		m.found(LogInconsistent, "%s", sentence("The log is inconsistent with what was seen of it before", err))
		return false, nil
	case err != nil:
		m.logUnread = true
		m.found(LogUnavailable, "%s",
			sentence("The log could not be compared with what was seen of it before", err))
		return false, nil
	case c.Size > before.Size:
		if err := m.replaceCheckpoint(ctx, key, c.Size, now); err != nil {
			return false, fmt.Errorf("remembering a checkpoint: %w", err)
		}
	}
	return true, nil
}

// replaceCheckpoint stores a checkpoint if it is larger than the stored one, which may have grown since the two were
// compared.
func (v *Verifier) replaceCheckpoint(ctx context.Context, key string, size int64, now []byte) error {
	v.checkpoints.Lock()
	defer v.checkpoints.Unlock()
	kept, err := v.Memory.Recall(ctx, memoryCheckpoint, key)
	if err != nil {
		return err
	}
	var there seenCheckpoint
	if json.Unmarshal(kept, &there) == nil && there.Size >= size {
		return nil
	}
	return v.Memory.Replace(ctx, memoryCheckpoint, key, now)
}
