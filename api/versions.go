package api

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

// versionBody is a state of a source as JSON.
type versionBody struct {
	URL          string    `json:"url"`
	FinalURL     *string   `json:"final_url"`
	Hash         string    `json:"hash"`
	Status       *int      `json:"status"` // of the HTTP response
	MediaType    *string   `json:"media_type"`
	ETag         *string   `json:"etag"`
	LastModified *string   `json:"last_modified"`
	FirstSeenAt  time.Time `json:"first_seen_at"`
	LastSeenAt   time.Time `json:"last_seen_at"`
	Kept         bool      `json:"kept"` // there is a copy of its bytes
}

// versions lists the versions of a source, latest first.
func (a *API) versions(ctx context.Context, r *httpx.Request) (*store.Page[store.Version], error) {
	url, err := snapshot.CleanURL(r.Params.Get("url"))
	if err != nil {
		return nil, httpx.BadRequest(
			"url: not the http or https URL of a source", "/v1/sources/versions?url=https://…")
	}
	return a.store.Versions(ctx, r.Who.Tenant, url, r.Params.Query())
}

func showVersion(_ *httpx.Request, v *store.Version) versionBody {
	return versionBody{
		v.URL, httpx.OrNull(v.FinalURL), v.Hash, httpx.OrNull(v.Status), httpx.OrNull(v.MediaType),
		httpx.OrNull(v.ETag),
		httpx.OrNull(v.LastModified), v.FetchedAt.UTC(), v.LastSeen.UTC(), v.Kept,
	}
}

// The formats of a copy.
const (
	asOctets = "octets"
	asWARC   = "warc"
)

// copyOf returns the bytes of a source as they were fetched, in such a way that no browser renders them under this
// origin.
func (a *API) copyOf(w *httpx.Reply, r *httpx.Request) error {
	release, err := a.bodies.Hold(r.Who, store.MaxCopy)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	version, err := a.store.Copy(ctx, r.Who.Tenant, r.PathValue("hash"))
	if err != nil {
		return httpx.StoreError("read a copy", err)
	}
	digits := strings.TrimPrefix(version.Hash, "sha256:")
	body, mediaType, name := version.Octets, "application/octet-stream", digits+".bin"
	if r.Params.Get("as") == asWARC {
		var b bytes.Buffer
		if err := snapshot.WriteWARC(&b, strings.TrimSpace("ibid "+a.o.Version), &version.Snapshot); err != nil {
			return fmt.Errorf("archive a copy: %w", err)
		}
		body = b.Bytes()
		mediaType, name = "application/gzip", digits+".warc.gz"
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	w.Tagged(r, mediaType, body)
	return nil
}
