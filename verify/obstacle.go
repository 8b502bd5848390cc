package verify

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// The reasons of [NotComparable] that a document does not tell of itself; the others are snapshot.Obstacle.
const (
	reasonMovedHome     = "moved-home"     // its address leads to the start page of the site
	reasonOtherLanguage = "other-language" // it is in another language than the excerpt
	reasonOtherDocument = "other-document" // it has nothing of the source's title
)

// standIns names what stands in for a source.
var standIns = map[string]string{
	string(snapshot.ObstacleChallenge):   "a challenge that tells people from robots (CAPTCHA)",
	string(snapshot.ObstacleLogin):       "a page to log in",
	string(snapshot.ObstacleConsent):     "a request for consent to cookies",
	string(snapshot.ObstacleAge):         "a question for the reader's age",
	string(snapshot.ObstacleMaintenance): "a notice of maintenance",
	string(snapshot.ObstacleError):       "an error page of its server",
	string(snapshot.ObstacleMissing):     "a page that says that it was not found",
	string(snapshot.ObstacleRateLimit):   "a notice of too many requests",
	string(snapshot.ObstacleBlocked):     "the notice of a firewall that blocked the request",
	string(snapshot.ObstacleRegion):      "a notice that it is not available in this country or region",
	string(snapshot.ObstaclePaywall):     "the part before a paywall",
	string(snapshot.ObstacleApp):         "a page that offers an app",
	string(snapshot.ObstacleParked):      "the page of a parked domain",
	string(snapshot.ObstacleScriptOnly):  "the empty shell of a page that a script fills",
	string(snapshot.ObstacleMoved):       "a page that refers to another one",
	string(snapshot.ObstacleEmpty):       "an empty page",
	string(snapshot.ObstacleStub):        "a page with next to no text",
	reasonMovedHome:                      "the start page, to which its address redirects,",
	reasonOtherLanguage:                  "a page in another language",
	reasonOtherDocument:                  "another document, without the source's title,",
}

// sameLength is how many times as long as now a text may have been for its document to be taken for the same.
const sameLength = 2

// StandIn describes what stands in for a document that tells of an obstacle: "a page to log in".
func StandIn(o snapshot.Obstacle) string { return standIns[string(o)] }

// notComparable ends the comparison of a document that lacks the excerpt because it is not the source. It returns false
// if there is no sign of that.
func (c *comparison) notComparable(excerpt string) (SourceResult, bool) {
	reason := c.obstacle(excerpt)
	if reason == "" {
		return SourceResult{}, false
	}
	c.result.Reason = reason
	note := fmt.Sprintf("Its text cannot be compared: %s stands in for it.", standIns[reason])
	return c.end(NotComparable, note), true
}

// obstacle returns the reason why a document that lacks the excerpt is not the source, or "".
func (c *comparison) obstacle(excerpt string) string {
	if length := c.src.TextLength; length != nil && c.text.Content != "" &&
		sameLength*utf8.RuneCountInString(c.text.Content) >= *length {
		return "" // what it says in the place of a document would be shorter
	}
	switch asked := cleaned(c.cs, c.src); {
	case c.text.Obstacle != "":
		return string(c.text.Obstacle)
	case !isStart(asked) && isStart(c.result.FinalURL):
		return reasonMovedHome
	case isOtherLanguage(c.text, excerpt+"\n"+c.claim+"\n"+c.src.Title):
		return reasonOtherLanguage
	case !c.hasTitle():
		return reasonOtherDocument
	}
	return ""
}

func cleaned(cs *manifest.ClaimSource, src *manifest.Source) string {
	if cs.URL != "" {
		return cs.URL
	}
	return src.URL
}

// isStart reports whether an address is that of a site's start page, perhaps in one of its languages.
func isStart(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	path := strings.ToLower(strings.Trim(u.Path, "/"))
	if u.RawQuery != "" && path == "" && strings.ContainsAny(u.RawQuery, "=0123456789") &&
		!strings.Contains(u.RawQuery, "utm_") {
		return false // /?p=123
	}
	switch path {
	case "", "home", "index.html", "index.htm", "index.php", "default.aspx", "home.html", "start", "startseite",
		"accueil", "inicio":
		return true
	}
	return len(path) == 2 || len(path) == 5 && (path[2] == '-' || path[2] == '_')
}

// isOtherLanguage reports whether a document is in another language than what is said of it, as far as both are known.
func isOtherLanguage(t *snapshot.Text, said string) bool {
	want := base(support.Language(said))
	longest := ""
	for _, b := range t.Blocks {
		if b.Span.Len() > len(longest) && !b.Apart {
			longest = t.Content[b.Span.Start:b.Span.End]
		}
	}
	found, declared := base(support.Language(longest)), base(t.Language)
	switch {
	case want == "": // too short to tell: it has none of the words that a text in its language repeats
		return found != "" && found == declared && sharedWords(said, t.Content) < differentLanguage
	case found != "":
		return found != want
	}
	return declared != "" && declared != want
}

// differentLanguage is the share of a text's words that one in another language has at most: names, figures, "in".
const differentLanguage = 0.25

// base returns the language of a tag without its subtags.
func base(tag string) string {
	tag, _, _ = strings.Cut(strings.ToLower(strings.ReplaceAll(tag, "_", "-")), "-")
	return tag
}

// hasTitle reports whether a document has half of the words of the source's title, if that is known.
func (c *comparison) hasTitle() bool {
	words := titleWords(c.src.Title)
	if len(words) < 2 || strings.Contains(c.src.Title, "://") {
		return true // it tells nothing
	}
	have := map[string]bool{}
	for _, w := range titleWords(c.text.Title + " " + c.text.Content) {
		have[w] = true
	}
	n := 0
	for _, w := range words {
		if have[w] {
			n++
		}
	}
	return 2*n >= len(words)
}

// titleWords returns the words of a text that are not short, in lower case.
func titleWords(s string) []string {
	var list []string
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	for w := range strings.FieldsFuncSeq(strings.ToLower(s), between) {
		first, _ := utf8.DecodeRuneInString(w)
		if unicode.In(first, scriptsWithoutSpaces...) {
			for _, r := range w {
				list = append(list, string(r))
			}
		} else if utf8.RuneCountInString(w) > 3 {
			list = append(list, w)
		}
	}
	return list
}
