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

// maxURL is how many bytes an address that is fetched or cleaned may have, before and after.
const maxURL = 8192

// CleanURL returns an absolute http or https address as it is sent and compared: scheme and host in lower case, the
// host in its ASCII form (A-labels) or as an address in its usual spelling, no default port, no user, no fragment, no
// dot segments, and what is not allowed in a path or query percent-encoded. It says nothing about whether the address
// may be fetched. The error is a [*FetchError] of kind [Blocked].
func CleanURL(url string) (string, error) {
	t, err := parseTarget(url)
	if err != nil {
		return "", err
	}
	return t.clean, nil
}

// IsPublicURL reports whether anybody may be able to read what is at an absolute http or https address: it has no user
// or password, and its host is none that only one machine or network knows (localhost, wiki, wiki.corp.internal,
// 10.0.0.5, [fd00::1]). Names are not resolved, and what the address asks for may be secret all the same.
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

// WithoutAccess returns an address without the parameters of its query that give whoever has them access to what it
// names: a signature of Amazon S3 and CloudFront, Google Cloud, Azure, Alibaba or Tencent, or a token. The others stay
// as they are, in their order; an address without such parameters is returned unchanged.
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

// accessParameters are the parameters of queries, in lower case, that give access. What stands beside a signature, such
// as its time and its key's name, is worth nothing without it.
var accessParameters = []string{
	"signature", "sig", "x-amz-signature", "x-amz-security-token", "x-goog-signature", "x-oss-signature", "q-signature",
	"token", "access_token", "auth_token", "id_token", "jwt", "api_key", "apikey", "password",
}

// localDomains are domains whose names mean something else, or nothing, in every network: RFC 6761, 6762, 7686 and
// 8375, the one that ICANN reserved for that, and those that routers and offices use without having been given them.
var localDomains = []string{
	"localhost", "local", "internal", "home.arpa", "onion", "test",
	"lan", "localdomain", "intranet", "corp", "home", "private",
}

// target is an address that was understood.
type target struct {
	clean string
	url   *url.URL   // of clean
	ip    netip.Addr // invalid: the host is a name
	port  uint16
	user  bool // there was one
}

// guard decides where may be connected to.
type guard struct {
	allow   []netip.Prefix
	special *ssrf.Guardian
}

// allowed reports whether the owner of the program said that a is all right.
func (g *guard) allowed(a netip.Addr) bool {
	return slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// target understands an address and refuses what can be refused before anything is resolved.
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

// errZone: an address with a zone is one of this machine's networks.
var errZone = errors.New("it has a zone")

// check decides about a connection that is about to be made, to an address that was just resolved: the address that is
// checked is the one that is connected to, so a name that resolves differently each time does not get around it.
func (g *guard) check(network, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q is no address", ssrf.ErrInvalidHostPort, address)
	}
	if at.Addr().Zone() != "" {
		return fmt.Errorf("%w: %w: %s", ssrf.ErrProhibitedIP, errZone, at.Addr())
	}
	if (network == "tcp4" || network == "tcp6") && g.allowed(at.Addr()) {
		return nil
	}
	return g.special.Safe(network, address, nil)
}

// parseTarget understands an absolute http or https address.
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
	const improper = "it has no proper host"
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
			// Browsers read 127.1, 0x7f000001 and 2130706433 as addresses, some resolvers do. One spelling is enough.
			if t.ip, err = netip.ParseAddr(host); err != nil || !t.ip.Is4() {
				return nil, blocked(raw, reasonHost, improper)
			}
		}
	}
	usual := map[string]uint16{"http": 80, "https": 443}[u.Scheme]
	t.port = usual
	if s := u.Port(); s != "" {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return nil, blocked(raw, reasonPort, "%.10q is no port", s)
		}
		t.port = uint16(n)
	}
	if t.port != usual {
		host += ":" + strconv.Itoa(int(t.port))
	}
	// RawPath, if it is there, is the path as it was given. EscapedPath would decode all of a path that has one odd
	// character.
	b := []byte(u.Scheme + "://" + host)
	b = appendEscaped(b, withoutDots(cmp.Or(u.RawPath, u.EscapedPath())), "\"<>\\^`{|}")
	if u.RawQuery != "" || u.ForceQuery {
		b = appendEscaped(append(b, '?'), u.RawQuery, "\"<>")
	}
	t.clean = string(b)
	if t.url, err = url.Parse(t.clean); err != nil || len(t.clean) > maxURL {
		return nil, blocked(raw, reasonURL, "it cannot be written")
	}
	return t, nil
}

// readAsAddress is a host that browsers read as an IPv4 address, by its last label.
var readAsAddress = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)\.?$`)

// cleanName returns a host's name in lower-case ASCII, mapped as browsers do.
func cleanName(host string) (string, bool) {
	host = strings.ToLower(host)
	isForeign := func(r rune) bool { return r >= 0x80 }
	if strings.ContainsFunc(host, isForeign) || strings.Contains("."+host, ".xn--") {
		// As browsers do: names with underscores and with hyphens in the third and fourth place exist.
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

// appendEscaped percent-encodes what no address may have, and the ASCII characters in also. What is encoded stays as it
// is.
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

// withoutDots resolves the segments . and .. of a path, also where their dots are encoded, as browsers do.
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
