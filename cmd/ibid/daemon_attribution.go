package main

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/watch"
)

const (
	keysDir        = "keys"           // in the data directory
	checkpointFile = "log-checkpoint" // likewise: what the log in the database must not fall behind
)

// attribution is what publishes answers and verifies those of others.
type attribution struct {
	fetcher   *snapshot.Fetcher
	texts     *snapshot.Texts
	publisher *manifest.Publisher // nil: nothing is published
	citing    *gateway.Citing     // likewise

	publishing *watch.Publishing // likewise
	freshness  *watch.Freshness  // nil: no source is read again
}

// openAttribution opens it, and where answers are signed or logged for the first time makes the keys.
func (d *daemon) openAttribution(ctx context.Context) error {
	a := &d.config.attribution
	d.attributing.fetcher = snapshot.NewFetcher(&snapshot.FetchOptions{Allow: a.allow, Log: d.log})
	d.attributing.texts = &snapshot.Texts{}
	d.close = append(d.close, d.attributing.fetcher.Close)
	if err := d.openPublisher(ctx); err != nil {
		return err
	}
	return d.openFreshness()
}

// openPublisher opens what publishes, if anything is to be published.
func (d *daemon) openPublisher(ctx context.Context) error {
	a := &d.config.attribution
	if a.number() == 0 {
		return nil
	}
	origin, err := originOf(d.config.publicURL)
	if err != nil {
		return err
	}
	form := manifest.Link
	if a.header.value == "list" {
		form = manifest.List
	}
	names, err := d.store.Publications(ctx)
	if err != nil {
		return fmt.Errorf("preparing attribution: %w", err)
	}
	p := &manifest.Publisher{
		Origin: origin, AgentID: a.agentID, Contact: a.contact, Level: a.number(), Form: form,
		Manifests: d.store, IncidentEndpoint: a.endpoint, Texts: d.attributing.texts,
		OnError: func(ctx context.Context, err error) {
			d.log.LogAttrs(ctx, slog.LevelError, "what is published cannot be served", slog.Any("error", err))
		},
	}
	d.attributing.citing = &gateway.Citing{
		Level:  a.number(),
		Origin: origin,
		Form:   form,
		Buffer: a.buffer,
		Pub:    names.Of,
	}
	if a.number() > 1 {
		if err := d.openKeys(ctx, p); err != nil {
			return err
		}
	}
	if err := checkPublisher(p); err != nil {
		return err
	}
	d.attributing.publisher = p
	if a.number() == 1 {
		return nil
	}
	o := &watch.PublishingOptions{
		Store:     d.store,
		Publisher: p,
		Fetcher:   d.attributing.fetcher,
		Texts:     d.attributing.texts,
		Idle:      a.runIdle,
		Wake:      d.bus.Wake,
		Logger:    d.log,
		Metrics:   d.metrics,
	}
	if a.resolve {
		o.Resolve = func(ctx context.Context, call *store.Call) error { return d.gateway.Keep(ctx, call) }
	}
	d.attributing.publishing, err = watch.NewPublishing(o)
	return err
}

// openFreshness makes what reads cited sources again, if that is wanted.
func (d *daemon) openFreshness() error {
	a := &d.config.attribution
	if a.recheck == 0 {
		return nil
	}
	o := &watch.FreshnessOptions{
		Store: d.store, Fetcher: d.attributing.fetcher, Texts: d.attributing.texts, Every: a.recheck, Wake: d.bus.Wake,
		Verifier: d.verifierName(), Version: readBuild().Version, Logger: d.log, Metrics: d.metrics,
	}
	if p := d.attributing.publisher; p != nil {
		o.Origin = p.Origin
	}
	var err error
	d.attributing.freshness, err = watch.NewFreshness(o)
	return err
}

// start starts what works in the background.
func (a *attribution) start(start func(name string, f func(context.Context) error)) {
	if a.publishing != nil {
		start("publishing manifests", a.publishing.Run)
	}
	if a.freshness != nil {
		start("checking sources again", a.freshness.Run)
	}
}

// verifierName is what this ibid calls itself in reports and incidents.
func (d *daemon) verifierName() string { return cmp.Or(d.config.publicURL, "ibid") }

// openKeys opens the keys and the transparency log.
func (d *daemon) openKeys(ctx context.Context, p *manifest.Publisher) error {
	ring, err := openKeyring(d.config, d.world)
	if err != nil {
		return fmt.Errorf("opening the keys: %w", err)
	}
	if p.Level == 3 {
		p.Keys = ring
		switch err := d.ensureKey(ctx, ring, keyring.Manifest); {
		case errors.Is(err, keyring.ErrNoKey): // calls pass, and manifests wait until there is one
			d.log.LogAttrs(
				ctx, slog.LevelWarn, "nothing can be signed", slog.Any("error", err),
				slog.String("hint", explain(err).hint),
			)
		case err != nil:
			return err
		}
	}
	if err := d.ensureKey(ctx, ring, keyring.Log); err != nil {
		return err
	}
	p.Log, err = tlog.Open(ctx, &tlog.Options{
		Origin: logName(
			p.Origin,
		),
		Tiles:  d.store.Tiles(),
		Keys:   logKeys(ring),
		File:   filepath.Join(d.config.data, checkpointFile),
		Logger: d.log,
	})
	if errors.Is(err, tlog.ErrForeign) {
		return &usageError{err, foreignHint(d.config.data)}
	}
	return err
}

// logKeys returns the keys of the log as they are at the moment. Revoked ones are among the former ones: the log goes
// on from what they signed before they were, and the copy of the checkpoint tells if somebody put another tree in its
// place.
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

// ensureKey sees to it that something signs for a use. Where there is no key one is made: nobody can have trusted
// another.
func (d *daemon) ensureKey(ctx context.Context, ring *keyring.Ring, use keyring.Use) error {
	_, _, err := ring.Signer(use)
	if errors.Is(err, keyring.ErrNoKey) {
		k, made := ring.New(&keyring.NewOptions{Use: use, First: true})
		if made == nil {
			d.log.LogAttrs(
				ctx, slog.LevelInfo, "made a signing key",
				slog.String("use", string(use)),
				slog.String("id", k.ID),
			)
		} else if !errors.Is(made, keyring.ErrExists) {
			return made
		}
		_, _, err = ring.Signer(use)
	}
	if err != nil {
		return unusable(use, err)
	}
	return nil
}

// verifier returns what verifies for a tenant.
func (d *daemon) verifier(tenant string) *verify.Verifier {
	return &verify.Verifier{
		Fetcher:    d.attributing.fetcher,
		Texts:      d.attributing.texts,
		Memory:     d.store.Memory(tenant),
		Copies:     d.store.Copies(tenant),
		Name:       d.verifierName(),
		Version:    readBuild().Version,
		SourceTTL:  -1,
		FailureTTL: -1, // somebody asks how it is now
	}
}
