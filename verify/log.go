package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/tlog"
)

// checkLog says whether the manifest is in the publisher's transparency log, and whether that log is the one it was
// before. It does so once: checkSignature may need to know earlier.
func (m *checked) checkLog(ctx context.Context) error {
	if m.url == "" || m.asked {
		return nil
	}
	m.asked = true
	d := m.directory(ctx, origin(m.url), false)
	if d.Discovery == nil && d.err != nil {
		m.unasked = true
	}
	if d.Discovery == nil || d.Discovery.Log == nil || d.Discovery.Log.VKey == "" {
		had, err := m.Memory.Recall(ctx, memoryLog, origin(m.url))
		switch {
		case err != nil:
			return fmt.Errorf("looking up which log a publisher had: %w", err)
		case had != nil:
			m.foundAs(NotLogged, CountWarning, "The publisher names no transparency log any more; it had %s.", had)
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
	if err != nil && m.stored && m.served.Proof != nil && !m.Offline { // the log may have another key now
		if newer, _ := m.fetchProof(ctx); newer != nil {
			proof = newer
			c, err = m.verifyProof(proof, log)
		}
	}
	switch {
	case err != nil && m.bare:
		m.found(NotLogged,
			"The octets of this file are not in the publisher's log: they may be laid out in another way there.")
		return nil
	case err != nil:
		m.found(LogProofInvalid, "%s", sentence("The proof that the manifest is in the log does not hold", err))
		return nil
	}
	m.served.Proof = proof
	if ok, err := m.checkConsistency(ctx, log, c); err != nil || !ok {
		return err
	}
	// A publisher who wants to forget what is in its log could name another one.
	had, err := m.Memory.Remember(ctx, memoryLog, origin(m.url), []byte(c.Origin))
	if err != nil {
		return fmt.Errorf("remembering which log a publisher has: %w", err)
	}
	if string(had) != c.Origin {
		m.found(LogChanged, "The publisher's log is %s; it was %s. What is in the one need not be in the other.",
			c.Origin, had)
	}
	m.out.Logged, m.out.LogSize = true, c.Size
	m.found(Logged, "The manifest is in the log %s, of the size %d.", c.Origin, c.Size)
	return nil
}

// fetchProof returns the proof of inclusion; nil: there is none, for the reason why.
func (m *checked) fetchProof(ctx context.Context) (proof []byte, why string) {
	snap, err := m.fetchTrusted(ctx, m.url+manifest.ProofSuffix, maxProof)
	switch {
	case err != nil:
		m.unasked = !isMissing(err)
		return nil, sentence("There is no proof that the manifest is in the publisher's log", err)
	case snap.Status != http.StatusOK:
		m.unasked = true
		return nil, fmt.Sprintf("The proof that the manifest is in the publisher's log is not there yet (%d).",
			snap.Status)
	}
	return snap.Octets, ""
}

// verifyProof returns the checkpoint by which a proof shows that the manifest is in the log.
func (m *checked) verifyProof(proof []byte, log *manifest.DiscoveryLog) (*tlog.Checkpoint, error) {
	c, err := tlog.VerifyProof(proof, m.served.Digest(), log.VKey)
	if err == nil && c.Origin != log.Origin {
		err = fmt.Errorf("it is of the log %q, and the publisher's is %q", c.Origin, log.Origin)
	}
	return c, err
}

// sighting is the largest checkpoint that was seen of a log.
type sighting struct {
	Origin string    `json:"origin"`
	Size   int64     `json:"size"`
	Root   tlog.Hash `json:"root"`
}

// checkConsistency compares a checkpoint with the largest one seen of that log. The log's key is not part of that: a
// log that was rewritten may have another.
func (m *checked) checkConsistency(ctx context.Context, log *manifest.DiscoveryLog, c *tlog.Checkpoint) (bool, error) {
	key := origin(m.url) + " " + log.Origin
	now, err := json.Marshal(sighting{c.Origin, c.Size, c.Root})
	var kept []byte
	if err == nil {
		kept, err = m.Memory.Remember(ctx, memoryCheckpoint, key, now)
	}
	if err != nil {
		return false, fmt.Errorf("remembering a checkpoint: %w", err)
	}
	before := sighting{c.Origin, c.Size, c.Root}
	var seen sighting
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
		m.found(LogInconsistent, "%s", sentence("The log is not the one that it was when it was seen before", err))
		return false, nil
	case err != nil:
		m.unasked = true
		m.found(LogUnavailable, "%s",
			sentence("The log could not be compared with what it was when it was seen before", err))
		return false, nil
	case c.Size > before.Size:
		if err := m.replaceCheckpoint(ctx, key, c.Size, now); err != nil {
			return false, fmt.Errorf("remembering a checkpoint: %w", err)
		}
	}
	return true, nil
}

// replaceCheckpoint keeps a checkpoint in place of a smaller one. What was kept may have grown while the two were
// compared.
func (v *Verifier) replaceCheckpoint(ctx context.Context, key string, size int64, now []byte) error {
	v.checkpoints.Lock()
	defer v.checkpoints.Unlock()
	kept, err := v.Memory.Recall(ctx, memoryCheckpoint, key)
	if err != nil {
		return err
	}
	var there sighting
	if json.Unmarshal(kept, &there) == nil && there.Size >= size {
		return nil
	}
	return v.Memory.Replace(ctx, memoryCheckpoint, key, now)
}
