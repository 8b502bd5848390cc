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

// published serves published data, byte for byte and field for field, because signatures depend on it. If it is not
// found, it may belong to an answer captured a moment ago, so it is looked up again once that is stored.
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
			// the publisher has reported the reason to its owner
			return gateway.Unavailable("published data cannot be read at the moment")
		case settled:
			return a.notPublished(r.URL.Path)
		case !a.reader.CatchUp(r.Context()):
			return gateway.Unavailable("some answers are not in the store yet, and this may be one of them")
		}
	}
}

// notPublished returns the problem of a path at which nothing is published.
func (a *API) notPublished(path string) error {
	p := gateway.NewProblem(gateway.CodeNotFound, "nothing is published here",
		"`ibid serve --publish 3 --public-url https://…` publishes a signed manifest of each answer")
	p.Header = http.Header{"Access-Control-Allow-Origin": {"*"}}
	switch {
	case a.publisher == nil:
	case a.publisher.Level > 1 && strings.HasPrefix(path, "/runs/"):
		p.Hint = "no such manifest: it was never announced, its answer did not complete or was deleted first, or its " +
			"retention has ended"
	case a.publisher.Level > 2:
		p.Hint = manifest.DiscoveryPath + " describes what is published, and where"
	default:
		p.Hint = fmt.Sprintf(
			"--publish is %d; manifests and their log need level 2, keys level 3", a.publisher.Level,
		)
	}
	return p
}

// heldBack withholds a not-found or error response; all others pass.
type heldBack struct {
	to     http.ResponseWriter
	header http.Header
	status int // 0 before the header is written
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

// manifestBody is the location of the manifest of an answer or of a run, as JSON.
type manifestBody struct {
	Path   string  `json:"path"`
	URL    string  `json:"url"`
	State  string  `json:"state"`
	SHA256 *string `json:"sha256"` // of its body, hexadecimal; null until it is built
	// the value of the Citation-Source field that announces it, for the program's own response; null until it is built
	CitationSource *string `json:"citation_source"`
	Salt           *string `json:"salt"` // of its private hashes, hexadecimal; null if the caller may not see it
}

// The states of a manifest.
const (
	manifestPending = "pending"
	manifestBuilt   = "built"
)

// answerManifest returns the location of an answer's manifest.
func (a *API) answerManifest(ctx context.Context, r *httpx.Request) (*manifestBody, error) {
	call, err := a.findCall(r) //nolint:contextcheck // the request has it
	if err != nil {
		return nil, err
	}
	return a.showManifest(ctx, r, cmp.Or(call.Run, call.AnswerID), call.AnswerID)
}

// runManifest returns the location of a run's final manifest.
func (a *API) runManifest(ctx context.Context, r *httpx.Request) (*manifestBody, error) {
	id, err := r.PathID()
	if err != nil {
		return nil, err
	}
	return a.showManifest(ctx, r, id, "")
}

// showManifest returns the latest manifest of an answer of a run, or of the run itself if answer is empty.
func (a *API) showManifest(ctx context.Context, r *httpx.Request, run, answer string) (*manifestBody, error) {
	if a.publisher == nil {
		return nil, a.notPublished(r.URL.Path)
	}
	a.reader.CatchUp(ctx)
	path, digest, err := a.lastManifest(ctx, r.Who.Tenant, run, answer)
	if errors.Is(err, manifest.ErrNotFound) {
		return nil, gateway.NewProblem(gateway.CodeNotFound, "no manifest is published for it",
			"a call is published if its token publishes, or with the header "+gateway.PublishHeader+": yes")
	}
	if err != nil {
		return nil, err
	}
	body := &manifestBody{Path: path, URL: a.publisher.URL(path), State: manifestPending, SHA256: httpx.OrNull(digest)}
	if digest != "" {
		body.State = manifestBuilt
		list, err := a.announced(ctx, path, digest)
		if err != nil {
			return nil, err
		}
		body.CitationSource = httpx.OrNull(manifest.FormatHeader(list, a.publisher.Form))
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

// cite sets the header of an answer document to the announcement of its manifest, if one is published. The document
// contains the answer's text, to which the manifest is bound.
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
			ctx, slog.LevelWarn, "an answer is served without its sources in the header", slog.Any("error", err),
		)
	}
}

// announcements returns what the latest manifest of an answer announces, or will announce once it is built.
func (a *API) announcements(ctx context.Context, tenant string, call *store.Call) ([]manifest.Announcement, error) {
	path, digest, err := a.lastManifest(ctx, tenant, cmp.Or(call.Run, call.AnswerID), call.AnswerID)
	if err != nil {
		return nil, err
	}
	if digest == "" {
		return manifest.Announce(manifest.Consulted(call.Answer, nil), a.publisher.URL(path), nil), nil
	}
	return a.announced(ctx, path, digest)
}

// announced returns what a built manifest announces.
func (a *API) announced(ctx context.Context, path, digest string) ([]manifest.Announcement, error) {
	sum, err := hex.DecodeString(digest)
	if err != nil {
		return nil, fmt.Errorf("reading the digest of %s: %w", path, err)
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
