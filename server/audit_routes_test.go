package server_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

// audited maps each route that changes something to its action in the audit log. The action is empty for what is not an
// administrator's action, because it takes nothing away and grants no rights: calls, recordings, feedback, questions to
// ibid. A route that is missing fails the test, so that its author decides.
var audited = map[string]store.AuditAction{
	"POST /v1/tokens":         store.AuditTokenMade,
	"DELETE /v1/tokens/{id}":  store.AuditTokenRevoked,
	"DELETE /v1/answers/{id}": store.AuditAnswerDeleted,
	"POST /v1/alerts/{id}":    store.AuditAlertSeen,
	"POST /ui/alerts":         store.AuditAlertSeen,
	"POST /ui/login":          store.AuditLoginFailed,

	"POST /v1/decode": "", "POST /v1/prompt": "", "POST /v1/check": "",
	"POST /v1/attribute": "", "POST /v1/trail": "", "POST /v1/render": "", "POST /v1/answers": "", "POST /v1/verify": "", "POST /ui/verify": "", "POST /mcp": "",
	"POST /ui/answers/{id}/check": "", "POST /v1/stream-token": "", "POST /ui/logout": "",
	"POST /v1/chat": "", "DELETE /v1/chat/{id}/stream": "", "POST /ui/ask": "", "POST /ui/answers/{id}/stop": "",
	"POST /{upstream}/{path...}": "", "POST /v1/runs": "", "POST /v1/runs/{id}/steps": "",
	"POST /v1/runs/{id}/finish": "", "POST /v1/traces": "", "POST /v1/feedback": "", "POST /ui/feedback": "",
	"POST /ui/look": "", "POST /ui/answers/{id}/keep": "",
}

// Actions of administrators are in the audit log with their actor, by whichever route.
func TestAuditedRoutes(t *testing.T) {
	w := newTenantsWorld(t)
	all := probes(t, w)
	all["POST /ui/login"] = []probe{{
		path: "/ui/login", body: "token=ibid_of_nobody_at_all", media: "application/x-www-form-urlencoded", own: 422,
	}}
	seen := map[string]bool{}
	for _, rt := range slices.Concat(server.Routes(), page.Routes()) {
		key := rt.Method + " " + rt.Pattern
		if rt.Method == "" || rt.Method == "GET" || seen[key] {
			continue
		}
		seen[key] = true
		action, decided := audited[key]
		switch {
		case !decided:
			t.Errorf("%s: add it to audited, with its action in the audit log", key)
		case action != "":
			w.audits(t, key, &rt, action, &all[key][0])
		case rt.Scope == store.ScopeAdmin:
			t.Errorf("%s: what needs the scope admin is an action of an administrator", key)
		}
	}
	for key := range maps.Keys(audited) {
		if !seen[key] {
			t.Errorf("%s: there is no such route", key)
		}
	}
}

// audits makes a request as acme, and checks that its log, or the operator's, has a new entry about it.
func (w *tenantsWorld) audits(t *testing.T, key string, rt *httpx.Route, action store.AuditAction, p *probe) {
	t.Helper()
	token := w.acme
	switch action {
	case store.AuditLoginFailed:
		token = ""
	case store.AuditAlertSeen: // another route may have marked it as seen
		unsee := &probe{path: "/v1/alerts/" + w.ids.alert, body: `{"seen":false}`}
		_, _, err := w.read(t.Context(), token, "POST", unsee)
		testenv.OK(t, err)
	}
	before := w.entries(t)
	status, text, err := w.read(t.Context(), token, rt.Method, p)
	if err != nil || status >= 400 && status != p.own {
		t.Errorf("%s: %d %v %.300s", key, status, err, text)
		return
	}
	for _, e := range w.entries(t) {
		isNew := !slices.ContainsFunc(before, func(old store.AuditEntry) bool { return old.ID == e.ID })
		isKnown := strings.HasPrefix(e.Actor, "tok_") || action == store.AuditLoginFailed && e.Actor == store.ActorNobody
		if isNew && e.Action == action && isKnown && e.Object != "" {
			return
		}
	}
	t.Errorf("%s: the audit log has no entry %s about it with its actor", key, action)
}

// entries returns the entries in the logs of acme and of the operator.
func (w *tenantsWorld) entries(t *testing.T) []store.AuditEntry {
	t.Helper()
	var all []store.AuditEntry
	for _, tenant := range []string{"acme", store.DefaultTenant} {
		all = append(all, testenv.Must(w.Store.AuditLog(t.Context(), tenant, "", store.MaxLimit))(t).Items...)
	}
	return all
}
