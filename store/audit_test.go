package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// audited lists a tenant's audit log as actor, action and object, page by page, oldest first.
func audited(tb testing.TB, s *store.Store, tenant string) []string {
	tb.Helper()
	list := []string{}
	for cursor := ""; ; {
		page := testenv.Must(s.AuditLog(tb.Context(), tenant, cursor, 2))(tb)
		for _, e := range page.Items {
			list = append(list, strings.TrimSpace(e.Actor+" "+string(e.Action)+" "+e.Object))
		}
		if cursor = page.Next; cursor == "" {
			slices.Reverse(list)
			return list
		}
	}
}

// Every administrative act is logged once, for its tenant and with its actor, and no entry contains a secret; acts that
// did not happen are not logged.
func (suite) Audit(t *testing.T, dsn string) {
	t.Helper()
	s, ctx := open(t, dsn), store.WithActor(t.Context(), "cli:ann")
	token := &store.Token{Tenant: "acme", Name: "ci", Scopes: []string{store.ScopeRead}}
	secret := testenv.Must(s.NewToken(ctx, token))(t)
	for range 2 {
		testenv.OK(t, s.RevokeToken(ctx, token.ID))
	}
	c := call(1, "Bees dance.")
	put(t, s, c)
	testenv.OK(t, s.Delete(ctx, store.DefaultTenant, c.AnswerID))
	for _, err := range []error{
		s.Delete(ctx, store.DefaultTenant, c.AnswerID), s.RevokeToken(ctx, "tok_none"),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	}
	old := call(2, "Wasps.")
	old.Started = time.Now().Add(-100 * time.Hour)
	other := call(3, "Hornets.")
	other.Started, other.Answer.Provider = old.Started, "gemini" // removed by a transaction of its own
	put(t, s, old, other)
	for _, dry := range []bool{true, false, false} {
		testenv.Must(s.Prune(t.Context(), &store.Retention{Default: time.Hour, DryRun: dry}))(t)
	}
	alert := store.Alert{Kind: store.AlertKeyRevoked, Tenant: store.DefaultTenant, Subject: store.AlertSubject{Key: "k1"}}
	alert.Fill()
	testenv.Must(s.AddAlerts(ctx, []store.Alert{alert}))(t)
	testenv.Must(s.SeeAlert(ctx, store.DefaultTenant, alert.ID, false))(t)
	for range 2 {
		testenv.Must(s.SeeAllAlerts(ctx, store.DefaultTenant))(t)
	}
	testenv.OK(t, s.Audit(ctx, store.DefaultTenant, store.AuditEntry{
		Action: store.AuditKeyRevoked, Object: "k\x00\xff" + strings.Repeat("x", 9999), Seq: 99, Prev: "x", Actor: "x",
	}))

	diff(t, "acme's", audited(t, s, "acme"), []string{"cli:ann token.made " + token.ID, "cli:ann token.revoked " + token.ID})
	own := audited(t, s, store.DefaultTenant)
	diff(t, "the operator's", own[:4], []string{
		"cli:ann answer.deleted " + c.AnswerID, "server pruned", "cli:ann alert.unseen " + alert.ID, "cli:ann alert.seen",
	})
	if len(own) != 5 || len(own[4]) > 600 || strings.Contains(strings.Join(own, ""), secret) {
		t.Errorf("%d entries, the last: %.700q", len(own), own[len(own)-1])
	}
	if last := testenv.Must(s.LastAudited(ctx, store.DefaultTenant, store.AuditAnswerDeleted))(t); last != c.AnswerID {
		t.Errorf("the last answer deleted is %q", last)
	}
	for tenant, want := range map[string]int{"acme": 2, store.DefaultTenant: 5, "nobody's": 0} {
		if n, err := s.CheckAudit(ctx, tenant); n != want || err != nil {
			t.Errorf("%s: %d in order, %v; want %d", tenant, n, err, want)
		}
	}
}

// The check detects entries that were changed, left out, inserted or moved to another tenant.
func TestAuditTampered(t *testing.T) {
	for about, statement := range map[string]string{
		"the actor":   `UPDATE audit SET entry = replace(entry, 'cli:eve', 'cli:ann') WHERE seq = 2`,
		"the object":  `UPDATE audit SET object = 'another' WHERE seq = 2`,
		"left out":    `DELETE FROM audit WHERE seq = 2`,
		"closed up":   `DELETE FROM audit WHERE seq = 1; UPDATE audit SET seq = seq - 1`,
		"a stranger":  `INSERT INTO audit SELECT 'acme', 4, action, object, replace(entry, '"seq":3', '"seq":4') FROM audit WHERE seq = 3`,
		"of somebody": `UPDATE audit SET tenant = 'other'`,
		"no JSON":     `UPDATE audit SET entry = '{' WHERE seq = 3`,
	} {
		t.Run(about, func(t *testing.T) {
			dsn := t.TempDir() + "/ibid.db"
			s, ctx := open(t, dsn), store.WithActor(t.Context(), "cli:eve")
			for range 3 {
				testenv.OK(t, s.Audit(ctx, "acme", store.AuditEntry{Action: store.AuditAnswerDeleted, Object: "ans_1"}))
			}
			db := raw(t, dsn)
			testenv.Must(db.ExecContext(ctx, statement))(t)
			tenant := "acme"
			if about == "of somebody" {
				tenant = "other"
			}
			if n, err := s.CheckAudit(ctx, tenant); err == nil {
				t.Errorf("%d entries are in order", n)
			}
		})
	}
}
