package page

import (
	"cmp"
	"encoding/json"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// standing is the gravest result known for a citation, which its chip shows. The zero standing shows nothing.
type standing struct {
	badge

	Note string // the words that differ, short, for the chip: "source: 62"; empty if none are known
}

// The words of standings.
const (
	wordChanged      = "changed"
	wordMisquoted    = "misquoted"
	wordMissing      = "missing"
	wordWrongSource  = "wrong source"
	wordDiffers      = "differs"
	wordUnsupported  = "not supported" // says a judge or a reader
	wordContradicted = "contradicted"  // says a judge
	wordUnjudged     = "unjudged"      // of a sentence in a report
	wordCut          = "cut"
	wordUnreachable  = "not reachable"
	wordSupported    = "supported"
	wordFound        = "quote found"
	wordUnchecked    = "not checked"
	wordNoQuote      = "no quote"  // of a source that was read
	wordUnchanged    = "unchanged" // a source of which no words were recorded
	wordBare         = "no source" // of a sentence
)

// gravity lists the words of standings, the gravest first.
var gravity = []string{
	wordChanged, wordMisquoted, wordMissing, wordContradicted, wordWrongSource, wordUnsupported, wordDiffers, wordCut,
	wordUnreachable, wordUnchecked, wordFound, wordSupported,
}

// rank returns how grave a standing is: 0 is the gravest.
func (s *standing) rank() int {
	if at := slices.Index(gravity, s.Word); at >= 0 {
		return at
	}
	return len(gravity)
}

// worsen replaces the standing with another one if that is graver, or if nothing was known.
func (s *standing) worsen(to *standing) {
	if s.Word == "" || to.rank() < s.rank() {
		*s = *to
	}
}

// isDoubt reports whether the quoted words are there, as far as is known, but do not support what they are cited for.
func (s *standing) isDoubt() bool {
	switch s.Word {
	case wordDiffers, wordUnsupported, wordContradicted, wordWrongSource, wordCut:
		return true
	}
	return false
}

// slug returns a word as a value of data-s and of the parameter show.
func slug(word string) string { return strings.ReplaceAll(word, " ", "-") }

// standingOf returns the gravest result known for a citation of an answer with these sources: of reading its sources
// again, of comparing the claim with the quotes, of a checker when it was stored, and of a reader's last verdict. It
// has no word for one that was compared with what the answer was given, if there is nothing to read again and nothing
// to say.
func standingOf(c *ibid.Citation, web webSources, claim *verify.ClaimReport, said *verdict) standing {
	of := readStanding(c.Verification)
	if of.Word == wordUnchecked && claim != nil && !web.hasOf(c) {
		of = standing{badge: badge{Kind: badgeNone}}
	}
	if of.Word == wordFound && claim == nil && quotesNothing(c) {
		of.Kind, of.Word = badgeNone, wordNoQuote
		of.Title = "The source was read. The answer quotes nothing from it to look for."
	}
	switch s := supportStanding(c, claim, of.Word == wordFound); {
	case s.Word == wordSupported && slices.Contains([]string{"", wordFound, wordUnchecked, wordNoQuote}, of.Word):
		of = s
	case s.Word != wordSupported && s.Word != "": // an empty result is the least grave
		of.worsen(&s)
	}
	if said != nil {
		by := ", according to " + cmp.Or(line(said.By), "a reader") + "."
		s := standing{}
		switch said.Word {
		case store.VerdictWrongSource:
			s.badge = badge{badgeBad, wordWrongSource, "Another source says it" + by, said.Word}
		case store.VerdictNotSaid:
			s.badge = badge{badgeClose, wordUnsupported, "The source does not say this" + by, said.Word}
		}
		if s.Word != "" && s.rank() < of.rank() {
			of = s
		}
	}
	return of
}

// webSources are the ids of an answer's sources that can be read on the web.
type webSources map[string]bool

func webSourcesOf(a *ibid.Answer) webSources {
	web := webSources{}
	for i, source := range slices.Backward(a.Sources) { // of two with the same id the first counts
		web[source.ID] = openURL(&a.Sources[i]) != ""
	}
	return web
}

// hasOf reports whether a source of a citation is one of them.
func (w webSources) hasOf(c *ibid.Citation) bool {
	return slices.ContainsFunc(c.Refs, func(ref ibid.Ref) bool { return w[ref.Source] })
}

// readStanding returns the result of reading the sources of a citation again.
func readStanding(v *ibid.Verification) standing {
	b := quoteBadge(v)
	switch {
	case b.Code == string(verify.ExcerptCut):
		b.Kind, b.Word = badgeClose, wordCut
	case b.Kind == badgeFound:
		b.Word = wordFound
	case b.Kind == badgeLost:
		b.Word = wordUnreachable
	case b.Kind != badgeBad: // also unknown statuses, which may be any text
		b.Kind, b.Word = badgeNone, wordUnchecked
	}
	return standing{badge: b}
}

// supportStanding returns whether the quotes of a citation support its claim, or differ from it, or whether a judge
// denies it. The zero standing means that nobody has judged it. Support counts only if the quotes are known to be in
// the source: because it was read again, or because a program took them from it or gave them to the model.
func supportStanding(c *ibid.Citation, claim *verify.ClaimReport, found bool) standing {
	isSupported := found || c.Origin == ibid.OriginInferred || claim != nil && quotesNothing(c)
	switch label := supportBadge(c.Support); {
	case claim != nil && len(claim.Differs) > 0 && claim.Finding == support.Differs:
		said, found := line(claim.Differs[0].Claim), text.Shorten(line(claim.Differs[0].Excerpt), maxNote)
		why := "The sentence says “" + text.Shorten(said, maxNote) + "”, the source “" + found + "”."
		return standing{badge{badgeClose, wordDiffers, why, string(support.Differs)}, "source: " + found}
	case claim != nil && claim.Status.DeniesClaim():
		b := badgeOf(aboutClaim, string(claim.Finding))
		b.Title = claim.Detail
		return standing{badge: b}
	case label.Kind == badgeClose:
		return standing{badge: label}
	case !isSupported:
	case label.Word == wordSupported:
		return standing{badge: label}
	case claim != nil && claim.Finding == support.Supported:
		return standing{badge: badge{
			badgeGood, wordSupported, "The source has the quoted words, and they say what the sentence says.",
			string(support.Supported),
		}}
	}
	return standing{}
}

// maxNote is how many characters of the words that differ are shown on a chip.
const maxNote = 28

// change is how the words of a source differ from those that were cited.
type change struct {
	Was, Is string // the first words that differ; empty if one side has none there
	More    bool   // there are further differences
	near    string // the words there now
	edits   []snapshot.Edit
}

// maxNear is how many characters of the words there now are used to open the source at them.
const maxNear = 400

// changeOf returns how a source differs from a pin of it; nil if nothing similar was found, or if it does not differ.
func changeOf(pin *store.Pin) *change {
	var found verify.SourceResult
	if json.Unmarshal(pin.Detail, &found) != nil || found.Near == nil {
		return nil
	}
	return changeBetween(sidesOf(found.Near))
}

// changeBetween returns how quoted words differ from those there now; nil if they do not.
func changeBetween(was, is string) *change {
	all := &change{near: text.Head(is, maxNear), edits: diffWords(was, is)}
	behind := false // an unchanged word follows the first difference
	for _, e := range all.edits {
		isGap := strings.TrimSpace(e.Text) == ""
		switch {
		case behind:
			all.More = all.More || !isGap && e.Kind != snapshot.EditSame
		case e.Kind == snapshot.EditSame && isGap: // between two words that both differ
			all.Was, all.Is = all.Was+e.Text, all.Is+e.Text
		case e.Kind == snapshot.EditSame:
			behind = strings.TrimSpace(all.Was+all.Is) != ""
		case e.Kind == snapshot.EditQuote:
			all.Was += e.Text
		default:
			all.Is += e.Text
		}
	}
	all.Was, all.Is = strings.TrimSpace(all.Was), strings.TrimSpace(all.Is)
	if all.Was == "" && all.Is == "" {
		return nil
	}
	return all
}

// sidesOf returns the quoted words, and those there now.
func sidesOf(near *snapshot.Near) (was, is string) {
	for _, e := range near.Diff {
		if e.Kind != snapshot.EditText {
			was += e.Text
		}
		if e.Kind != snapshot.EditQuote {
			is += e.Text
		}
	}
	return was, is
}

// maxSaid is how many characters of each side a sentence about a change has.
const maxSaid = 60

// sentence describes a change to a reader of the claim.
func (c *change) sentence(claim string) string {
	was, is := text.Shorten(line(c.Was), maxSaid), text.Shorten(line(c.Is), maxSaid)
	isShort := !strings.Contains(was+is, " ") && utf8.RuneCountInString(was+is) < maxNote
	var said string
	switch {
	case was == "":
		said = "The source now also says “" + is + "”."
	case is == "":
		said = "The source no longer says “" + was + "”."
	case slices.Contains(tokensOf(claim), c.Was) && isShort:
		said = "The source now says " + is + ", the answer " + was + "."
	case strings.Contains(claim, c.Was):
		said = "The source now says “" + is + "”, the answer “" + was + "”."
	default:
		said = "The source now says “" + is + "” instead of “" + was + "”."
	}
	if c.More {
		said += " More of it changed."
	}
	return said
}

// aroundChange is how many bytes are shown on either side of a difference.
const aroundChange = 90

// html returns a change as HTML: the quoted words struck out, followed by those there now, with some context.
func (c *change) html() template.HTML {
	var b strings.Builder
	edits := c.edits
	for i, e := range edits {
		shown := e.Text
		if e.Kind == snapshot.EditSame {
			shown = shortened(shown, i == 0, i == len(edits)-1)
		}
		shown = template.HTMLEscapeString(shown)
		switch e.Kind {
		case snapshot.EditQuote:
			b.WriteString("<del>" + shown + "</del>")
		case snapshot.EditText:
			b.WriteString(" <ins>" + shown + "</ins>")
		default:
			b.WriteString(shown)
		}
	}
	return trustedHTML(b.String())
}

// shortened returns unchanged words without those far from a change: of the first stretch it keeps the end, of the last
// the beginning, of others both.
func shortened(s string, isFirst, isLast bool) string {
	switch {
	case isFirst && len(s) > aroundChange:
		_, end, _ := strings.Cut(s[runeStart(s, len(s)-aroundChange):], " ")
		return "… " + end
	case isLast && len(s) > aroundChange:
		return s[:runeStart(s, aroundChange)] + " …"
	case len(s) > 2*aroundChange:
		return s[:runeStart(s, aroundChange)] + " … " + s[runeStart(s, len(s)-aroundChange):]
	}
	return s
}
