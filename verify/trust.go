package verify

import (
	"context"
	"strings"
)

// authority says whether the one who signed may speak for the agent and the response.
func (m *checked) authority(ctx context.Context) error {
	at := origin(m.url)
	host, _, _ := strings.Cut(m.man.AgentID, "/")
	if m.url == "" {
		m.found(AuthorityUnchecked, CountInfo, "Where the manifest is from is not known, and so not who speaks in it.")
		return nil
	}
	if name, _ := hostAndPort(m.url); host != name && host != hostOf(m.url) {
		m.fail(
			AuthorityMismatch, "The manifest speaks for the agent %s, but comes from %s.", m.man.AgentID, hostOf(m.url),
		)
		return nil
	}
	switch from := m.from(); {
	case m.stored && (!m.out.Verified || !m.seen):
		m.found(AuthorityUnchecked, CountInfo, "That the manifest comes from "+host+" is what it says itself.")
	case from == "" && m.response == nil && m.upstream == nil:
		m.found(AuthorityVerified, CountPass, "The manifest comes from the host of its agent, "+host+".")
	case from == "":
		m.found(
			AuthorityUnchecked, CountInfo,
			"Where the response comes from is not known; the manifest comes from the host of its agent, "+host+".",
		)
	case from == at:
		m.found(AuthorityVerified, CountPass, "Response and manifest come from the host of the agent, "+host+".")
	case !m.delegated(ctx, from, at):
		return nil
	}
	m.trust()
	return nil
}

// from returns the origin of what the manifest is about; empty: not known.
func (m *checked) from() string {
	switch {
	case m.upstream != nil:
		return origin(m.upstream.source.URL)
	case m.response != nil && !m.response.hinted:
		return origin(m.response.URL)
	default:
		return ""
	}
}

// delegated asks the response's origin whether it lets the manifest's speak for it.
func (m *checked) delegated(ctx context.Context, from, at string) bool {
	d := m.of(ctx, from, false)
	if d.Discovery != nil {
		for _, other := range d.Discovery.ManifestOrigins {
			if origin(other) == at {
				m.found(AuthorityVerified, CountPass, "The origin of the response, "+from+", lets "+at+" speak for it.")
				return true
			}
		}
	}
	m.fail(
		AuthorityMismatch, "The response comes from %s, which does not say that manifests of %s speak for it.", from,
		at,
	)
	return false
}

// trust compares the signer with those whom the verifier trusts.
func (m *checked) trust() {
	if !m.out.Verified {
		return
	}
	host := hostOf(m.url)
	for _, entry := range m.Trust {
		byHost := strings.EqualFold(strings.TrimSuffix(entry, "."), host) && m.seen && unforgeable(m.url)
		if byHost || entry == m.out.KeyID {
			m.out.Trusted, m.out.TrustedBy = true, entry
			return
		}
	}
}

// expired says whether the manifest has.
func (m *checked) expired(context.Context) error {
	if at := m.man.ExpiresAt; at != "" && m.now.After(at.Time()) {
		m.fail(Expired, "The manifest expired at %s.", at)
	}
	return nil
}
