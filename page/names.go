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
	// maxShownName is how many characters of a name are shown, so that no name fills the page.
	maxShownName = 200
	// maxLabel is how many characters of a name a chip shows.
	maxLabel = 40
	// maxAddress is the maximum size in bytes of an address that is linked.
	maxAddress = 8 << 10
	// maxShownAddress is how many bytes of an address are shown: browsers take many seconds to break longer ones into
	// lines.
	maxShownAddress = 2 << 10
	// maxFragment is how many characters of a quote are repeated in a link to it. For a longer quote the link has its
	// first and last words.
	maxFragment = 80
	// fragmentWords is how many these are, and fragmentRunes how many characters if no spaces separate words.
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

// nextURL returns the address of the page at a cursor, with the other parameters of a request; empty if there is none.
func nextURL(u *url.URL, cursor string) string {
	if cursor == "" {
		return ""
	}
	q := u.Query()
	q.Set("cursor", cursor)
	return u.Path + "?" + q.Encode()
}

// line returns a name as it is shown: on one line, without invisible characters.
func line(name string) string { return text.Line(name, maxShownName) }

// label returns a name as a chip shows it.
func label(name string) string { return text.Shorten(line(name), maxLabel) }

// short returns the beginning of a text on one line: up to n characters, ending with a word.
func short(s string, n int) string {
	return trail.Excerpt(strings.Join(strings.Fields(text.Head(s, 8*n)), " "), n)
}

// sourceTitle returns a name for a source: one line that is never empty and does not change the direction of the text
// around it.
func sourceTitle(s *ibid.Source) string {
	for _, name := range [...]string{s.Title, s.Filename, siteOf(s), s.URL, untitled(s.ID), s.ID} {
		if name = line(name); name != "" {
			return name
		}
	}
	return "untitled"
}

// untitled returns the name of a source that has none: "Document 1" for the id document:0, which decoding gives to the
// first document without an id. It is empty for an id that a provider or a program gave.
func untitled(id string) string {
	kind, number, ok := strings.Cut(id, ":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || !slices.Contains(namelessKinds, ibid.SourceKind(kind)) {
		return ""
	}
	return strings.ToUpper(kind[:1]) + kind[1:] + " " + strconv.Itoa(n+1)
}

// namelessKinds are the kinds of sources that may have neither a title nor an address.
var namelessKinds = []ibid.SourceKind{ibid.DocumentKind, ibid.File, ibid.Tool, ibid.Image}

// siteOf returns where a source is from: its host as by [shownHost], without www.; else its file name; empty if neither
// is known. If the address is a redirect, it is the site that the provider named.
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

// exampleOf returns the site that an address of this machine serves a copy of in ibid demo: birds.example for
// http://127.0.0.1:8080/demo/birds.example/tonbo/census. It is empty for any other address. No real site is below
// .example.
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

// isHere reports whether a host, with or without a port, is this machine.
func isHere(site string) bool {
	host, _, err := net.SplitHostPort(site)
	if err != nil {
		host = site
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// shortName returns a short name of a source: its site, unless that is this machine, which would say nothing; else its
// title.
func shortName(site, title string) string {
	if isHere(site) {
		return title
	}
	return cmp.Or(site, title)
}

// letterOf returns the letter on a source's tile, used in place of an image loaded from elsewhere.
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
// opened. A nil ref means the source as a whole. The words are the source's own: a fragment made of any others would
// not be found.
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

// openable returns an address that may be linked, nil for all others. A user name, which can look like a host, is
// removed.
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

// lookup maps a host name to the form that is looked up, as browsers do.
var lookup = idna.New(
	idna.MapForLookup(), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.Transitional(false),
)

// asciiHost returns a host name as it is looked up, because letters of other scripts can look like Latin ones.
// Characters that no host name has are escaped.
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

// display maps a host name that is looked up to the form that people read.
var display = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.Transitional(false))

// scriptsOfOne are the scripts that one language mixes; letters of any other script must be of that script alone.
var scriptsOfOne = [][]*unicode.RangeTable{
	{unicode.Han, unicode.Hiragana, unicode.Katakana},
	{unicode.Han, unicode.Hangul},
	{unicode.Han, unicode.Bopomofo},
}

// likeLatin are letters of other scripts that look like Latin ones: a name made of these alone is treated as a
// disguise.
const likeLatin = "асԁеһіјӏорԛгѕуԝхүѵαγικνορτυχωᴏօսոտցհ"

// shownHost returns a host name as people read it, unless it could be taken for another: each of its labels must be in
// one script, and not only in letters that look like Latin. Otherwise it is as it is looked up: see [asciiHost].
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

// isUnmixed reports whether the letters of a label are of one script and do not all look like Latin letters.
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

// shownAddress returns an address as it is shown; links use the full one.
func shownAddress(address string) string {
	if len(address) <= maxShownAddress {
		return address
	}
	return text.Head(address, maxShownAddress) + "…"
}

// textFragment returns a quote as the value of a text directive (https://wicg.github.io/scroll-to-text-fragment/): in
// full if it is short and in one piece, else its first and last words. For a quote with gaps it uses the longest piece.
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

// inDirective makes an escaped query part of a text directive, in which hyphens have a meaning.
var inDirective = strings.NewReplacer("+", "%20", "-", "%2D")

func directive(words string) string { return inDirective.Replace(url.QueryEscape(words)) }

// pageOf returns the first page that a locator names; 0 if it names none.
func pageOf(l *ibid.Locator) int {
	switch {
	case l == nil:
		return 0
	case len(l.Pages) > 0:
		return l.Pages[0]
	}
	return l.Page
}

// pageWords returns the pages of a locator as people write them; empty if it names none.
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

// placeWords returns where in its document a passage is: its locator, and its chunk if that is known too; empty if
// nothing is known.
func placeWords(chunk *int, l *ibid.Locator) string {
	var out []string
	add := func(words string) {
		if words != "" {
			out = append(out, words)
		}
	}
	through := func(from int, to *int) string { // the end may be unknown, or not after the start
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

// originWords says where a score is from.
func originWords(o ibid.ScoreOrigin) string {
	switch o {
	case "":
		return ""
	case ibid.ScoreProvider:
		return "given by the provider"
	case ibid.ScoreRank:
		return "from its rank in the list"
	case ibid.ScoreOverlap:
		return "from shared words"
	case ibid.ScoreRetriever:
	}
	return "given by the " + string(o)
}

// claimOf returns the words of an answer that a citation is for, as in the answer; empty if it has no place.
func claimOf(a *ibid.Answer, c *ibid.Citation) string {
	for _, s := range [...]ibid.Span{c.Claim, c.Span} {
		if c.Placed() && 0 <= s.Start && s.Start < s.End && s.End <= len(a.Text) {
			return a.Text[s.Start:s.End]
		}
	}
	return ""
}

// inline are the elements that do not separate words.
var inline = strings.Fields("a code del em s span strong sub sup")

// plainWords returns a stretch of an answer's text on one line as it reads on a page, without its Markdown marks.
func plainWords(markdown string) string {
	// Rendered text has a < only where a tag begins, and a > only where it ends.
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

// whenWords returns when something happened: how long ago if that is less than a day, else the date.
func whenWords(t time.Time) string {
	if since := time.Since(t); since < 24*time.Hour {
		return ago(since)
	}
	return moment(t)
}

// signedWords returns the time of a signature as it is written on pages; anything else as it is.
func signedWords(s string) string {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return moment(t)
	}
	return label(s)
}

// published returns a date as it is written on pages; anything else as it is.
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

// percent returns a share as people read it. Only 1 is 100 %, and only 0 is 0 %.
func percent(share float64) string {
	switch {
	case 0.99 < share && share < 1:
		return "over 99 %"
	case 0 < share && share < 0.01:
		return "under 1 %"
	}
	return strconv.FormatFloat(share*100, 'f', 0, 64) + " %"
}

// score returns a score with two decimals; empty if there is none.
func score(v *float64) string {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

// rightToLeft are the scripts that are written from right to left.
var rightToLeft = []*unicode.RangeTable{
	unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan, unicode.Mandaic,
	unicode.Adlam, unicode.Hanifi_Rohingya, unicode.Mende_Kikakui,
}

// direction returns the direction of a text, by its first letter: "ltr" or "rtl"; "auto" if it has no letter. In a text
// of thousands of elements, a browser takes minutes to find it out.
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

// runeStart returns the last position up to n at which a character of s begins.
func runeStart(s string, n int) int { return len(text.Head(s, n)) }
