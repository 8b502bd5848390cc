package verify

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/ibidhq/ibid/snapshot"
)

// origin returns the scheme and authority of a URL, in the form in which two are compared; empty: it has none.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Scheme) + "://" + hostOf(address)
}

// hostOf returns the host of a URL in lower case, with its port unless that is the usual one of the scheme.
func hostOf(address string) string {
	name, port := hostAndPort(address)
	if port == "" {
		return name
	}
	return name + ":" + port
}

// hostAndPort returns the host of a URL in lower case and its port; empty: that is the usual one of the scheme.
func hostAndPort(address string) (host, port string) {
	u, err := url.Parse(address)
	if err != nil {
		return "", ""
	}
	host, port = strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "443" && strings.EqualFold(u.Scheme, "https") || port == "80" && strings.EqualFold(u.Scheme, "http") {
		port = ""
	}
	return host, port
}

// clean returns an address in the form in which two are compared; what is no web address stays as it is.
func clean(address string) string {
	if c, err := snapshot.CleanURL(address); err == nil {
		return c
	}
	return address
}

// ofManifest reports whether an address looks like one of a manifest, as [manifest.Path] makes them.
func ofManifest(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	parts := strings.Split(u.Path, "/")
	if len(parts) != 4 && len(parts) != 5 || parts[1] != "runs" || parts[2] == "" || parts[len(parts)-1] == "" {
		return false
	}
	last, _, _ := strings.Cut(parts[3], ".")
	return last == "cite"
}

// unforgeable reports whether nobody on the way can have written what was fetched: by TLS, or because the address is
// one of a special network, which the fetcher reaches only if somebody chose so.
func unforgeable(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	return u.Scheme == "https" || u.Hostname() == "localhost" || special(u.Hostname())
}

// special reports whether a host is an address that no public network has.
func special(host string) bool {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	a = a.Unmap()
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()
}
