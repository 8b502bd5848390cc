package main

import (
	"bytes"
	"embed"
	"net/http"
	"strings"
	"sync/atomic"
)

// demoSitePath is what the paths of the demo's pages begin with.
const demoSitePath = "demo"

//go:embed demo/pages
var demoPages embed.FS

// demoSite serves the pages that the demo's agent cites. They are real as far as a verifier is concerned: it reads
// them, and one of them changes.
type demoSite struct{ changed atomic.Bool }

// ServeHTTP serves a page. Once the site has changed, the history says another year.
func (s *demoSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := demoPages.ReadFile("demo/pages/" + strings.TrimPrefix(r.URL.Path, "/"+demoSitePath+"/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	if s.changed.Load() {
		body = bytes.ReplaceAll(body, []byte("seen in 1968"), []byte("seen in 1986"))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(body) // who left does not read it
}
