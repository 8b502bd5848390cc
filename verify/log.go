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

// logged says whether the manifest is in the publisher's transparency log, and whether that log is the one it was
// before.
func (m *checked) logged(ctx context.Context) error {
	if m.url == "" || m.asked {
		return nil
	}
	m.asked = true
	d := m.known
	if d == nil {
		d = m.of(ctx, origin(m.url), false)
	}
	if d.Discovery == nil && d.err != nil {
		m.unasked = true
	}
	if d.Discovery == nil || d.Discovery.Log == nil || d.Discovery.Log.VKey == "" {
		return m.unlogged(ctx)
	}
	proof, why := m.proof(ctx)
	if proof == nil {
		m.found(NotLogged, CountInfo, why)
		return nil
	}
	log := d.Discovery.Log
	c, err := m.proves(proof, log)
	if err != nil && m.stored && m.served.Proof != nil && !m.Offline { // the log may have another key now
		if newer, _ := m.newProof(ctx); newer != nil {
			proof = newer
			c, err = m.proves(proof, log)
		}
	}
	if err != nil && m.bare {
		m.found(
			NotLogged, CountInfo,
			"The octets of this file are not in the publisher's log: they may be laid out in another way there.",
		)
		return nil
	}
	if err != nil {
		m.fail(LogProofInvalid, "%s", sentence("The proof that the manifest is in the log does not hold", err))
		return nil
	}
	m.served.Proof = proof
	if ok, err := m.consistent(ctx, log, c); err != nil || !ok {
		return err
	}
	if err := m.sameLog(ctx, c.Origin); err != nil {
		return err
	}
	m.out.Logged, m.out.LogSize = true, c.Size
	m.found(Logged, CountPass, fmt.Sprintf("The manifest is in the log %s, of the size %d.", c.Origin, c.Size))
	return nil
}

// memoryLog is what log a publisher had first, by its origin: one who wants to forget what is in it can name another,
// or none.
const memoryLog = "log"

// unlogged says that the publisher has no log, or none any more.
func (m *checked) unlogged(ctx context.Context) error {
	had, err := m.Memory.Recall(ctx, memoryLog, origin(m.url))
	switch {
	case err != nil:
		return fmt.Errorf("looking up which log a publisher had: %w", err)
	case had != nil:
		m.found(
			NotLogged, CountWarning, fmt.Sprintf("The publisher names no transparency log any more; it had %s.", had),
		)
	default:
		m.found(NotLogged, CountInfo, "The publisher names no transparency log.")
	}
	return nil
}

// sameLog says if the log is another one than the publisher had first.
func (m *checked) sameLog(ctx context.Context, now string) error {
	had, err := m.Memory.Remember(ctx, memoryLog, origin(m.url), []byte(now))
	if err != nil {
		return fmt.Errorf("remembering which log a publisher has: %w", err)
	}
	if string(had) != now {
		m.found(
			LogChanged, CountWarning,
			fmt.Sprintf("The publisher's log is %s; it was %s. What is in the one need not be in the other.", now, had),
		)
	}
	return nil
}

// proof returns the proof of inclusion, stored or fetched; nil: there is none, for the reason why.
func (m *checked) proof(ctx context.Context) (proof []byte, why string) {
	if m.stored && m.served.Proof != nil {
		return m.served.Proof, ""
	}
	return m.newProof(ctx)
}

func (m *checked) newProof(ctx context.Context) (proof []byte, why string) {
	snap, err := m.trusted(ctx, m.url+manifest.ProofSuffix, maxProof)
	switch {
	case err != nil:
		m.unasked = !missing(err)
		return nil, sentence("There is no proof that the manifest is in the publisher's log", err)
	case snap.Status != http.StatusOK:
		m.unasked = true
		return nil, fmt.Sprintf(
			"The proof that the manifest is in the publisher's log is not there yet (%d).", snap.Status,
		)
	}
	return snap.Octets, ""
}

// proves returns the checkpoint by which a proof shows that the manifest is in the log.
func (m *checked) proves(proof []byte, log *manifest.DiscoveryLog) (*tlog.Checkpoint, error) {
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

// consistent compares a checkpoint with the largest one seen of that log. The log's key is not part of that: a log that
// was rewritten may have another.
func (m *checked) consistent(ctx context.Context, log *manifest.DiscoveryLog, c *tlog.Checkpoint) (bool, error) {
	key := origin(m.url) + " " + log.Origin
	now, err := json.Marshal(sighting{c.Origin, c.Size, c.Root})
	if err != nil {
		return false, fmt.Errorf("remembering a checkpoint: %w", err)
	}
	kept, err := m.Memory.Remember(ctx, memoryCheckpoint, key, now)
	if err != nil {
		return false, fmt.Errorf("remembering a checkpoint: %w", err)
	}
	var before sighting
	if json.Unmarshal(kept, &before) != nil {
		before = sighting{c.Origin, c.Size, c.Root}
	}
	older, newer := &tlog.Checkpoint{Origin: before.Origin, Size: before.Size, Root: before.Root}, c
	if older.Size > newer.Size {
		older, newer = newer, older
	}
	err = tlog.VerifyConsistency(ctx, older, newer, m.tiles(log.URL))
	switch {
	case errors.Is(err, tlog.ErrInconsistent):
		m.fail(LogInconsistent, "%s", sentence("The log is not the one that it was when it was seen before", err))
		return false, nil
	case err != nil:
		m.unasked = true
		m.found(LogUnavailable, CountUnverifiable,
			sentence("The log could not be compared with what it was when it was seen before", err))
		return false, nil
	case c.Size > before.Size:
		if err := m.enlarge(ctx, key, c.Size, now); err != nil {
			return false, fmt.Errorf("remembering a checkpoint: %w", err)
		}
	}
	return true, nil
}

// enlarge keeps a checkpoint in place of a smaller one. What was kept may have grown while the two were compared.
func (v *Verifier) enlarge(ctx context.Context, key string, size int64, now []byte) error {
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

// tiles returns what reads the log at a URL.
func (m *checked) tiles(address string) tlog.Get {
	return func(ctx context.Context, path string) ([]byte, error) {
		snap, err := m.fetch(ctx, &snapshot.FetchRequest{
			URL: strings.TrimSuffix(
				address, "/",
			) + "/" + path,
			NoRedirect: true,
			NoCopy:     true,
			MaxBytes:   tlog.MaxResource,
		})
		if missing(err) {
			return nil, fmt.Errorf("reading %s of a log: %w", path, tlog.ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		return snap.Octets, nil
	}
}

// leveled says whether the chain is sound, and whether the manifest is what its publisher promises.
func (m *checked) leveled(ctx context.Context) error {
	sound := len(m.man.Chain) > 0
	for _, p := range m.problems {
		code := Status(p.Status)
		if code == ChainInvalid || code == ChainGap {
			sound = false
			m.report.add(Finding{Code: code, Counts: CountFailure, Manifest: m.out.URL, Path: p.Path, Detail: p.Detail})
		}
	}
	if sound {
		m.found(ChainValid, CountPass, fmt.Sprintf("The chain of %d steps is sound.", len(m.man.Chain)))
	}
	level, why := m.man.Level(m.out.Verified)
	promised := 0
	if m.url != "" {
		d := m.known
		if d == nil {
			d = m.of(ctx, origin(m.url), false)
		}
		promised = d.promises()
		if d.Discovery != nil && d.Discovery.IncidentEndpoint != nil &&
			origin(*d.Discovery.IncidentEndpoint) == origin(m.url) {
			m.out.Incidents = *d.Discovery.IncidentEndpoint
		}
	}
	m.out.Level = Levels{Promised: promised, Observed: level, Why: append([]string{}, why...)}
	m.level(&m.out.Level)
	return nil
}

// level compares a level with what is promised and with what is required, and enters it into the report.
func (m *checked) level(l *Levels) {
	all := &m.report.Level
	if len(m.report.Manifests) == 0 || l.Observed < all.Observed {
		all.Observed, all.Why = l.Observed, l.Why
	}
	all.Promised = max(all.Promised, l.Promised)
	missing := "."
	if len(l.Why) > 0 {
		missing = ": " + strings.Join(l.Why, "; ") + "."
	}
	switch {
	case l.Observed < m.RequireLevel && m.signature == CountUnverifiable:
		m.found(
			LevelNotMet, CountUnverifiable,
			fmt.Sprintf("Whether the manifest is of level %d, which is required, cannot be known.", m.RequireLevel),
		)
	case l.Observed < m.RequireLevel:
		m.fail(
			LevelNotMet, "The manifest is of level %d, and level %d is required%s", l.Observed, m.RequireLevel, missing,
		)
	case l.Observed < l.Promised && m.bare:
		m.found(
			LevelNotMet, CountInfo,
			fmt.Sprintf("A file has no signature, so it shows level %d of the %d that its publisher promises.",
				l.Observed, l.Promised),
		)
	case l.Observed < l.Promised:
		m.found(
			LevelNotMet, m.shortfall(l),
			fmt.Sprintf("The publisher promises level %d, and the manifest is of level %d%s",
				l.Promised, l.Observed, missing),
		)
	default:
		m.found(LevelMet, CountPass, fmt.Sprintf("The manifest is of level %d.", l.Observed))
	}
}

// shortfall says what it counts as that a promise is not kept: a failure, unless that was said already, or all that is
// missing are sources of which the manifest itself says why nobody could read them.
func (m *checked) shortfall(l *Levels) Counts {
	switch m.signature {
	case CountFailure:
		return CountInfo
	case CountUnverifiable:
		return CountUnverifiable
	default:
	}
	if l.Promised >= 3 && (!m.out.Verified || len(m.man.Chain) == 0) {
		return CountFailure
	}
	for i := range m.man.Claims {
		for k := range m.man.Claims[i].Sources {
			s := &m.man.Claims[i].Sources[k]
			src := m.source(s)
			said := s.Unavailable != "" || src != nil && src.Unavailable != ""
			unquoted := s.ExcerptOffset == nil || s.Excerpt == nil && s.ExcerptHash == ""
			if !said && (s.Hash == "" && (src == nil || src.Hash == "") || unquoted) {
				return CountFailure
			}
		}
	}
	return CountWarning
}

// promised compares a response that announces no manifest, or nothing, with what is demanded and with what its origin
// promises. Of one that announces nothing nobody knows whether the promise is about it.
func (j *job) promised(ctx context.Context, address string, observed int) {
	what, counts := "The response announces no manifest", CountFailure
	if observed == 0 {
		what, counts = "The response announces nothing", CountUnverifiable
	}
	if address != "" {
		j.report.Level.Promised = j.of(ctx, origin(address), false).promises()
	}
	switch {
	case observed < j.RequireLevel:
		j.report.add(Finding{
			Code: LevelNotMet, Counts: CountFailure,
			Detail: fmt.Sprintf("%s, which is level %d, and level %d is required.", what, observed, j.RequireLevel),
		})
	case observed < j.report.Level.Promised:
		j.report.add(Finding{
			Code:   LevelNotMet,
			Counts: counts,
			Detail: fmt.Sprintf("%s, and its origin promises level %d.", what, j.report.Level.Promised),
		})
	}
}
