package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"code.dny.dev/ssrf"
	"golang.org/x/net/idna"
)

// maxURL is the maximum length in bytes of an address that is fetched or cleaned, before and after.
const maxURL = 8192

// CleanURL returns an absolute http or https address as it is sent and compared: scheme and host in lower case, the
// host in its ASCII form (A-labels) or as an address in canonical spelling, no default port, no user, no fragment, no
// dot segments, and characters that are not allowed in a path or query percent-encoded. It does not check whether the
// address may be fetched. The error is a [*FetchError] of kind [Blocked].
func CleanURL(url string) (string, error) {
	t, err := parseTarget(url)
	if err != nil {
		return "", err
	}
	return t.clean, nil
}

// IsPublicURL reports whether an absolute http or https address may be readable by anyone: it has no user or password,
// and its host is not one that only a single machine or network knows (localhost, wiki, wiki.corp.internal, 10.0.0.5,
// [fd00::1]). Names are not resolved, and what the address names may still be secret.
func IsPublicURL(url string) bool {
	t, err := parseTarget(url)
	switch {
	case err != nil || t.user:
		return false
	case t.ip.IsValid():
		return ssrf.New().SafeAddr(t.ip.Unmap()) == nil
	}
	name := strings.TrimSuffix(t.url.Hostname(), ".")
	_, domain, qualified := strings.Cut(name, ".")
	return qualified && !slices.ContainsFunc(localDomains, func(local string) bool {
		return domain == local || strings.HasSuffix(domain, "."+local)
	})
}

// WithoutAccess returns an address without the query parameters that grant access to whoever has them: a signature of
// Amazon S3 and CloudFront, Google Cloud, Azure, Alibaba or Tencent, or a token. Other parameters are unchanged, in
// their order; an address without such parameters is returned unchanged.
func WithoutAccess(address string) string {
	from := strings.IndexByte(address, '?')
	if from < 0 {
		return address
	}
	query, fragment, _ := strings.Cut(address[from+1:], "#")
	var kept []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if !slices.Contains(accessParameters, strings.ToLower(name)) {
			kept = append(kept, parameter)
		}
	}
	if len(kept) == strings.Count(query, "&")+1 {
		return address
	}
	address = address[:from]
	if len(kept) > 0 {
		address += "?" + strings.Join(kept, "&")
	}
	if fragment != "" {
		address += "#" + fragment
	}
	return address
}

// accessParameters are the query parameters, in lower case, that grant access. Those that accompany a signature, such
// as its time and its key's name, are worthless without it.
var accessParameters = []string{
	"signature", "sig", "x-amz-signature", "x-amz-security-token", "x-goog-signature", "x-oss-signature", "q-signature",
	"token", "access_token", "auth_token", "id_token", "jwt", "api_key", "apikey", "password",
}

// localDomains are domains whose names differ, or do not exist, in other networks: those of RFC 6761, 6762, 7686 and
// 8375, the one that ICANN reserved for this purpose, and those that routers and offices use without a registration.
var localDomains = []string{
	"localhost", "local", "internal", "home.arpa", "onion", "test",
	"lan", "localdomain", "intranet", "corp", "home", "private",
}

// target is a parsed address.
type target struct {
	clean string
	url   *url.URL   // of clean
	ip    netip.Addr // invalid if the host is a name
	port  uint16
	user  bool // it had a user or password
}

// guard decides which addresses may be connected to.
type guard struct {
	allow   []netip.Prefix
	special *ssrf.Guardian
}

// allowed reports whether the program's options allow a.
func (g *guard) allowed(a netip.Addr) bool {
	return slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// target parses an address and refuses what can be refused before a name is resolved.
func (g *guard) target(raw string) (*target, *FetchError) {
	t, err := parseTarget(raw)
	if err != nil {
		return nil, err
	}
	if t.user {
		return nil, blocked(raw, reasonUserinfo, "it has a user or password")
	}
	if t.ip.IsValid() && g.allowed(t.ip) {
		return t, nil
	}
	if t.ip.IsValid() {
		if err := g.special.SafeAddr(t.ip); err != nil {
			return nil, &FetchError{URL: shownURL(raw), Kind: Blocked, Reason: reasonNetwork, Err: err}
		}
	}
	if t.port != 80 && t.port != 443 && (t.ip.IsValid() || len(g.allow) == 0) {
		return nil, blocked(raw, reasonPort, "port %d is neither 80 nor 443", t.port)
	}
	return t, nil
}

// errZone means that an address has a zone, so that it is in one of this machine's networks.
var errZone = errors.New("it has a zone")

// check decides about a connection that is about to be made, to an address that was just resolved. The checked address
// is the one that is connected to, so a name that resolves differently each time cannot bypass it.
func (g *guard) check(network, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q is not an address", ssrf.ErrInvalidHostPort, address)
	}
	if at.Addr().Zone() != "" {
		return fmt.Errorf("%w: %w: %s", ssrf.ErrProhibitedIP, errZone, at.Addr())
	}
	if (network == "tcp4" || network == "tcp6") && g.allowed(at.Addr()) {
		return nil
	}
	return g.special.Safe(network, address, nil)
}

// parseTarget parses an absolute http or https address.
func parseTarget(raw string) (*target, *FetchError) {
	if len(raw) > maxURL {
		return nil, blocked(raw, reasonURL, "it has %d bytes, the limit is %d", len(raw), maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // its text repeats the address, which may have a password
		}
		return nil, blocked(raw, reasonURL, "%v", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, blocked(raw, reasonScheme, "its scheme is %.20q", u.Scheme)
	}
	if u.Opaque != "" || u.Host == "" {
		return nil, blocked(raw, reasonURL, "it has no host")
	}
	const improper = "it has no valid host"
	t := &target{user: u.User != nil}
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		if t.ip, err = netip.ParseAddr(host); err != nil || !t.ip.Is6() {
			return nil, blocked(raw, reasonHost, improper)
		}
		if t.ip.Zone() != "" {
			return nil, blocked(raw, reasonZone, improper)
		}
		host = "[" + t.ip.String() + "]"
	} else {
		var ok bool
		if host, ok = cleanName(host); !ok {
			return nil, blocked(raw, reasonHost, improper)
		}
		if readAsAddress.MatchString(host) {
			// Browsers and some resolvers read 127.1, 0x7f000001 and 2130706433 as addresses. Only the canonical
			// spelling is accepted.
			if t.ip, err = netip.ParseAddr(host); err != nil || !t.ip.Is4() {
				return nil, blocked(raw, reasonHost, improper)
			}
		}
	}
	defaultPort := map[string]uint16{"http": 80, "https": 443}[u.Scheme]
	t.port = defaultPort
	if s := u.Port(); s != "" {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return nil, blocked(raw, reasonPort, "%.10q is not a port", s)
		}
		t.port = uint16(n)
	}
	if t.port != defaultPort {
		host += ":" + strconv.Itoa(int(t.port))
	}
	// RawPath, if set, is the path as it was given. EscapedPath would decode the whole path if it has one unusual
	// character.
	b := []byte(u.Scheme + "://" + host)
	b = appendEscaped(b, withoutDots(cmp.Or(u.RawPath, u.EscapedPath())), "\"<>\\^`{|}")
	if u.RawQuery != "" || u.ForceQuery {
		b = appendEscaped(append(b, '?'), u.RawQuery, "\"<>")
	}
	t.clean = string(b)
	if t.url, err = url.Parse(t.clean); err != nil || len(t.clean) > maxURL {
		return nil, blocked(raw, reasonURL, "it cannot be normalized")
	}
	return t, nil
}

// readAsAddress matches hosts that browsers read as an IPv4 address, by their last label.
var readAsAddress = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)\.?$`)

// cleanName returns a host name in lower-case ASCII, mapped as browsers do.
func cleanName(host string) (string, bool) {
	host = strings.ToLower(host)
	isForeign := func(r rune) bool { return r >= 0x80 }
	if strings.ContainsFunc(host, isForeign) || strings.Contains("."+host, ".xn--") {
		// As browsers do: there are names with underscores, and with hyphens in the third and fourth place.
		p := idna.New(
			idna.MapForLookup(), idna.BidiRule(), idna.CheckHyphens(false), idna.StrictDomainName(false),
			idna.Transitional(false),
		)
		var err error
		if host, err = p.ToASCII(host); err != nil {
			return "", false
		}
	}
	name := strings.TrimSuffix(host, ".")
	if len(name) > 253 {
		return "", false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "", false
		}
		if strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", false
		}
	}
	return host, true
}

// appendEscaped percent-encodes characters that no address may have, and the ASCII characters in also. Existing escapes
// are unchanged.
func appendEscaped(b []byte, s, also string) []byte {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(also, c) >= 0 {
			b = append(b, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

// withoutDots resolves the segments . and .. of a path, even if their dots are encoded, as browsers do.
func withoutDots(path string) string {
	if path == "" {
		return "/"
	}
	if !strings.Contains(path, "/.") && !strings.Contains(path, "/%2") {
		return path
	}
	var out []string
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		switch strings.ReplaceAll(strings.ToLower(s), "%2e", ".") {
		case "..":
			out = out[:max(0, len(out)-1)]
		case ".":
		default:
			out = append(out, s)
			continue
		}
		if i == len(segments)-1 {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}
