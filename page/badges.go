package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/verify"
)

// badge shows what was checked: one word with an icon, never by colour alone. It never claims more than that: a found
// quote does not make the claim right. The zero badge shows nothing.
type badge struct {
	Kind  string // its colour and icon: one of the constants below
	Word  string
	Title string // the same in a sentence
	Code  string // the status word of docs/attribution-v1.md, or the label of support; empty if there is none
}

// The kinds of badges are classes of page.css. Each has its own icon in templates/parts/badge.html.
const (
	badgeGood  = "good"  // the source supports the claim, or the signature is valid
	badgeFound = "found" // the source has the quoted words, which does not say that the claim is right
	badgeClose = "close" // a person should read it
	badgeBad   = "bad"   // it does not hold
	badgeLost  = "lost"  // it could not be checked
	badgeNone  = "none"  // it was not checked
	badgeBare  = "bare"  // a sentence without a source
)

// subject is what a badge is about. The same status can have different badges for different subjects.
type subject string

const (
	aboutQuote     subject = "quote"     // a citation's words in its source; the codes are statuses of verify
	aboutSource    subject = "source"    // the same in a report, where it has a badge of its own
	aboutSupport   subject = "support"   // whether a source supports a claim; the codes are labels of support
	aboutClaim     subject = "claim"     // a report's claim; the codes are findings, and the reasons for having none
	aboutSignature subject = "signature" // a manifest's signature
	aboutIncident  subject = "incident"  // a failure that is not about a quote
)

// badgeRow is a badge with the codes that it stands for.
type badgeRow struct{ codes, kind, word, title string }

// badges is the table of all badges with their codes. The kind of a quote's badge follows how verify counts its status:
// passed is found, or close if the quote is cut; failed is bad.
var badges = map[subject][]badgeRow{
	aboutQuote: {
		{"verified excerpt-found offset-wrong", badgeFound, "quote found", "The source still has these words."},
		{
			"source-drifted-text-intact source-drifted-excerpt-intact", badgeFound, "quote found",
			"The source has changed, but still has these words.",
		},
		{
			"verified-from-archive", badgeFound, "found in the archive",
			"The source cannot be read; its archived copy has these words.",
		},
		{
			"verified-hash-only", badgeFound, wordUnchanged,
			"The source is the same as when it was read; no words of it were recorded.",
		},
		{
			"excerpt-reformatted", badgeFound, "reformatted",
			"The source has these words in another form: spaces, marks or what is between them differ.",
		},
		{
			"excerpt-cut", badgeClose, "cut",
			"The source has these words, cut inside a number or a word: they may mean something else there.",
		},
		{"excerpt-altered", badgeBad, "changed", "The source has similar words, but not these."},
		{"excerpt-mismatch", badgeBad, "misquoted", "The source is unchanged and never had these words."},
		{"excerpt-missing", badgeBad, "missing", "The source does not have these words."},
		{
			"hash-mismatch", badgeLost, "changed, not compared",
			"The source has changed, and there were no words to compare.",
		},
		{"gone", badgeLost, "not reachable", "The source no longer exists."},
		{
			"unreachable access-denied too-large unsupported-media algorithm-unsupported", badgeLost, "not reachable",
			"The source could not be read.",
		},
		{
			"not-comparable", badgeLost, "not readable",
			"Another page stood in the place of the source: a log-in, a challenge, an error.",
		},
		{
			"blocked robots-disallowed not-dereferenceable nothing-recorded nothing-quoted", badgeNone, "not checked",
			"The source may not be read, or there was nothing to compare: {status}.",
		},
		{"", badgeNone, "not checked", "The source has not been read again."},
	},
	aboutSource: {
		{"blocked", badgeLost, "not fetched", ""}, // its reason says why
	},
	aboutSupport: {
		{"supported", badgeGood, "supported", ""},
		{"differs", badgeClose, wordDiffers, ""},
		{"unsupported", badgeClose, wordUnsupported, ""},
		{"contradicted", badgeClose, wordContradicted, ""},
		{"unjudged unchecked", "", "", ""}, // no sign
	},
	aboutClaim: {
		{"supported", badgeGood, wordSupported, ""},
		{"differs", badgeClose, wordDiffers, "The quote says something else in one place."},
		{"unsupported", badgeClose, wordUnsupported, "A judge says that the quotes do not say it."},
		{"contradicted", badgeClose, wordContradicted, "A judge says that the quotes deny it."},
		{"unjudged", badgeNone, wordUnjudged, "Nobody has judged whether the quotes say it: read both."},
		{"cut", badgeNone, wordUnchecked, "The quote begins or ends inside a number or a word."},
		{"no-excerpt", badgeNone, wordUnchecked, "No words were quoted to compare the sentence with."},
		{"unread no-source", badgeNone, wordUnchecked, "None of its sources could be read."},
		{"error unchecked", badgeNone, wordUnchecked, "The sentence could not be compared with its quotes."},
	},
	aboutSignature: {
		{"none", badgeNone, "not signed", "The manifest is not signed."},
		{"unchecked", badgeNone, "signed, not checked", "The manifest has a signature. Verify checks it."},
		{"pending", badgeNone, "being built", "The manifest is not built yet."},
		{"lost", badgeLost, "not there", "The manifest cannot be read at the moment."},
	},
	aboutIncident: {
		{"differs", badgeClose, wordDiffers, ""}, // its detail says why
		{"output-mismatch", badgeBad, "another answer", "What was published is about another answer."},
		{"signature-invalid", badgeBad, "signature not valid", ""},
		{"key-revoked", badgeBad, "key revoked", ""},
		{"replayed", badgeBad, "used twice", "What was published was seen with another answer before."},
		{"manifest-mutated", badgeBad, "altered record", "What was published about an answer was changed afterwards."},
		{"manifest-inconsistent", badgeBad, "contradiction", "What was published about an answer contradicts itself."},
		{"chain-invalid", badgeBad, "altered steps", "The steps that were published are not those that were signed."},
		{"level-not-met", badgeBad, "less than promised", "Its publisher promises more than there is."},
	},
}

// legend explains the signs of chips, in the order of the line under a question.
var legend = []badge{
	{Kind: badgeFound, Word: wordFound, Title: "The source has the words, which may or may not support the sentence."},
	{Kind: badgeGood, Word: wordSupported, Title: "The source has the words, and they say what the sentence says."},
	{Kind: badgeBad, Word: wordChanged, Title: "The source says something else now."},
	{Kind: badgeBad, Word: wordMisquoted, Title: "The source never had these words."},
	{Kind: badgeBad, Word: wordMissing, Title: "The source has nothing like these words."},
	{Kind: badgeClose, Word: wordDiffers, Title: "The words say something else than the sentence in one place."},
	{Kind: badgeClose, Word: wordUnsupported, Title: "A judge or a reader says that the words do not say it."},
	{Kind: badgeClose, Word: wordContradicted, Title: "A judge says that the words deny the sentence."},
	{Kind: badgeBad, Word: wordWrongSource, Title: "A reader says that another source says it."},
	{Kind: badgeClose, Word: wordCut, Title: "The words are part of a number or a word in the source."},
	{Kind: badgeLost, Word: wordUnreachable, Title: "The source could not be read or compared."},
	{Kind: badgeBare, Word: wordBare, Title: "The sentence names no source."},
	{Kind: badgeNone, Word: wordUnchecked, Title: "The source has not been read again."},
	{Kind: badgeNone, Word: wordNoQuote, Title: "The source was read; the answer quotes nothing from it to look for."},
}

// legendOf returns the explanations of the signs of these parts.
func legendOf(parts []trustPart) (list []badge) {
	for _, b := range legend {
		if slices.ContainsFunc(parts, func(p trustPart) bool { return p.Word == b.Word }) {
			list = append(list, b)
		}
	}
	return list
}

// badgeByCode finds badges by their subject and code.
var badgeByCode = func() map[subject]map[string]badge {
	all := map[subject]map[string]badge{}
	for about, rows := range badges {
		all[about] = map[string]badge{}
		for _, row := range rows {
			for code := range strings.SplitSeq(row.codes, " ") {
				title := strings.Replace(row.title, "{status}", words(code), 1)
				all[about][code] = badge{row.kind, row.word, title, code}
			}
		}
	}
	return all
}()

// badgeOf returns the badge of a code, or one made of the code's words if the table has none.
func badgeOf(about subject, code string) badge {
	if b, ok := badgeByCode[about][code]; ok {
		return b
	}
	return badge{badgeNone, words(code), "The status is " + code + ".", code}
}

// quoteBadge returns the result of looking for a citation's words in its source.
func quoteBadge(v *ibid.Verification) badge {
	if v == nil {
		return badgeOf(aboutQuote, "")
	}
	return statusBadge(verify.Status(v.Status), v.CheckedAt)
}

// statusBadge returns the badge of a status. Its title says when it was checked, unless that is zero.
func statusBadge(s verify.Status, at time.Time) badge {
	b := badgeOf(aboutQuote, string(s))
	if s != "" && !at.IsZero() {
		b.Title += " Checked on " + moment(at) + "."
	}
	return b
}

// incidentBadge returns the badge of an incident. All incidents are failures, also those whose status has no badge of
// its own.
func incidentBadge(s verify.Status) badge {
	if b, ok := badgeByCode[aboutIncident][string(s)]; ok {
		return b
	}
	if label, _, _ := strings.Cut(string(s), "-"); s.DeniesClaim() {
		return badgeOf(aboutClaim, label)
	}
	b := badgeOf(aboutQuote, string(s))
	if b.Kind == badgeNone || b.Kind == badgeGood {
		return badge{Kind: badgeBad, Word: words(string(s)), Code: string(s)}
	}
	return b
}

// sourceBadge returns the badge of a report's result for a source.
func sourceBadge(s verify.Status) badge {
	if b, ok := badgeByCode[aboutSource][string(s)]; ok {
		return b
	}
	return badgeOf(aboutQuote, string(s))
}

// supportBadge returns whether a checker found that the source supports the claim; the zero badge if it was not asked.
func supportBadge(s *ibid.Support) badge {
	if s == nil {
		return badge{}
	}
	b, ok := badgeByCode[aboutSupport][s.Label]
	if !ok {
		b = badge{Kind: badgeNone, Word: "support unclear", Code: s.Label}
	}
	if b.Word == "" {
		return badge{}
	}
	b.Title = "The checker " + s.By + " says: " + s.Label + "."
	return b
}

// claimBadge returns the badge of a report's claim. If its sources do not have the quoted words, it is that of the
// first that fails.
func claimBadge(c *verify.ClaimReport) badge {
	for i := range c.Sources {
		if b := sourceBadge(c.Sources[i].Result.Status); b.Kind == badgeBad && c.Reason == "failed" {
			return b
		}
	}
	return badgeOf(aboutClaim, cmp.Or(c.Reason, string(c.Finding)))
}

// countedBadge is the number of citations with a badge.
type countedBadge struct {
	badge

	Count int
}

// Text returns the count followed by the word.
func (c countedBadge) Text() string {
	if c.Word == wordFound {
		return counted(c.Count, "quote found", "quotes found")
	}
	return strconv.Itoa(c.Count) + " " + c.Word
}

// countBadge counts one more badge.
func countBadge(counts []countedBadge, b badge) []countedBadge {
	at := slices.IndexFunc(counts, func(c countedBadge) bool { return c.Word == b.Word })
	if at < 0 {
		b.Title = "" // it is about one citation
		return append(counts, countedBadge{b, 1})
	}
	counts[at].Count++
	return counts
}

// worstOf returns the gravest kind of the badges, which must not be empty. Unlike in [gravity], unchecked is graver
// than good: of one citation, unchecked says least.
func worstOf(counts []countedBadge) string {
	kinds := []string{badgeBad, badgeClose, badgeLost, badgeNone, badgeFound, badgeGood}
	worst := len(kinds) - 1
	for i := range counts {
		if at := slices.Index(kinds, counts[i].Kind); at >= 0 {
			worst = min(worst, at)
		}
	}
	return kinds[worst]
}

// words returns a status as words.
func words(status string) string { return strings.ReplaceAll(status, "-", " ") }
