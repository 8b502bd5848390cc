package api

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
)

// published answers with what the publisher serves, octet for octet and field for field: signatures depend on it. What
// is not there may be of an answer that was captured a moment ago, and is looked for again.
func (a *API) published(w *httpx.Reply, r *httpx.Request) error {
	if a.public == nil {
		return a.notPublished(r.URL.Path)
	}
	for settled := !strings.HasPrefix(r.URL.Path, "/runs/"); ; settled = true {
		held := &heldBack{to: w, header: http.Header{}}
		a.public.ServeHTTP(held, r.Request)
		switch {
		case !held.isHeld():
			return nil
		case held.status != http.StatusNotFound:
			// why, the publisher has told its owner
			return gateway.Unavailable("what is published here cannot be read now")
		case settled:
			return a.notPublished(r.URL.Path)
		case !a.reader.CatchUp(r.Context()):
			return gateway.Unavailable("what was answered is not all in the store yet, and this may be of it")
		}
	}
}

// notPublished is the problem of a path at which nothing is published.
func (a *API) notPublished(path string) error {
	p := gateway.NewProblem(gateway.CodeNotFound, "nothing is published here",
		"`ibid serve --publish 3 --public-url https://…` publishes a signed manifest of each answer")
	p.Header = http.Header{"Access-Control-Allow-Origin": {"*"}}
	switch {
	case a.publisher == nil:
	case a.publisher.Level > 1 && strings.HasPrefix(path, "/runs/"):
		p.Hint = "there is no such manifest: nobody announced it, its answer did not come to its end or was deleted " +
			"before, or it was kept as long as manifests are"
	case a.publisher.Level > 2:
		p.Hint = manifest.DiscoveryPath + " says what is published, and where"
	default:
		p.Hint = fmt.Sprintf(
			"--publish is %d; manifests and their log are published from 2 on, keys from 3 on", a.publisher.Level,
		)
	}
	return p
}

// heldBack keeps an answer back that says that there is nothing, or that something is wrong; all others pass.
type heldBack struct {
	to     http.ResponseWriter
	header http.Header
	status int // 0: nothing yet
}

func (h *heldBack) Header() http.Header { return h.header }

func (h *heldBack) WriteHeader(status int) {
	if h.status != 0 {
		return
	}
	if h.status = status; h.isHeld() {
		return
	}
	maps.Copy(h.to.Header(), h.header)
	h.to.WriteHeader(status)
}

func (h *heldBack) Write(b []byte) (int, error) {
	if h.WriteHeader(http.StatusOK); h.isHeld() {
		return len(b), nil
	}
	return h.to.Write(b)
}

func (h *heldBack) isHeld() bool {
	return h.status == http.StatusNotFound || h.status >= http.StatusInternalServerError
}

// manifestBody says where the manifest of an answer or of a run is, as JSON.
type manifestBody struct {
	Path   string  `json:"path"`
	URL    string  `json:"url"`
	State  string  `json:"state"`
	SHA256 *string `json:"sha256"` // of its body, hexadecimal; null: it is not built yet
	Salt   *string `json:"salt"`   // of its private hashes, hexadecimal; null: it is not the caller's to know
}

// The states of a manifest.
const (
	manifestPending = "pending"
	manifestBuilt   = "built"
)

// answerManifest says where the manifest of an answer is.
func (a *API) answerManifest(ctx context.Context, r *httpx.Request) (*manifestBody, error) {
	call, err := a.findCall(r) //nolint:contextcheck // the request has it
	if err != nil {
		return nil, err
	}
	return a.showManifest(ctx, r, cmp.Or(call.Run, call.AnswerID), call.AnswerID)
}

// runManifest says where the final manifest of a run is.
func (a *API) runManifest(ctx context.Context, r *httpx.Request) (*manifestBody, error) {
	id, err := r.PathID()
	if err != nil {
		return nil, err
	}
	return a.showManifest(ctx, r, id, "")
}

// showManifest shows the last manifest of an answer of a run; of the run itself, if answer is empty.
func (a *API) showManifest(ctx context.Context, r *httpx.Request, run, answer string) (*manifestBody, error) {
	if a.publisher == nil {
		return nil, a.notPublished(r.URL.Path)
	}
	a.reader.CatchUp(ctx)
	path, digest, err := a.lastManifest(ctx, r.Who.Tenant, run, answer)
	if errors.Is(err, manifest.ErrNotFound) {
		return nil, gateway.NewProblem(gateway.CodeNotFound, "no manifest of it is published",
			"a call is published if its token may publish, or says so with the header "+gateway.PublishHeader+": yes")
	}
	if err != nil {
		return nil, err
	}
	body := &manifestBody{Path: path, URL: a.publisher.URL(path), State: manifestPending, SHA256: httpx.OrNull(digest)}
	if digest != "" {
		body.State = manifestBuilt
	}
	if r.Who.May(store.ScopeAdmin) || r.Who.May(store.ScopePublish) {
		salt, err := a.store.Salt(ctx, r.Who.Tenant, cmp.Or(answer, run))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		body.Salt = httpx.OrNull(hex.EncodeToString(salt))
	}
	return body, nil
}

// lastManifest is [store.Store.LastManifest] of a tenant's run.
func (a *API) lastManifest(ctx context.Context, tenant, run, answer string) (path, digest string, err error) {
	pub, err := a.store.Pub(ctx, tenant, run)
	if err != nil {
		return "", "", err
	}
	return a.store.LastManifest(ctx, pub, answer)
}

// cite puts into the header of the answer document what its manifest announces, if one is published. The document has
// the answer's text, by which a manifest is bound to it.
func (a *API) cite(h http.Header, r *httpx.Request, call *store.Call) {
	if a.publisher == nil || a.publisher.Level < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	list, err := a.announcements(ctx, r.Who.Tenant, call)
	switch {
	case err == nil:
		manifest.SetHeader(h, a.publisher.Form, list...)
	case !errors.Is(err, manifest.ErrNotFound):
		a.logger.LogAttrs(
			ctx, slog.LevelWarn, "an answer is shown without its sources in the header", slog.Any("error", err),
		)
	}
}

// announcements returns what the last manifest of an answer announces, or will once it is built.
func (a *API) announcements(ctx context.Context, tenant string, call *store.Call) ([]manifest.Announcement, error) {
	path, digest, err := a.lastManifest(ctx, tenant, cmp.Or(call.Run, call.AnswerID), call.AnswerID)
	if err != nil {
		return nil, err
	}
	sum, err := hex.DecodeString(digest)
	if err != nil {
		return nil, fmt.Errorf("reading the digest of %s: %w", path, err)
	}
	if len(sum) == 0 {
		return manifest.Announce(manifest.Consulted(call.Answer, nil), a.publisher.URL(path), nil), nil
	}
	signed, err := a.store.Manifest(ctx, path)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(signed.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest %s: %w", path, err)
	}
	return manifest.Announce(m.Sources, a.publisher.URL(path), sum), nil
}
