package page

import (
	"cmp"
	"html"
	"math"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/trail"
)

const (
	// maxShownName is how many characters of a name are shown. More is a name that wants to fill the page.
	maxShownName = 200
	// maxLabel is how many characters of a name a chip shows.
	maxLabel = 40
	// maxAddress is how many bytes an address can have that is linked.
	maxAddress = 8 << 10
	// maxShownAddress is how many bytes of an address are shown: a browser breaks longer ones into lines for many
	// seconds.
	maxShownAddress = 2 << 10
	// maxFragment is how many characters of a quote a link to it repeats. Of longer ones it has the first and the last
	// words.
	maxFragment = 80
	// fragmentWords is how many these are, and fragmentRunes how many characters where there are no words between
	// spaces.
	fragmentWords, fragmentRunes = 6, 24
)

// The addresses of pages.

func answerURL(id string) string       { return "/ui/answers/" + url.PathEscape(id) }
func panelURL(id string, n int) string { return answerURL(id) + "/sources/" + strconv.Itoa(n) }
func copyURL(id string, n int, hash string) string {
	return panelURL(id, n) + "/copies/" + url.PathEscape(hash)
}
func runURL(id string) string          { return "/ui/runs/" + url.PathEscape(id) }
func conversationURL(id string) string { return "/ui/conversations/" + url.PathEscape(id) }
func verificationURL(id string) string { return answerURL(id) + "/verification" }
func servedURL(base, id string) string { return base + "/v1/answers/" + id }

func sourceKeyURL(key string) string  { return "/ui/sources?key=" + url.QueryEscape(key) }
func sourceURL(address string) string { return "/ui/sources?url=" + url.QueryEscape(address) }

// nextURL returns the address of the page behind a cursor, with the other parameters of a request; empty: there is
// none.
func nextURL(u *url.URL, cursor string) string {
	if cursor == "" {
		return ""
	}
	q := u.Query()
	q.Set("cursor", cursor)
	return u.Path + "?" + q.Encode()
}

// line returns a name as it is shown: on one line, without what cannot be seen.
func line(name string) string { return text.Line(name, maxShownName) }

// label returns a name as a chip shows it.
func label(name string) string { return text.Shorten(line(name), maxLabel) }

// short returns the beginning of a text on one line: up to n characters, which end with a word.
func short(s string, n int) string {
	return trail.Excerpt(strings.Join(strings.Fields(text.Head(s, 8*n)), " "), n)
}

// sourceTitle returns what a reader knows a source by: one line that is never empty, and turns the direction of nothing
// around it.
func sourceTitle(s *ibid.Source) string {
	for _, name := range [...]string{s.Title, s.Filename, siteOf(s), s.URL, s.ID} {
		if name = line(name); name != "" {
			return name
		}
	}
	return "untitled"
}

// siteOf returns where a source is from: its host as [shownHost] has it, without www.; else its file name; empty if
// neither is known. Where the address is only a way there, it is the site that the provider named.
func siteOf(s *ibid.Source) string {
	host := ""
	if !wire.IsRedirect(s.URL) {
		host = siteAt(s.URL)
	}
	if host == "" && s.Site != "" {
		host = strings.TrimPrefix(shownHost(line(s.Site)), "www.")
	}
	return cmp.Or(host, line(s.Filename))
}

// siteAt returns the host of an address as it is shown, without www.; empty if it has none.
func siteAt(address string) string {
	if len(address) > maxAddress {
		return ""
	}
	host := shownHost(text.Host(address))
	if isHere(host) {
		host = cmp.Or(exampleOf(address), host)
	}
	return strings.TrimPrefix(host, "www.")
}

// exampleOf returns the site of which a page of this machine is a copy that ibid demo serves: birds.example of
// http://127.0.0.1:8080/demo/birds.example/tonbo/census. Empty: it is no such copy. Nobody has a site below .example.
func exampleOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	below, ok := strings.CutPrefix(u.Path, "/demo/")
	site, _, _ := strings.Cut(below, "/")
	if site = shownHost(site); ok && strings.HasSuffix(site, ".example") {
		return site
	}
	return ""
}

// isHere reports whether a host, which may have a port, is this very machine.
func isHere(site string) bool {
	host, _, err := net.SplitHostPort(site)
	if err != nil {
		host = site
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// shortName returns what a source is called where there is little room: its site, unless that is this very machine,
// which says nothing; else its title.
func shortName(site, title string) string {
	if isHere(site) {
		return title
	}
	return cmp.Or(site, title)
}

// letterOf returns what stands on a source's tile, where others show an image that they have loaded from elsewhere.
func letterOf(s *ibid.Source) string {
	title := sourceTitle(s)
	for _, r := range shortName(siteOf(s), title) + title {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return string(unicode.ToUpper(r))
		}
	}
	return "?"
}

// openURL returns where a source can be opened; empty if it cannot be.
func openURL(s *ibid.Source) string { return passageURL(s, nil) }

// passageURL returns where a source can be opened, at the page or the words that ref names; empty if it cannot be
// opened. A nil ref means the source as a whole. The words are the source's own: a fragment made of anything else would
// lead astray.
func passageURL(s *ibid.Source, ref *ibid.Ref) string {
	u := openable(s.URL)
	if u == nil {
		return ""
	}
	whole := u.String()
	if ref == nil {
		return whole
	}
	bare, _, _ := strings.Cut(whole, "#")
	isPDF := strings.EqualFold(path.Ext(u.Path), ".pdf") || strings.EqualFold(path.Ext(s.Filename), ".pdf")
	if page := pageOf(ref.Locator); page > 0 && isPDF {
		return bare + "#page=" + strconv.Itoa(page)
	}
	fragment := textFragment(ref.Quote)
	if fragment == "" {
		return whole
	}
	start, _, _ := strings.Cut(whole, ":~:")
	if start == bare {
		start += "#"
	}
	return start + ":~:text=" + fragment
}

// openable returns an address that may be linked, nil for all others. A name before the host, which looks like one, is
// left out of it.
func openable(raw string) *url.URL {
	raw = strings.TrimSpace(raw)
	if len(raw) > maxAddress {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return nil
	}
	u.User = nil
	host, port := asciiHost(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil
		}
		host += ":" + port
	}
	u.Host = host
	return u
}

// lookup makes a host name what is looked up, as browsers do.
var lookup = idna.New(
	idna.MapForLookup(), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.Transitional(false),
)

// asciiHost returns a host name as it is looked up: letters of other scripts look like ours. What no host name has is
// escaped.
func asciiHost(host string) string {
	odd := func(r rune) bool {
		return r <= ' ' || r >= utf8.RuneSelf-1 || strings.ContainsRune("\"#/<>?@\\^`{|}%", r)
	}
	isPlain := !strings.Contains(host, "xn--") && !strings.ContainsFunc(host, odd) && host == strings.ToLower(host)
	if isPlain {
		return host
	}
	if ascii, err := lookup.ToASCII(host); err == nil {
		host = ascii
	}
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(host)) {
		if odd(rune(c)) {
			b.WriteString("%" + strings.ToUpper(strconv.FormatInt(int64(c)|0x100, 16)[1:]))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// display makes a host name that is looked up what people read.
var display = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.Transitional(false))

// scriptsOfOne are the scripts that a language writes together; letters of any one other script may stand alone.
var scriptsOfOne = [][]*unicode.RangeTable{
	{unicode.Han, unicode.Hiragana, unicode.Katakana},
	{unicode.Han, unicode.Hangul},
	{unicode.Han, unicode.Bopomofo},
}

// likeLatin are letters of other scripts that look like those of Latin: a name of these alone is one in disguise.
const likeLatin = "асԁеһіјӏорԛгѕуԝхүѵαγικνορτυχωᴏօսոտցհ"

// shownHost returns a host name as people read it, where that cannot be taken for another one: each of its labels in
// one script, and not in letters that look like Latin. Otherwise it is as it is looked up: see [asciiHost].
func shownHost(host string) string {
	ascii := asciiHost(host)
	if !strings.Contains(ascii, "xn--") {
		return ascii
	}
	shown, err := display.ToUnicode(ascii)
	if err != nil {
		return ascii
	}
	for label := range strings.SplitSeq(shown, ".") {
		if !isUnmixed(label) {
			return ascii
		}
	}
	return shown
}

// isUnmixed reports whether the letters of a label are of one script and do not all look like letters of Latin.
func isUnmixed(label string) bool {
	var letters []rune
	ascii, disguised := true, true
	for _, r := range label {
		switch {
		case unicode.In(r, unicode.Common, unicode.Inherited):
			if !unicode.IsDigit(r) && r != '-' && !unicode.Is(unicode.Mn, r) && r != 'ー' {
				return false
			}
		default:
			letters = append(letters, r)
			ascii = ascii && r < utf8.RuneSelf
			disguised = disguised && strings.ContainsRune(likeLatin, r)
		}
	}
	if ascii || len(letters) == 0 {
		return true
	}
	isOf := func(tables ...*unicode.RangeTable) bool {
		return !slices.ContainsFunc(letters, func(r rune) bool { return !unicode.In(r, tables...) })
	}
	for _, tables := range scriptsOfOne {
		if isOf(tables...) {
			return true
		}
	}
	for _, table := range unicode.Scripts {
		if isOf(table) {
			return !disguised
		}
	}
	return false
}

// shownAddress returns an address as it is shown, which is not where a link leads.
func shownAddress(address string) string {
	if len(address) <= maxShownAddress {
		return address
	}
	return text.Head(address, maxShownAddress) + "…"
}

// textFragment returns a quote as the value of a text directive (https://wicg.github.io/scroll-to-text-fragment/): as
// it is if it is short and in one piece, else its first and last words. Of a quote with gaps it takes the longest
// piece.
func textFragment(quote string) string {
	quote = strings.ReplaceAll(strings.ToValidUTF8(text.Head(quote, maxShownQuote), ""), "...", "…")
	piece := ""
	for one := range strings.SplitSeq(quote, "…") {
		if one = strings.Trim(one, " \t\r\n[]()"); len(one) > len(piece) {
			piece = one
		}
	}
	words := strings.Fields(piece)
	if len(words) == 0 {
		return ""
	}
	whole := strings.Join(words, " ")
	if utf8.RuneCountInString(whole) <= maxFragment && !strings.ContainsAny(piece, "\n\r") {
		return directive(whole)
	}
	n := fragmentWords
	if len(words) <= 2*n {
		if runes := []rune(whole); len(runes) > 2*maxFragment {
			return directive(string(runes[:fragmentRunes])) + "," + directive(string(runes[len(runes)-fragmentRunes:]))
		}
		n = len(words) / 2
	}
	if n == 0 {
		return directive(whole)
	}
	return directive(strings.Join(words[:n], " ")) + "," + directive(strings.Join(words[len(words)-n:], " "))
}

// inDirective makes an escaped query part of a text directive, in which hyphens mean something.
var inDirective = strings.NewReplacer("+", "%20", "-", "%2D")

func directive(words string) string { return inDirective.Replace(url.QueryEscape(words)) }

// pageOf returns the first page that a locator names; 0: none.
func pageOf(l *ibid.Locator) int {
	switch {
	case l == nil:
		return 0
	case len(l.Pages) > 0:
		return l.Pages[0]
	}
	return l.Page
}

// pageWords returns the pages of a locator as people write them; empty: it names none.
func pageWords(l *ibid.Locator) string {
	first := pageOf(l)
	if first <= 0 {
		return ""
	}
	if n := len(l.Pages); n > 1 && l.Pages[n-1] > first {
		return "pp. " + strconv.Itoa(first) + "–" + strconv.Itoa(l.Pages[n-1])
	}
	return "p. " + strconv.Itoa(first)
}

// placeWords says where in its document a passage stands: its locator, and which chunk it is if that is known besides;
// empty: nothing is known.
func placeWords(chunk *int, l *ibid.Locator) string {
	var out []string
	add := func(words string) {
		if words != "" {
			out = append(out, words)
		}
	}
	through := func(from int, to *int) string { // the end may be unknown, or no more than the start
		if to == nil || *to <= from {
			return strconv.Itoa(from)
		}
		return strconv.Itoa(from) + "–" + strconv.Itoa(*to)
	}
	if l != nil {
		add(pageWords(l))
		if l.Chunk != "" {
			add("chunk " + label(l.Chunk))
			chunk = nil
		}
		if l.CharStart != nil {
			add("characters " + through(*l.CharStart, l.CharEnd))
		}
	}
	if chunk != nil {
		add("chunk " + strconv.Itoa(*chunk))
	}
	return strings.Join(out, ", ")
}

// originWords says who gave a score.
func originWords(o ibid.ScoreOrigin) string {
	switch o {
	case "":
		return ""
	case ibid.ScoreProvider:
		return "said by the provider"
	case ibid.ScoreRank:
		return "made of its place in the list"
	case ibid.ScoreOverlap:
		return "from common words"
	case ibid.ScoreRetriever:
	}
	return "said by the " + string(o)
}

// claimOf returns the words of an answer that a citation stands for, as the answer has them; empty: it has no place.
func claimOf(a *ibid.Answer, c *ibid.Citation) string {
	for _, s := range [...]ibid.Span{c.Claim, c.Span} {
		if c.Placed() && 0 <= s.Start && s.Start < s.End && s.End <= len(a.Text) {
			return a.Text[s.Start:s.End]
		}
	}
	return ""
}

// inline are the elements around which words are one word.
var inline = strings.Fields("a code del em s span strong sub sup")

// plainWords returns a stretch of an answer's text on one line as it reads on a page: without the signs of its
// Markdown, which are not there.
func plainWords(markdown string) string {
	// In what is rendered there is a < only where a tag begins, and a > only where it ends.
	rest := (&ibid.Answer{Text: markdown}).Render(&ibid.RenderOptions{Style: ibid.StyleHTML})
	var b strings.Builder
	for rest != "" {
		words, behind, _ := strings.Cut(rest, "<")
		b.WriteString(html.UnescapeString(words))
		tag, after, _ := strings.Cut(behind, ">")
		name, _, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
		if !slices.Contains(inline, name) {
			b.WriteByte(' ')
		}
		rest = after
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// day returns a date as it is written on pages.
func day(t time.Time) string { return t.UTC().Format("2 January 2006") }

// moment returns a date with its time as it is written on pages.
func moment(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04 UTC") }

// whenWords says when something was: of today how long ago, else on which day.
func whenWords(t time.Time) string {
	if since := time.Since(t); since < 24*time.Hour {
		return ago(since)
	}
	return moment(t)
}

// signedWords returns the time of a signature as it is written on pages; what is no time as it is.
func signedWords(s string) string {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return moment(t)
	}
	return label(s)
}

// published returns a date as it is written on pages; what is no date as it is.
func published(s string) string {
	for _, form := range [...]string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil {
			return day(t)
		}
	}
	return label(s)
}

// counted returns a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// took returns a duration as people read it.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// percent returns a share as people read it. Only all of it is 100 %, and only nothing 0 %.
func percent(share float64) string {
	switch {
	case 0.99 < share && share < 1:
		return "over 99 %"
	case 0 < share && share < 0.01:
		return "under 1 %"
	}
	return strconv.FormatFloat(share*100, 'f', 0, 64) + " %"
}

// score returns a score with two decimals; empty: there is none.
func score(v *float64) string {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// rightToLeft are the scripts whose letters run so.
var rightToLeft = []*unicode.RangeTable{
	unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan, unicode.Mandaic,
	unicode.Adlam, unicode.Hanifi_Rohingya, unicode.Mende_Kikakui,
}

// direction returns in which direction a text runs, by its first letter: "ltr" or "rtl"; "auto" as long as there is
// none. With thousands of elements in a text, a browser takes minutes to find that out by itself.
func direction(s string) string {
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r):
		case unicode.In(r, rightToLeft...):
			return "rtl"
		default:
			return "ltr"
		}
	}
	return "auto"
}

// runeStart returns the last place up to n where a character of s begins.
func runeStart(s string, n int) int { return len(text.Head(s, n)) }
