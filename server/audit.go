package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/time/rate"

	"github.com/ibidhq/ibid/store"
)

// Limits of the audit entries for refused access tokens, over all senders. The program's log has more of them.
const (
	refusedBurst = 20
	refusedEvery = time.Minute
	auditTime    = 2 * time.Second // how long a client waits for such an entry
)

// audit records an action of the server itself in the operator's audit log. If that fails, the error is logged, as the
// action has happened.
func (s *Server) audit(ctx context.Context, e store.AuditEntry) {
	if err := s.Store.Audit(ctx, store.DefaultTenant, e); err != nil {
		s.log.LogAttrs(
			ctx, slog.LevelWarn, "an action is missing in the audit log", slog.String("action", string(e.Action)),
			slog.String("object", e.Object), slog.Any("error", err),
		)
	}
}

// auditRefused returns the function that records refused access tokens.
func (s *Server) auditRefused() func(ctx context.Context, from netip.Prefix) {
	limiter := rate.NewLimiter(rate.Every(refusedEvery), refusedBurst)
	return func(ctx context.Context, from netip.Prefix) {
		if !limiter.Allow() {
			return
		}
		ctx, cancel := context.WithTimeout(store.WithActor(context.WithoutCancel(ctx), store.ActorNobody), auditTime)
		defer cancel()
		s.audit(ctx, store.AuditEntry{Action: store.AuditLoginFailed, Object: from.String()})
	}
}

// auditSettings records that the server's settings differ from those of the previous start.
func (s *Server) auditSettings(ctx context.Context) {
	var last string
	sum, err := s.config.digest()
	if err == nil {
		if last, err = s.Store.LastAudited(ctx, store.DefaultTenant, store.AuditSettingsChanged); last == sum {
			return
		}
	}
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "the settings are missing in the audit log", slog.Any("error", err))
		return
	}
	detail := "they differ from those of the last start"
	if last == "" {
		detail = "of the first start"
	}
	if s.config.File != "" {
		detail += ": " + s.config.File
	}
	s.audit(ctx, store.AuditEntry{Action: store.AuditSettingsChanged, Object: sum, Detail: detail})
}

// digest returns a hash of all settings: flags and settings, without passwords, and the file. Secrets that only come
// from variables contribute enough to detect a change, but too little to guess them.
func (c *Config) digest() (string, error) {
	now := *c
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	now.AddFlags(flags)
	now.addSettings(flags)
	h := sha256.New()
	flags.VisitAll(func(f *pflag.Flag) { fmt.Fprintf(h, "%s=%q\n", f.Name, Redacted(f.Value.String())) })
	for _, secret := range []string{c.BootstrapToken, c.StreamKey} {
		sum := sha256.Sum256([]byte(secret))
		fmt.Fprintf(h, "%t %x\n", secret != "", sum[:2])
	}
	if c.File != "" {
		file, err := os.Open(c.File)
		if err != nil {
			return "", fmt.Errorf("reading the configuration: %w", err)
		}
		defer func() { _ = file.Close() }()
		if _, err := io.Copy(h, file); err != nil {
			return "", fmt.Errorf("reading the configuration: %w", err)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
