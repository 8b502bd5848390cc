package manifest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/tlog"
)

// How long what is served may be cached, in Cache-Control. A manifest never changes; no-transform keeps content codings
// off its signed octets.
const (
	cacheForever = "public, max-age=31536000, immutable, no-transform"
	cacheHour    = "public, max-age=3600" // discovery, keys, schema: at most a day is allowed
	cacheMinute  = "public, max-age=60"   // proofs, which lead to newer and newer checkpoints
	cacheNever   = "no-store"
)

// retryAfter is how many seconds a reader waits for a manifest that is not built yet.
const retryAfter = "2"

// Handler serves manifests, their proofs, discovery, keys, schema and log at their paths, for GET and HEAD. Only at
// Level 2 and 3 there are manifests, and only at Level 3 keys. At Level 0 everything is 404, and where Check
// complains, which OnError is told.
//
// A manifest that is not built yet is 202 with Retry-After and {"status":"pending"}. One that is built is served with
// its signature, without a content coding, to be cached for ever.
func (p *Publisher) Handler() http.Handler {
	err := p.Check()
	p.reportError(context.Background(), err)
	if err != nil || p.Level == 0 {
		return http.NotFoundHandler()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+DiscoveryPath, func(w http.ResponseWriter, r *http.Request) {
		b, err := json.Marshal(p.Discovery())
		p.fixed(w, r, ContentType, b, err)
	})
	if p.Level >= 2 {
		mux.HandleFunc("GET "+SchemaPath, func(w http.ResponseWriter, r *http.Request) {
			p.fixed(w, r, "application/schema+json", Schema(), nil)
		})
		mux.HandleFunc("GET /runs/", p.serveRun)
		if p.Log != nil {
			mux.Handle("GET "+LogPath, http.StripPrefix(strings.TrimSuffix(LogPath, "/"), p.Log.Handler()))
		}
	}
	if p.Level == 3 {
		for path, all := range map[string]bool{DirectoryPath: false, KeysPath: true} {
			mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
				b, err := p.Keys.Directory(all)
				p.fixed(w, r, keyring.MediaType, b, err)
			})
		}
	}
	return mux
}

// fixed serves what is the same for everybody, for an hour.
func (p *Publisher) fixed(w http.ResponseWriter, r *http.Request, contentType string, b []byte, err error) {
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
		_, _ = w.Write([]byte(`{"status":"pending"}`)) // a reader that has gone does not matter
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

// matches reports whether an If-None-Match names the tag.
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

// serve serves octets that anybody may read, from a browser, too.
func serve(w http.ResponseWriter, r *http.Request, contentType, cache string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("Cache-Control", cache)
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b) //nolint:gosec // never as a page; a reader that has gone does not matter
	}
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", cacheNever)
	http.Error(w, strings.ToLower(http.StatusText(status)), status)
}
