package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// Archives returns the host names of archives that keep pages of others as they were.
func Archives() []string {
	return []string{
		"web.archive.org", "archive.org", "archive.today", "archive.ph", "archive.is", "archive.li", "archive.vn",
		"archive.fo", "archive.md", "perma.cc", "webcitation.org",
	}
}

// fromArchive is [FromArchive] for a copy that is one: it has the hash that was recorded, or comes from an archive that
// the verifier believes; and it is not the agent's own, who may write there what he likes.
func (m *checked) fromArchive(
	live SourceResult, src *manifest.Source, copied *snapshot.Snapshot, archived SourceResult,
) SourceResult {
	agent, _, _ := strings.Cut(m.man.AgentID, "/")
	mine := func(address string) bool {
		name, _ := hostAndPort(address)
		return hostOf(address) == hostOf(m.url) || hostOf(address) == agent || name == agent
	}
	host := ascii(hostOf(copied.FinalURL))
	same := archived.Hash != "" && archived.Hash == src.Hash
	switch {
	case !archived.Counts.Passes():
		return live
	case mine(src.ArchiveURL) || mine(copied.FinalURL):
		live.Note = "The source could not be read; its copy at " + host + " is the agent's own, and proves nothing."
	case !same && (!m.archives(src.ArchiveURL, src.URL) || !m.archives(copied.FinalURL, src.URL)):
		live.Note = fmt.Sprintf(
			"The source could not be read; its copy at %s is not the one that was recorded, and that is no archive that is believed.",
			host,
		)
	default:
		return FromArchive(live, archived)
	}
	return live
}

// archives reports whether an address is one of an archive that is believed. Those of the Wayback Machine say of which
// page.
func (v *Verifier) archives(address, of string) bool {
	list := v.Archives
	if list == nil {
		list = Archives()
	}
	host := strings.TrimPrefix(hostOf(address), "www.")
	if !unforgeable(address) || !slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, host) }) {
		return false
	}
	return host != "web.archive.org" || strings.Contains(address, hostOf(of))
}

// claimed says if there is a claim for which no source is to speak, or no claim at all: a report must not be trusted
// for what nobody has said.
func (m *checked) claimed(evidence []Evidence) {
	if len(evidence) == 0 {
		m.found(NothingClaimed, CountInfo, "The manifest has no claims: there is nothing to verify.")
	}
	for i := range evidence {
		if len(evidence[i].Results) == 0 {
			m.report.add(Finding{
				Code: NothingClaimed, Counts: CountInfo, Manifest: m.out.URL, Claim: m.man.Claims[i].ID,
				Detail: "The claim has no source that is to support it.",
			})
		}
	}
}
