package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/ibidhq/ibid/gateway"
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
	Kept         bool      `json:"kept"` // its octets are there
}

// versions lists the states that a source was found in, the latest first.
func (a *API) versions(w http.ResponseWriter, r *request) error {
	query, err := r.params.query()
	if err != nil {
		return err
	}
	url, err := snapshot.CleanURL(r.params["url"])
	if err != nil {
		return badRequest("url: it is not the http or https address of a source", "/v1/sources/versions?url=https://…")
	}
	items, next, err := list(
		a, r, "list the versions of a source",
		func(ctx context.Context) (*store.Page[store.Version], error) {
			return a.store.Versions(ctx, r.who.Tenant, url, query)
		},
		showVersion,
	)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, struct {
		Versions   []versionBody `json:"versions"`
		NextCursor *string       `json:"next_cursor"`
	}{items, next})
}

func showVersion(v *store.Version) versionBody {
	return versionBody{
		v.URL, orNull(v.FinalURL), v.Hash, orNull(v.Status), orNull(v.MediaType), orNull(v.ETag),
		orNull(v.LastModified), v.FetchedAt.UTC(), v.LastSeen.UTC(), v.Kept,
	}
}

// The forms of a copy.
const (
	asOctets = "octets"
	asWARC   = "warc"
)

// copyOf hands out the octets of a source as they were read. Whatever they are, no browser shows them as a page of this
// origin.
func (a *API) copyOf(w http.ResponseWriter, r *request) error {
	form, err := r.params.choice("as", []string{asOctets, asWARC})
	if err != nil {
		return err
	}
	digits, ok := strings.CutPrefix(r.PathValue("hash"), "sha256:")
	if b, err := hex.DecodeString(digits); !ok || err != nil || len(b) != 32 || digits != strings.ToLower(digits) {
		return store.ErrNotFound
	}
	if !a.decodes.TryAcquire(store.MaxCopy) {
		return gateway.Unavailable("too much is being read at the same time")
	}
	defer a.decodes.Release(store.MaxCopy)
	ctx, cancel := within(r)
	defer cancel()
	version, err := a.store.Copy(ctx, r.who.Tenant, "sha256:"+digits)
	if err != nil {
		return storeError("read a copy", err)
	}
	body, mediaType, name := version.Octets, "application/octet-stream", digits+".bin"
	if form == asWARC {
		if body, err = a.archive(&version.Snapshot); err != nil {
			return err
		}
		mediaType, name = "application/gzip", digits+".warc.gz"
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	writeTagged(w, r, mediaType, body)
	return nil
}

// archive returns a document as a file of WARC 1.1.
func (a *API) archive(s *snapshot.Snapshot) ([]byte, error) {
	var b bytes.Buffer
	var one iter.Seq2[*snapshot.Snapshot, error] = func(yield func(*snapshot.Snapshot, error) bool) { yield(s, nil) }
	if err := snapshot.WriteWARC(
		&b, one,
		&snapshot.WARCOptions{Software: strings.TrimSpace("ibid " + a.version)},
	); err != nil {
		return nil, fmt.Errorf("archive a copy: %w", err)
	}
	return b.Bytes(), nil
}
