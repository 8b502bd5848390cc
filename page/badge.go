package page

import (
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/verify"
)

// badge says what was checked about a citation: one word, with an icon and never by its colour alone. The zero badge is
// that nothing was checked.
type badge struct {
	Kind  string // the class of its colour and icon: good, close, bad, lost, none
	Word  string // quote found, reformatted, altered, missing, unreachable, not checked, …
	Title string // the same in a sentence
	Code  string // the status word of docs/attribution-v1.md, or the label of support; empty: none
}

// The kinds of badges. Each has an icon of its own in templates/parts/badge.html.
const (
	badgeGood  = "good"  // what was checked holds
	badgeClose = "close" // it holds with a difference
	badgeBad   = "bad"   // it does not hold
	badgeLost  = "lost"  // it could not be looked at
	badgeNone  = "none"  // it was not looked at
)

// quoteBadge says what came of looking for a citation's words in its source. It says no more than the status does: that
// a quote was found does not say that the claim is right.
func quoteBadge(v *ibid.Verification) badge {
	if v == nil || v.Status == "" {
		return badge{Kind: badgeNone, Word: "not checked", Title: "Nobody has read this source again."}
	}
	return statusBadge(verify.Status(v.Status), v.CheckedAt)
}

// statusBadge returns the badge of a status, which says when it was found, unless that is zero.
func statusBadge(s verify.Status, at time.Time) badge {
	b := wordsOfStatus(s)
	b.Code = string(s)
	if !at.IsZero() {
		b.Title += " Checked on " + moment(at) + "."
	}
	return b
}

// wordsOfStatus returns the badge of a status. Its kind is as the status counts: what passed is good or close, what
// failed is bad.
func wordsOfStatus(s verify.Status) badge {
	switch s { //nolint:exhaustive // the others say nothing of a quote
	case verify.Verified, verify.ExcerptFound, verify.OffsetWrong:
		return badge{Kind: badgeGood, Word: "quote found", Title: "The source still has these words."}
	case verify.DriftedTextIntact, verify.DriftedExcerptIntact:
		return badge{Kind: badgeGood, Word: "quote found", Title: "The source has changed, and still has these words."}
	case verify.VerifiedFromArchive:
		return badge{
			Kind:  badgeClose,
			Word:  "found in the archive",
			Title: "The source cannot be read; its archived copy has these words.",
		}
	case verify.VerifiedHashOnly:
		return badge{
			Kind:  badgeClose,
			Word:  "unchanged",
			Title: "The source is the same as when it was read; no words of it were recorded.",
		}
	case verify.ExcerptReformatted:
		return badge{
			Kind:  badgeClose,
			Word:  "reformatted",
			Title: "The source has these words in another form: spaces, quotes or hyphens differ.",
		}
	case verify.ExcerptCut:
		return badge{
			Kind:  badgeClose,
			Word:  "cut",
			Title: "The source has these words, cut inside a number or a word: they may mean something else there.",
		}
	case verify.ExcerptAltered:
		return badge{Kind: badgeBad, Word: "altered", Title: "The source has something similar, and not these words."}
	case verify.ExcerptMismatch:
		return badge{Kind: badgeBad, Word: "misquoted", Title: "The source is unchanged, and never had these words."}
	case verify.ExcerptMissing:
		return badge{Kind: badgeBad, Word: "missing", Title: "The source does not have these words."}
	case verify.HashMismatch:
		return badge{
			Kind:  badgeLost,
			Word:  "changed",
			Title: "The source has changed, and there were no words that could be compared.",
		}
	case verify.Gone:
		return badge{Kind: badgeLost, Word: "gone", Title: "The source is not there any more."}
	case verify.Unreachable, verify.AccessDenied, verify.TooLarge, verify.UnsupportedMedia, verify.AlgorithmUnsupported:
		return badge{Kind: badgeLost, Word: "unreachable", Title: "The source could not be read."}
	case verify.Blocked, verify.RobotsDisallowed, verify.NotDereferenceable, verify.NothingRecorded,
		verify.NothingQuoted:
		return badge{
			Kind:  badgeNone,
			Word:  "not checked",
			Title: "There was nothing that may be read, or nothing to compare: " + words(string(s)) + ".",
		}
	}
	return badge{Kind: badgeNone, Word: words(string(s)), Title: "The status is " + string(s) + "."}
}

// supportBadge says whether a checker found that the source supports the claim. The zero badge: it was not asked.
func supportBadge(s *ibid.Support) badge {
	if s == nil {
		return badge{}
	}
	b := badge{Code: s.Label, Title: "By the checker " + s.By + "."}
	switch s.Label {
	case "supported":
		b.Kind, b.Word = badgeGood, "supported"
	case "partial":
		b.Kind, b.Word = badgeClose, "partly supported"
	case "unsupported":
		b.Kind, b.Word = badgeBad, "not supported"
	case "contradicted":
		b.Kind, b.Word = badgeBad, "contradicted"
	default:
		b.Kind, b.Word = badgeNone, "support unclear"
	}
	return b
}

// signatureBadge says what came of checking the signature of a manifest.
func signatureBadge(m *verify.ManifestReport) badge {
	switch {
	case m.Trusted:
		return badge{
			Kind:  badgeGood,
			Word:  "signed",
			Title: "The signature holds, by a key that is trusted here: " + m.TrustedBy + ".",
		}
	case m.Verified:
		return badge{
			Kind:  badgeClose,
			Word:  "signed, not trusted",
			Title: "The signature holds. Nobody here said that its key is trusted.",
		}
	case m.KeyID != "":
		return badge{
			Kind:  badgeBad,
			Word:  "signature not valid",
			Title: "The signature does not hold, or its key could not be had.",
		}
	}
	return badge{Kind: badgeNone, Word: "not signed", Title: "Nobody signed the manifest."}
}

// words returns a status word as words.
func words(status string) string { return strings.ReplaceAll(status, "-", " ") }
