package snapshot

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Obstacle is what stands in the place of a document.
type Obstacle string

// The obstacles that a document tells of itself. They are hints: a document in which a quote is found is the document.
const (
	ObstacleChallenge   Obstacle = "challenge"   // a test whether the reader is a person
	ObstacleLogin       Obstacle = "login"       // also after the end of a session
	ObstacleConsent     Obstacle = "consent"     // to cookies and the like
	ObstacleAge         Obstacle = "age"         // a question for the reader's age
	ObstacleMaintenance Obstacle = "maintenance" // of the site
	ObstacleError       Obstacle = "error"       // of the server, with a status that says otherwise
	ObstacleMissing     Obstacle = "soft-404"    // the page does not exist, with a status that says otherwise
	ObstacleRateLimit   Obstacle = "rate-limit"
	ObstacleBlocked     Obstacle = "blocked" // a firewall
	ObstacleRegion      Obstacle = "region"  // not available in the reader's country
	ObstaclePaywall     Obstacle = "paywall"
	ObstacleApp         Obstacle = "app"         // it can be read in an app only
	ObstacleParked      Obstacle = "parked"      // the domain is for sale
	ObstacleScriptOnly  Obstacle = "script-only" // its text is made by a script, which is not run
	ObstacleMoved       Obstacle = "moved"       // it only refers to another page
	ObstacleEmpty       Obstacle = "empty"
	ObstacleStub        Obstacle = "stub" // too little text to be a document
)

// Bounds of the words of pages that are obstacles, without what is set apart.
const (
	stubWords      = 25  // fewer are not a document
	stubBytes      = 800 // unless that is all that there is: the page has fewer bytes
	placeWords     = 130 // a page in the place of a document has fewer, as far as its text tells what it is
	titledWords    = 400 // and fewer, if its title tells it
	shownHeadWords = 9   // of a title that tells it
)

// pageSigns are the signs of an obstacle in the elements of a page.
type pageSigns struct {
	password, captcha, refresh, noindex, unfree, paywall, root bool
	scripts, size                                              int    // size of the page in bytes
	heading                                                    string // the first one
}

// element notes the signs in an element.
func (s *pageSigns) element(n *html.Node) {
	switch n.DataAtom { //nolint:exhaustive // the others are no signs
	case atom.Input:
		s.password = s.password || strings.EqualFold(attr(n, "type"), "password")
	case atom.Script:
		s.script(n)
	case atom.H1:
		if s.heading == "" {
			s.heading = textOf(n, maxFact)
		}
	case atom.Head:
		for inner := n.FirstChild; inner != nil; inner = inner.NextSibling {
			if inner.Type == html.ElementNode {
				s.element(inner)
			}
		}
		return
	case atom.Meta:
		content := strings.ToLower(attr(n, "content"))
		s.refresh = s.refresh ||
			strings.EqualFold(attr(n, "http-equiv"), "refresh") && strings.Contains(content, "url=")
		s.noindex = s.noindex || strings.EqualFold(attr(n, "name"), "robots") && strings.Contains(content, "noindex")
	}
	if len(n.Attr) == 0 || n.DataAtom == atom.Html || n.DataAtom == atom.Body {
		return
	}
	name := strings.ToLower(attr(n, "class") + " " + attr(n, "id") + " " + n.Data)
	if len(name) > 500 {
		return
	}
	s.captcha = s.captcha || strings.Contains(name, "captcha") || strings.Contains(name, "turnstile") ||
		strings.Contains(name, "cf-chl") || strings.Contains(name, "challenge-form")
	s.paywall = s.paywall || strings.Contains(name, "paywall") || strings.Contains(name, "regwall") ||
		strings.Contains(name, "subscriber-only")
	switch id := attr(n, "id"); id {
	case "root", "app", "__next", "__nuxt", "___gatsby", "svelte", "__app", "main-app":
		s.root = true
	}
	s.root = s.root || strings.HasPrefix(n.Data, "app-")
}

// script notes the signs in a script.
func (s *pageSigns) script(n *html.Node) {
	s.scripts++
	if n.FirstChild == nil {
		return
	}
	data := n.FirstChild.Data
	if len(data) <= maxLinked && strings.EqualFold(attr(n, "type"), "application/ld+json") {
		_, value, found := strings.Cut(data, `"isAccessibleForFree"`)
		value = strings.Trim(value[:min(len(value), 16)], `: "`)
		s.unfree = s.unfree || found && len(value) >= 5 && strings.EqualFold(value[:5], "false")
	}
}

// obstacle returns what stands in the place of the document.
func (s *pageSigns) obstacle(t *Text) Obstacle {
	n, body := t.ownWords()
	if n <= titledWords {
		for _, head := range heads(t.Title + " | " + s.heading) {
			if kind := toldBy(head, phrases().head); kind != "" {
				return kind
			}
		}
	}
	if n == 0 && len(t.Content) == 0 {
		if s.scripts > 0 {
			return ObstacleScriptOnly
		}
		return ObstacleEmpty
	}
	switch all := folded(t.Content[:min(len(t.Content), 8<<10)]); {
	case n > titledWords && !s.unfree:
		return ""
	case s.unfree:
		return ObstaclePaywall
	case s.refresh && n < stubWords:
		return ObstacleMoved
	case s.root && n < stubWords:
		return ObstacleScriptOnly
	case n > placeWords:
		return ""
	default:
		if kind := toldBy(body, phrases().body); kind != "" {
			return kind
		}
		kind := toldBy(all, phrases().body)
		if kind != "" && (n < placeWords/2 || kind == ObstaclePaywall && s.paywall) {
			return kind
		}
	}
	switch {
	case s.captcha:
		return ObstacleChallenge
	case s.password:
		return ObstacleLogin
	case s.paywall:
		return ObstaclePaywall
	case n < stubWords && s.scripts > 0:
		return ObstacleScriptOnly
	case n < stubWords && s.size >= stubBytes, s.noindex:
		return ObstacleStub
	}
	return ""
}

// ownWords counts the words of a text without what is set apart, and returns their beginning in lower case. Scripts
// without spaces have a word for two characters.
func (t *Text) ownWords() (n int, words string) {
	var b strings.Builder
	for i := range t.Blocks {
		block := &t.Blocks[i]
		if block.Apart {
			continue
		}
		text := t.Content[block.Span.Start:block.Span.End]
		n += countWords(text)
		if b.Len() < 8<<10 {
			b.WriteString(text[:min(len(text), 8<<10)] + " ")
		}
	}
	return n, folded(b.String())
}

func countWords(text string) int {
	n, dense, in := 0, 0, false
	for _, r := range text {
		switch {
		case unspaced(r):
			dense, in = dense+1, false
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if !in {
				n++
			}
			in = true
		default:
			in = in && (r == '\'' || r == '’')
		}
	}
	return n + dense/2
}

// folded returns a text in lower case with plain apostrophes.
func folded(text string) string {
	return strings.ToLower(strings.ReplaceAll(strings.ToValidUTF8(text, ""), "’", "'"))
}

// heads returns the parts of a title: it often has the name of the site, too.
func heads(title string) []string {
	return strings.FieldsFunc(folded(title), func(r rune) bool { return strings.ContainsRune("|–—·•»«:", r) })
}

// phrase tells of an obstacle.
type phrase struct {
	words string
	kind  Obstacle
}

// toldBy returns the obstacle that a text tells of: the first phrase that it has. A title has few other words.
func toldBy(text string, list []phrase) Obstacle {
	text = strings.TrimSpace(text)
	short := countWords(text) <= shownHeadWords
	for _, p := range list {
		exact, whole := strings.CutPrefix(p.words, "=")
		start, begins := strings.CutPrefix(p.words, "^")
		switch {
		case whole && strings.TrimRight(text, " .!?…") == exact,
			begins && short && strings.HasPrefix(text, start),
			!whole && !begins && hasPhrase(text, p.words):
			return p.kind
		}
	}
	return ""
}

// hasPhrase reports whether a text has a phrase as whole words.
func hasPhrase(text, words string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], words)
		if i < 0 {
			return false
		}
		at += i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(words):])
		if unspaced(before) || unspaced(after) || !unicode.IsLetter(before) && !unicode.IsLetter(after) {
			return true
		}
		at += len(words)
	}
}
