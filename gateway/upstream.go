package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxUpstreamName is how long the name of an upstream may be, in bytes.
const maxUpstreamName = 64

// Reserved returns the first path segments that are ibid's own, and so no names of upstreams.
func Reserved() []string {
	return []string{
		"v1", "ui", "runs", "mcp", "healthz", "readyz", "metrics", "schema", "log", ".well-known", "ibid.js",
		"favicon.ico", "robots.txt", "assets", "docs", "debug", "api", "ibid",
	}
}

// upstream is an Upstream, ready for use.
type upstream struct {
	Upstream
	base      string // the URL's path, without a slash at its end
	rawBase   string // the same, escaped
	transport http.RoundTripper
	tunnel    http.Handler
	metrics   upstreamMetrics
}

func newUpstream(u *Upstream, shared http.RoundTripper) (*upstream, error) {
	if err := checkUpstream(u); err != nil {
		return nil, fmt.Errorf("upstream %q: %w", u.Name, err)
	}
	up := &upstream{Upstream: *u, transport: shared}
	if u.Transport != nil {
		up.transport = u.Transport
	}
	up.base = strings.TrimRight(u.URL.Path, "/")
	up.rawBase = strings.TrimRight(u.URL.EscapedPath(), "/")
	return up, nil
}

func checkUpstream(u *Upstream) error {
	notInName := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	switch {
	case u.Name == "" || len(u.Name) > maxUpstreamName || strings.ContainsFunc(u.Name, notInName):
		return fmt.Errorf("a name has 1 to %d lower-case letters, digits, '-' and '_'", maxUpstreamName)
	case slices.Contains(Reserved(), u.Name):
		return errors.New("the name is reserved for ibid's own paths")
	case u.URL == nil || u.URL.Host == "" || u.URL.Scheme != "http" && u.URL.Scheme != "https":
		return errors.New("needs a URL that begins with http:// or https://")
	case u.URL.User != nil || u.URL.RawQuery != "" || u.URL.ForceQuery || u.URL.Fragment != "":
		return errors.New("its URL may not have a user, a query or a fragment")
	}
	return nil
}

// splitPath returns the first segment of a request's path, and the rest of it, unescaped and, where that is not the
// same, escaped: as in [url.URL].
func splitPath(u *url.URL) (name, path, rawPath string) {
	whole := u.RawPath
	if whole == "" {
		whole = u.Path
	}
	if whole == "" || whole[0] != '/' {
		return "", "", ""
	}
	name, rawPath = whole[1:], ""
	if i := strings.IndexByte(name, '/'); i >= 0 {
		name, rawPath = name[:i], name[i:]
	}
	path = rawPath
	if u.RawPath == "" {
		rawPath = ""
	} else if path = strings.TrimPrefix(u.Path, "/"+name); len(path) == len(u.Path) {
		return "", "", "" // the name is escaped: no upstream's is
	}
	return name, path, rawPath
}

// target sets to to where a call goes.
func (u *upstream) target(to *url.URL, in *url.URL, path, rawPath string) {
	to.Scheme, to.Host = u.URL.Scheme, u.URL.Host
	to.RawQuery, to.ForceQuery = in.RawQuery, in.ForceQuery
	to.Path, to.RawPath = path, rawPath
	if u.base == "" {
		return
	}
	if rawPath != "" || u.rawBase != u.base {
		if rawPath == "" {
			rawPath = (&url.URL{Path: path}).EscapedPath()
		}
		to.RawPath = u.rawBase + rawPath
	}
	to.Path = u.base + path
}
