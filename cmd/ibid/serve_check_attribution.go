package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tlog"
)

// attribution says how answers would be published, and whether that can be. A nil schema: there is no database, or none
// that can be read.
func (k *checker) attribution(ctx context.Context, schema *store.Schema, readable bool) {
	a := &k.config.attribution
	k.idle()
	if n := a.number(); n > 0 {
		origin, err := originOf(k.config.publicURL)
		p := &manifest.Publisher{
			Origin:           origin,
			AgentID:          a.agentID,
			Contact:          a.contact,
			Level:            n,
			IncidentEndpoint: a.endpoint,
			Keys:             keyring.Memory(nil),
		}
		if err == nil {
			err = checkPublisher(p)
		}
		k.line("attribution", fmt.Sprintf("level %d, as %s at %s", n, p.Agent(), origin), err)
		k.attributionSettings()
		if n > 1 {
			k.keysAndLog(ctx, origin, schema, readable)
		}
	}
	if len(a.allow) > 0 {
		k.line("networks", "the public ones and "+a.allow.String(), nil)
	}
}

// attributionSettings says how it is set.
func (k *checker) attributionSettings() {
	a := &k.config.attribution
	held := "no JSON answer is held for it"
	if a.buffer > 0 {
		held = fmt.Sprintf("JSON answers of up to %d bytes are held for it", a.buffer)
	}
	k.line("header", "Citation-Source as "+a.header.value+"; "+held, nil)
	if a.contact != "" {
		k.line("contact", a.contact, nil)
	}
	if a.endpoint != "" {
		k.line("incidents", "taken at "+redacted(a.endpoint), nil)
	}
	if a.number() == 1 {
		return
	}
	runs := "end when their agent says so"
	if a.runIdle > 0 {
		runs = fmt.Sprintf("end after %s without a call", a.runIdle)
	}
	k.line("runs", runs, nil)
	if a.resolve {
		k.line("redirects", "resolved once", nil)
	}
}

// idle says which settings have no effect.
func (k *checker) idle() {
	a, none := &k.config.attribution, newAttributionSetting()
	n := a.number()
	var idle []string
	for _, s := range []struct {
		name  string
		said  bool
		level int // from which on it has an effect
	}{
		{"--citation-header", a.header.value != none.header.value, 1},
		{"--header-buffer", a.buffer != gateway.DefaultHeaderBuffer, 1},
		{"--agent-id", a.agentID != "", 1},
		{"--contact", a.contact != "", 1},
		{"--incident-endpoint", a.endpoint != "", 1},
		{"--run-idle", a.runIdle != defaultRunIdle, 2},
		{"--resolve-redirects", a.resolve, 2},
	} {
		if s.said && n < s.level {
			idle = append(idle, s.name)
		}
	}
	if len(idle) == 0 {
		return
	}
	have, needs := "has", "--attribution"
	if len(idle) > 1 {
		have = "have"
	}
	if n > 0 {
		needs += " 2 or 3"
	}
	hint(k.world.err, fmt.Sprintf("%s %s no effect without %s", strings.Join(idle, ", "), have, needs))
}

// keysAndLog looks at what signs and at the transparency log.
func (k *checker) keysAndLog(ctx context.Context, origin string, schema *store.Schema, readable bool) {
	ring, words, err := k.keys()
	k.line("keys", words, err)
	if err != nil || !readable {
		return
	}
	words, err = k.log(ctx, origin, ring, schema)
	k.line("log", words, err)
}

// keys says which keys would sign. Where serve would make one, the ring that is returned is another one.
func (k *checker) keys() (ring *keyring.Ring, words string, err error) {
	uses := []keyring.Use{keyring.Log}
	if k.config.attribution.number() == 3 {
		uses = []keyring.Use{keyring.Manifest, keyring.Log}
	}
	if ring, err = openKeyring(k.config, k.world); err != nil {
		return nil, "", err
	}
	for _, use := range uses {
		key, _, err := ring.Signer(use)
		isNew := errors.Is(err, keyring.ErrNoKey) &&
			!slices.ContainsFunc(ring.List(), func(k keyring.Key) bool { return k.Use == use })
		switch {
		case isNew:
			words += fmt.Sprintf(", %s: will be made", use)
		case errors.Is(err, keyring.ErrNoKey) && use == keyring.Manifest: // serve starts, and manifests wait
			words += fmt.Sprintf(", %s: none can sign", use)
			err = unusable(use, err)
			say(k.world.err, "keys: %v", err)
			hint(k.world.err, explain(err).hint)
		case err != nil:
			return nil, strings.TrimPrefix(words+fmt.Sprintf(", %s", use), ", "), unusable(use, err)
		default:
			words += fmt.Sprintf(", %s: %s", use, key.ID)
		}
		if isNew && use == keyring.Log {
			ring = keyring.Memory(nil)
			if _, err := ring.New(&keyring.NewOptions{Use: keyring.Log}); err != nil {
				return nil, "", err
			}
		}
	}
	return ring, strings.TrimPrefix(words, ", "), nil
}

// log opens the transparency log as serve does, and writes nothing: its checkpoint is compared with the copy beside the
// database.
func (k *checker) log(
	ctx context.Context, origin string, ring *keyring.Ring, schema *store.Schema,
) (words string, err error) {
	name := logName(origin)
	if schema != nil && schema.Version > 0 && schema.Version < schema.Newest {
		return name + ", not looked at before the database is brought up to date", nil
	}
	var tiles tlog.Tiles = &tlog.MemoryTiles{}
	if schema != nil && schema.Version > 0 {
		s, err := store.Open(ctx, k.config.db, &store.Options{Wait: storeWait})
		if err != nil {
			return name, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		tiles = s.Tiles()
	}
	file := filepath.Join(k.config.data, checkpointFile)
	dir, err := os.MkdirTemp("", "ibid-check-")
	if err != nil {
		return name, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	copied := filepath.Join(dir, checkpointFile)
	if err := copyCheckpoint(file, copied); err != nil {
		return name, err
	}
	if _, err := tlog.Open(
		ctx,
		&tlog.Options{Origin: name, Tiles: unwritten{tiles}, Keys: logKeys(ring), File: copied},
	); err != nil {
		said := errors.New(strings.ReplaceAll(err.Error(), copied, file))
		if errors.Is(err, tlog.ErrForeign) {
			return name, &usageError{said, foreignHint(filepath.Dir(file))}
		}
		return name, said
	}
	size, checkpoint, err := tiles.Head(ctx)
	switch {
	case err != nil:
		return name, err
	case checkpoint == nil:
		return name + ", will be begun", nil
	case size == 1:
		return name + ", 1 entry", nil
	}
	return fmt.Sprintf("%s, %d entries", name, size), nil
}

// copyCheckpoint copies the copy of the log's checkpoint, if it is there: who opens a log makes it anew.
func copyCheckpoint(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(in, tlog.MaxCheckpoint+1))
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// unwritten is a log in a store that is not written to.
type unwritten struct{ tlog.Tiles }

// Update reads what an Update reads, and forgets what is to be written.
func (t unwritten) Update(ctx context.Context, _ []tlog.Leaf, grow func(*tlog.Before) (*tlog.Growth, error)) error {
	size, checkpoint, err := t.Head(ctx)
	if err != nil {
		return err
	}
	_, err = grow(&tlog.Before{
		Size: size, Checkpoint: checkpoint, Known: map[tlog.Leaf]int64{},
		Hashes: func(indexes []int64) ([]tlog.Hash, error) { return t.Hashes(ctx, indexes) },
	})
	return err
}
