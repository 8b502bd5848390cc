package manifest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/tlog"
)

// Publisher publishes manifests under one origin: it signs, logs, stores and serves them. The zero value publishes
// nothing. Set its fields before the first call of a method, and do not copy it afterwards; the methods are safe for
// concurrent use.
type Publisher struct {
	Origin  string // public origin of everything served: https://agent.example
	AgentID string // its host is that of Origin; empty means that host and /v1
	Contact string // for those who dispute a citation
	// Level is how much is published. 0: nothing is sent or served. 1: headers. 2: manifests, too. 3: signed manifests.
	Level int
	Form  Form
	// Since is when the publisher rose to each level; a level that is missing was always kept.
	Since map[int]time.Time
	// Keys are required at Level 3. Below, they are served for what was signed before.
	Keys      *keyring.Ring
	Log       *tlog.Log // nil disables logging
	Manifests Manifests // nil means in memory
	Now       func() time.Time
	// receives errors that do not affect a response; nil means that they are logged by [slog.Default]
	OnError func(ctx context.Context, err error)

	ManifestOrigins  []string // of Discovery
	IncidentEndpoint string   // of Discovery

	// For manifests of the middleware.
	Texts   *snapshot.Texts // nil means one of the publisher's own
	Checker support.Checker // nil means support.Lexical
	// Read fetches cited sources that the agent did not read itself, as an observer. The response, or its end, waits
	// for it. If it is nil, such sources are not read.
	Read   func(ctx context.Context, url string) (*snapshot.Snapshot, error)
	Secret []byte // derives the salt of each manifest, see Salt; nil means no hashes of private inputs
	Buffer int    // bytes of a response held back until its header is known; 0 means 1 MiB

	memory  MemoryManifests
	texts   snapshot.Texts
	pending sync.Map // paths of manifests whose responses have not ended
}

// defaultBuffer is the default of Publisher.Buffer.
const defaultBuffer = 1 << 20

// maxLater is by how much emitted_at may be later than the signature, as clocks differ.
const maxLater = 300 * time.Second

// Check returns an error if p cannot publish at its level. It does not check whether there is a current key; Publish
// does.
func (p *Publisher) Check() error {
	if p.Level == 0 {
		return nil
	}
	if p.Level < 0 || p.Level > 3 {
		return fmt.Errorf("publishing manifests: there is no level %d", p.Level)
	}
	if err := checkOrigin(p.Origin); err != nil {
		return fmt.Errorf("publishing manifests: %w", err)
	}
	if !Speaks(p.Origin, p.Agent()) {
		return fmt.Errorf("publishing manifests: the agent %q is not at the host of %s", p.Agent(), p.Origin)
	}
	if why := forms["agent"].refuses(p.Agent()); why != "" {
		return fmt.Errorf("publishing manifests: the agent %q: %s", p.Agent(), why)
	}
	if p.Level == 3 && p.Keys == nil {
		return errors.New("publishing manifests: level 3 needs keys")
	}
	return nil
}

// URL returns the URL of a path.
func (p *Publisher) URL(path string) string { return p.Origin + path }

// Salt returns the salt of the manifest at a path, for Builder.Salt and for those who may check its private hashes: the
// HMAC-SHA256 of the path under Secret, or nil without Secret.
func (p *Publisher) Salt(path string) []byte {
	if len(p.Secret) == 0 {
		return nil
	}
	mac := hmac.New(sha256.New, p.Secret)
	mac.Write([]byte(path))
	return mac.Sum(nil)
}

// Publish signs m at Level 3, logs its digest if there is a log, and stores it at path, which must be that of m.Self.
// An inconsistent manifest is an error and is not published. Publishing the same manifest again returns the stored one;
// another one at the same path is ErrMutated.
//
// The digest is logged before the manifest is stored, so that every served manifest is in the log.
func (p *Publisher) Publish(ctx context.Context, path string, m *Manifest) (*Signed, error) {
	s, err := p.publish(ctx, path, m)
	if err != nil {
		return nil, fmt.Errorf("publishing the manifest %s: %w", path, err)
	}
	return s, nil
}

func (p *Publisher) publish(ctx context.Context, path string, m *Manifest) (*Signed, error) {
	now := p.now()
	if err := p.checkManifest(path, m, now); err != nil {
		return nil, err
	}
	s, err := Unsigned(m)
	if err != nil {
		return nil, err
	}
	switch old, err := p.store().Manifest(ctx, path); {
	case err == nil && bytes.Equal(old.Body, s.Body):
		return old, nil
	case err == nil:
		return nil, ErrMutated
	case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrPending):
		return nil, err
	}
	if err := p.seal(ctx, s, now); err != nil {
		return nil, err
	}
	return s, p.store().KeepManifest(ctx, path, s)
}

// checkManifest returns an error if m cannot be published at path.
func (p *Publisher) checkManifest(path string, m *Manifest, now time.Time) error {
	if err := p.Check(); err != nil {
		return err
	}
	switch {
	case p.Level < 2:
		return fmt.Errorf("there are no manifests at level %d", p.Level)
	case !isManifestPath(path):
		return errors.New(
			"the path does not have a form that Path makes: /runs/{run}/cite, /runs/{run}/cite.2 and so on, or " +
				"/runs/{run}/cite/{answer}",
		)
	case m.Self != p.URL(path):
		return fmt.Errorf("its URL is %q", m.Self)
	case m.AgentID != p.Agent():
		return fmt.Errorf("its agent is %q", m.AgentID)
	case m.EmittedAt.Time().After(now.Add(maxLater)):
		return errors.New("it is from the future")
	}
	if list := m.Problems(); len(list) > 0 {
		return fmt.Errorf("it contradicts itself: %s at %q: %s", list[0].Status, list[0].Path, list[0].Detail)
	}
	return nil
}

func (p *Publisher) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

func (p *Publisher) store() Manifests {
	if p.Manifests != nil {
		return p.Manifests
	}
	return &p.memory
}

// reportError passes an error to OnError, or logs it.
func (p *Publisher) reportError(ctx context.Context, err error) {
	switch {
	case err == nil:
	case p.OnError != nil:
		p.OnError(ctx, err)
	default:
		slog.ErrorContext(ctx, "ibid: a manifest is missing", slog.Any("error", err))
	}
}

// checkReady is Check, and also checks that there is a current key.
func (p *Publisher) checkReady() error {
	if err := p.Check(); err != nil || p.Level < 3 {
		return err
	}
	if _, _, err := p.Keys.Signer(keyring.Manifest); err != nil {
		return fmt.Errorf("publishing manifests: level 3 needs a signing key: %w (Keys.New makes one)", err)
	}
	return nil
}

// Seal turns m into what is served at path, which must be that of m.Self: it signs it at Level 3 and logs its digest if
// there is a log. It is for callers that store manifests themselves; [Publisher.Publish] also stores it. An
// inconsistent manifest is an error.
//
// The digest is logged before the manifest can be stored, so that every served manifest is in the log.
func (p *Publisher) Seal(ctx context.Context, path string, m *Manifest) (*Signed, error) {
	now := p.now()
	if err := p.checkManifest(path, m, now); err != nil {
		return nil, fmt.Errorf("sealing the manifest %s: %w", path, err)
	}
	s, err := Unsigned(m)
	if err == nil {
		err = p.seal(ctx, s, now)
	}
	if err != nil {
		return nil, fmt.Errorf("sealing the manifest %s: %w", path, err)
	}
	return s, nil
}

// seal signs and logs s, as the level requires.
func (p *Publisher) seal(ctx context.Context, s *Signed, at time.Time) error {
	if p.Level == 3 {
		key, signer, err := p.Keys.Signer(keyring.Manifest)
		if err != nil {
			return err
		}
		if err := s.sign(key, signer, at); err != nil {
			return err
		}
	}
	if p.Log == nil {
		return nil
	}
	if _, err := p.Log.Append(ctx, s.Digest()); err != nil {
		return fmt.Errorf("logging it: %w", err)
	}
	proof, err := p.Log.Proof(ctx, s.Digest())
	if err != nil {
		return fmt.Errorf("proving that it is logged: %w", err)
	}
	s.Proof = proof
	return nil
}

// The reasons why there is no manifest: errors of Manifests wrap one of these.
var (
	ErrPending  = errors.New("the manifest is not built yet")
	ErrNotFound = errors.New("there is no such manifest")
	ErrMutated  = errors.New("there is already another manifest")
)

// Manifests stores published manifests permanently, by the path of their URL. Implementations must be safe for
// concurrent use.
type Manifests interface {
	// Manifest returns the stored manifest, which must not be changed. The error wraps ErrPending or ErrNotFound, or is
	// a failure.
	Manifest(ctx context.Context, path string) (*Signed, error)
	// KeepManifest stores s. If the same body is already stored, nothing changes; if another one is, the error wraps
	// ErrMutated.
	KeepManifest(ctx context.Context, path string, s *Signed) error
}

// defaultMemory is the default of MemoryManifests.Limit.
const defaultMemory = 64 << 20

// MemoryManifests stores manifests in memory, for examples and agents without a disk. When the limit is exceeded, the
// oldest are dropped. The zero value is ready to use. Do not copy it.
type MemoryManifests struct {
	Limit int64 // bytes of bodies; 0 means 64 MiB

	mu    sync.Mutex
	all   map[string]*Signed
	order []string // oldest first
	size  int64
}

// Manifest implements [Manifests].
func (m *MemoryManifests) Manifest(_ context.Context, path string) (*Signed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.all[path]
	if s == nil {
		return nil, fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	return s, nil
}

// KeepManifest implements [Manifests].
func (m *MemoryManifests) KeepManifest(_ context.Context, path string, s *Signed) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.all[path]; old != nil {
		if bytes.Equal(old.Body, s.Body) {
			return nil
		}
		return fmt.Errorf("%s: %w", path, ErrMutated)
	}
	if m.all == nil {
		m.all = map[string]*Signed{}
	}
	m.all[path] = s
	m.order = append(m.order, path)
	m.size += int64(len(s.Body))
	for m.size > cmp.Or(m.Limit, defaultMemory) && len(m.order) > 1 {
		oldest := m.order[0]
		m.order = m.order[1:]
		m.size -= int64(len(m.all[oldest].Body))
		delete(m.all, oldest)
	}
	return nil
}

// The values of Cache-Control. A manifest never changes; no-transform keeps content codings off its signed octets.
const (
	cacheForever = "public, max-age=31536000, immutable, no-transform"
	cacheHour    = "public, max-age=3600" // discovery, keys, schema: at most a day is allowed
	cacheMinute  = "public, max-age=60"   // proofs, whose checkpoints change
	cacheNever   = "no-store"
)

// retryAfter is the Retry-After of a manifest that is not built yet, in seconds.
const retryAfter = "2"

// Handler serves manifests, their proofs, the discovery document, keys, schema and log at their paths, for GET and
// HEAD. There are manifests only at Level 2 and 3, and keys only at Level 3; below, if there are Keys. Everything is
// 404 at Level 0, and if Check fails, which is reported to OnError.
//
// A manifest that is not built yet is 202 with Retry-After and {"status":"pending"}. A built one is served with its
// signature, without a content coding, and may be cached forever.
func (p *Publisher) Handler() http.Handler {
	err := p.Check()
	p.reportError(context.Background(), err)
	if err != nil || p.Level == 0 {
		return http.NotFoundHandler()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+DiscoveryPath, func(w http.ResponseWriter, r *http.Request) {
		b, err := json.Marshal(p.Discovery())
		p.serveFixed(w, r, ContentType, b, err)
	})
	if p.Level >= 2 || p.Keys != nil {
		mux.HandleFunc("GET "+SchemaPath, func(w http.ResponseWriter, r *http.Request) {
			p.serveFixed(w, r, "application/schema+json", Schema(), nil)
		})
		mux.HandleFunc("GET /runs/", p.serveRun)
		if p.Log != nil {
			mux.Handle("GET "+LogPath, http.StripPrefix(strings.TrimSuffix(LogPath, "/"), p.Log.Handler()))
		}
	}
	if p.Keys != nil {
		for path, all := range map[string]bool{DirectoryPath: false, KeysPath: true} {
			mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
				b, err := p.Keys.Directory(all)
				p.serveFixed(w, r, keyring.MediaType, b, err)
			})
		}
	}
	return mux
}

// serveFixed serves what is the same for every client, cacheable for an hour.
func (p *Publisher) serveFixed(w http.ResponseWriter, r *http.Request, contentType string, b []byte, err error) {
	if err != nil {
		p.reportError(r.Context(), err)
		refuse(w, http.StatusInternalServerError)
		return
	}
	serve(w, r, contentType, cacheHour, b)
}

// serveRun serves a manifest or its proof.
func (p *Publisher) serveRun(w http.ResponseWriter, r *http.Request) {
	path, proof := strings.CutSuffix(r.URL.EscapedPath(), ProofSuffix)
	if !isManifestPath(path) {
		refuse(w, http.StatusNotFound)
		return
	}
	s, err := p.store().Manifest(r.Context(), path)
	_, pending := p.pending.Load(path)
	switch {
	case errors.Is(err, ErrPending), errors.Is(err, ErrNotFound) && pending:
		w.Header().Set("Retry-After", retryAfter)
		w.Header().Set("Cache-Control", cacheNever)
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Content-Type", ContentType)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"status":"pending"}`)) // the client may be gone
	case errors.Is(err, ErrNotFound):
		refuse(w, http.StatusNotFound)
	case err != nil:
		p.reportError(r.Context(), err)
		refuse(w, http.StatusInternalServerError)
	case proof:
		p.serveProof(w, r, s)
	default:
		serveSigned(w, r, s)
	}
}

func (p *Publisher) serveProof(w http.ResponseWriter, r *http.Request, s *Signed) {
	proof := s.Proof
	if p.Log != nil {
		newer, err := p.Log.Proof(r.Context(), s.Digest())
		if err != nil && !errors.Is(err, tlog.ErrNotFound) {
			p.reportError(r.Context(), err)
		} else if err == nil {
			proof = newer
		}
	}
	if proof == nil {
		refuse(w, http.StatusNotFound)
		return
	}
	serve(w, r, "text/plain; charset=utf-8", cacheMinute, proof)
}

func serveSigned(w http.ResponseWriter, r *http.Request, s *Signed) {
	digest, h := s.Digest(), w.Header()
	tag := `"` + hex.EncodeToString(digest[:]) + `"`
	h.Set("Etag", tag)
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cache-Control", cacheForever)
	if matches(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Digest", s.ContentDigest)
	if s.SignatureInput != "" {
		h.Set("Signature-Input", s.SignatureInput)
		h.Set("Signature", s.Signature)
	}
	serve(w, r, s.ContentType, cacheForever, s.Body)
}

// matches reports whether an If-None-Match contains the tag.
func matches(fields []string, tag string) bool {
	for _, field := range fields {
		for one := range strings.SplitSeq(field, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// serve serves octets that anyone may read, including scripts in browsers.
func serve(w http.ResponseWriter, r *http.Request, contentType, cache string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("Cache-Control", cache)
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b) //nolint:gosec // never as a page; the client may be gone
	}
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", cacheNever)
	http.Error(w, strings.ToLower(http.StatusText(status)), status)
}
