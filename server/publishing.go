package server

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/watch"
)

// checkpointFile, in the data directory, is the checkpoint that the log in the database must not fall behind.
const checkpointFile = "log-checkpoint"

// publishing publishes answers and fetches their sources again.
type publishing struct {
	publisher *manifest.Publisher // nil if nothing is published
	citing    *gateway.Citing     // likewise
	worker    *watch.Publishing   // nil if no manifests are built
	freshness *watch.Freshness    // nil if no sources are fetched again
	first     *watch.FirstCheck   // nil unless sources are read once after each answer
	// recheck has the sources of an answer read now; nil if sources are not read.
	recheck func(context.Context, *store.Call) (int, error)
	keys    *keyring.Ring // nil if nothing is signed or logged
}

// openPublishing sets up publishing, and creates the keys the first time answers are signed or logged.
func (s *Server) openPublishing(ctx context.Context) error {
	p := &s.config.Publish
	level := p.number()
	if level > 0 {
		origin, err := s.config.origin()
		if err != nil {
			return err
		}
		if _, err := s.Store.Publications(ctx); err != nil && !errors.Is(err, store.ErrUnreachable) {
			return fmt.Errorf("preparing to publish: %w", err)
		}
		publisher := s.config.publisher(origin)
		publisher.Manifests, publisher.Texts = s.Store, s.texts
		publisher.OnError = func(ctx context.Context, err error) {
			s.log.LogAttrs(ctx, slog.LevelError, "published data could not be served", slog.Any("error", err))
		}
		signed, err := s.datePromise(ctx, publisher)
		if err != nil {
			return err
		}
		if level > 1 || signed {
			if err := s.openKeys(ctx, publisher, signed); err != nil {
				return err
			}
		}
		if err := checkPublisher(publisher); err != nil {
			return err
		}
		s.publishing.publisher = publisher
		s.publishing.citing = &gateway.Citing{
			Level: level, Origin: origin, Form: publisher.Form, Buffer: p.HeaderBuffer, Pub: s.Store.KnownPub,
		}
	}
	if level > 1 {
		o := &watch.PublishingOptions{
			Store: s.Store, Publisher: s.publishing.publisher, Fetcher: s.fetcher, Texts: s.texts, Idle: p.RunIdle,
			Wake: s.Bus.Wake, Logger: s.log, Metrics: s.Metrics, Excerpts: manifest.Excerpts(p.Excerpts),
		}
		if p.ResolveRedirects {
			o.Resolve = func(ctx context.Context, call *store.Call) error { return s.Gateway.Keep(ctx, call) }
		}
		var err error
		if s.publishing.worker, err = watch.NewPublishing(o); err != nil {
			return err
		}
	}
	return s.openRechecks(ctx)
}

// openRechecks prepares reading cited sources.
func (s *Server) openRechecks(ctx context.Context) error {
	when := s.config.recheck()
	if when.Once {
		needed, err := s.Guard.NeedsToken(ctx)
		if err != nil {
			return err
		}
		when.Off = needed && s.config.Publish.Recheck.isDefault()
	}
	if when.Off {
		return nil
	}
	o := &watch.FreshnessOptions{
		Store: s.Store, Fetcher: s.fetcher, Texts: s.texts, Every: when.Every, Wake: s.Bus.Wake,
		Verifier: s.config.verifierName(), Version: s.options.Version, Logger: s.log, Metrics: s.Metrics,
	}
	if s.publishing.publisher != nil {
		o.Origin = s.publishing.publisher.Origin
	}
	var err error
	if s.publishing.freshness, err = watch.NewFreshness(o); err != nil {
		return err
	}
	s.publishing.recheck = func(ctx context.Context, call *store.Call) (int, error) {
		return s.Store.RecheckNow(ctx, call, watch.AgainAfter)
	}
	if when.Once {
		s.publishing.first = watch.NewFirstCheck(s.publishing.freshness)
		s.publishing.recheck = s.publishing.first.Again
		s.checks = append(s.checks, s.publishing.first)
	}
	return nil
}

// publisher returns the publisher of an origin, without keys, log and store.
func (c *Config) publisher(origin string) *manifest.Publisher {
	p := &c.Publish
	return &manifest.Publisher{
		Origin: origin, AgentID: p.AgentID, Contact: p.Contact, Level: p.number(), Form: manifest.Form(p.Header),
		IncidentEndpoint: p.IncidentEndpoint,
	}
}

// checkPublisher returns an error if a publisher is misconfigured.
func checkPublisher(p *manifest.Publisher) error {
	if err := p.Check(); err != nil {
		return Usagef("agent-id and --public-url must name the same host", "preparing to publish: %w", err)
	}
	return nil
}

// verifierName is the name of this ibid in reports and incidents.
func (c *Config) verifierName() string { return cmp.Or(c.PublicURL, "ibid") }

// KeyDir returns the directory of the keys of a resolved configuration.
func (c *Config) KeyDir() string { return filepath.Join(c.Data, "keys") }

// BesideDatabase says what a backup needs besides the database.
func (c *Config) BesideDatabase() string {
	words := "also keep " + c.KeyDir() + " (keys), " + filepath.Join(c.Data, checkpointFile) + " (of the log)"
	if c.File != "" {
		return words + " and " + c.File
	}
	return words + " and the configuration of ibid serve"
}

// OpenKeyring opens the keys of a resolved configuration without creating any.
func (c *Config) OpenKeyring(env Env) (*keyring.Ring, error) {
	return keyring.Open(c.KeyDir(), &keyring.Options{
		Getenv: func(name string) string { return env.first(name) },
	})
}

// memoryLevel is the kind of memory with the times since which levels are promised.
const memoryLevel = "level"

// datePromise sets since when each level is promised, so that what was published below it before stays valid, and
// reports whether there were signed manifests. A level that was given up and is taken again counts anew.
func (s *Server) datePromise(ctx context.Context, p *manifest.Publisher) (signed bool, err error) {
	memory, now := s.Store.Memory(""), s.Store.Now().UTC().Truncate(time.Second)
	p.Since = map[int]time.Time{}
	published := false
	for level := 1; level <= 3; level++ {
		key := p.Origin + " " + strconv.Itoa(level)
		kept, err := memory.Recall(ctx, memoryLevel, key)
		if errors.Is(err, store.ErrUnreachable) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("reading what is promised: %w", err)
		}
		at, given := time.Time{}, len(kept) > 0
		if since, ok := strings.CutPrefix(string(kept), "since "); ok {
			at, _ = time.Parse(time.RFC3339, since) // else it counts as always kept
		}
		published = published || given
		signed = signed || given && level == 3
		next := string(kept)
		switch holds := strings.HasPrefix(next, "since"); {
		case level <= p.Level && !holds && published:
			at = now
			next = "since " + now.Format(time.RFC3339)
		case level <= p.Level && !holds:
			next = "since"
		case level > p.Level && holds:
			next = "until " + now.Format(time.RFC3339)
		}
		if level <= p.Level && !at.IsZero() {
			p.Since[level] = at
		}
		if next != string(kept) {
			if err := memory.Replace(ctx, memoryLevel, key, []byte(next)); err != nil {
				return false, fmt.Errorf("keeping what is promised: %w", err)
			}
		}
	}
	return signed, nil
}

// openKeys opens the keys and the transparency log. Keys that signed before are served at any level.
func (s *Server) openKeys(ctx context.Context, p *manifest.Publisher, signed bool) error {
	ring, err := s.config.OpenKeyring(s.options.Env)
	if err != nil {
		return fmt.Errorf("opening the keys: %w", err)
	}
	s.publishing.keys = ring
	if p.Level == 3 || signed {
		p.Keys = ring
	}
	if p.Level == 3 {
		switch err := s.ensureKey(ctx, ring, keyring.Manifest); {
		case errors.Is(err, keyring.ErrNoKey): // calls pass, and manifests wait for a key
			s.log.LogAttrs(
				ctx, slog.LevelWarn, "nothing can be signed", slog.Any("error", err),
				slog.String("hint", newKeyHint(keyring.Manifest)),
			)
		case err != nil:
			return err
		}
	}
	if err := s.ensureKey(ctx, ring, keyring.Log); err != nil {
		return err
	}
	p.Log, err = tlog.Open(ctx, &tlog.Options{
		Origin: logName(p.Origin),
		Tiles:  s.Store.Tiles(),
		Keys:   logKeys(ring),
		File:   filepath.Join(s.config.Data, checkpointFile),
		Later:  func(err error) bool { return errors.Is(err, store.ErrUnreachable) },
		Logger: s.log,
	})
	if errors.Is(err, tlog.ErrForeign) {
		return &usageError{err, s.config.foreignLogHint()}
	}
	return err
}

// ensureKey ensures that a key can sign for a use. If there was never one, it is created, as nobody can have trusted
// another.
func (s *Server) ensureKey(ctx context.Context, ring *keyring.Ring, use keyring.Use) error {
	_, _, err := ring.Signer(use)
	if errors.Is(err, keyring.ErrNoKey) {
		k, made := ring.New(&keyring.NewOptions{Use: use, First: true})
		if made == nil {
			s.log.LogAttrs(
				ctx, slog.LevelInfo, "created a signing key",
				slog.String("use", string(use)), slog.String("id", k.ID),
			)
			s.audit(ctx, store.AuditEntry{
				Action: store.AuditKeyMade, Object: k.ID, Detail: string(k.Use) + ", " + k.Algorithm,
			})
		} else if !errors.Is(made, keyring.ErrExists) {
			return made
		}
		_, _, err = ring.Signer(use)
	}
	if err != nil {
		return unusableKey(use, err)
	}
	return nil
}

// logName returns the name of the log of an origin.
func logName(origin string) string {
	_, name, _ := strings.Cut(origin, "://")
	return name + "/log"
}

// logKeys returns the current keys of the log. The former ones include revoked keys: the log continues from what they
// signed before, and the copy of the checkpoint reveals if someone replaced the tree.
func logKeys(ring *keyring.Ring) func() (crypto.Signer, []crypto.PublicKey, error) {
	return func() (crypto.Signer, []crypto.PublicKey, error) {
		var former []crypto.PublicKey
		for _, k := range ring.List() {
			if k.Use == keyring.Log {
				former = append(former, k.Public)
			}
		}
		_, signer, err := ring.Signer(keyring.Log)
		return signer, former, err
	}
}

// unusableKey returns the error that no key can sign for a use.
func unusableKey(use keyring.Use, err error) error {
	if errors.Is(err, keyring.ErrNoKey) {
		return Usagef(newKeyHint(use), "none of the keys for use %s can sign: %w", use, err)
	}
	return fmt.Errorf("reading the keys: %w", err)
}

func newKeyHint(use keyring.Use) string {
	return "ibid key list shows them; ibid key new --use " + string(use) + " creates one"
}

// foreignLogHint is the hint for a log with another name or other keys.
func (c *Config) foreignLogHint() string {
	return "a database keeps its first --public-url, and all its users need the same keys in " + c.KeyDir()
}
