package page

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/wire"
)

const (
	// maxShownName is how many characters of a name are shown. More is a name that wants to fill the page.
	maxShownName = 200
	// maxAddress is how many bytes an address can have that is linked.
	maxAddress = 8 << 10
	// maxFragment is how many characters of a quote a link to it repeats. Of longer ones it has the first and the last
	// words.
	maxFragment = 80
	// fragmentWords is how many these are, and fragmentRunes how many characters where there are no words between
	// spaces.
	fragmentWords, fragmentRunes = 6, 24
)

// sourceTitle returns what a reader knows a source by: one line that is never empty, and turns the direction of nothing
// around it.
func sourceTitle(s *ibid.Source) string {
	for _, name := range [...]string{s.Title, s.Filename, siteOf(s), s.URL, s.ID} {
		if name = oneLine(name); name != "" {
			return name
		}
	}
	return "untitled"
}

// siteOf returns where a source is from: its host as it is looked up, in ASCII, without www.; else its file name; empty
// if neither is known. Where the address is only a way there, it is the site that the provider named.
func siteOf(s *ibid.Source) string {
	host := ""
	if !wire.IsRedirect(s.URL) {
		host = hostOf(s.URL)
	}
	if host == "" && s.Site != "" {
		host = asciiHost(oneLine(s.Site))
	}
	if host == "" {
		return oneLine(s.Filename)
	}
	return strings.TrimPrefix(host, "www.")
}

// letterOf returns what stands on a source's tile, where others show an image that they have loaded from elsewhere.
func letterOf(s *ibid.Source) string {
	title := sourceTitle(s)
	return letterIn(shortName(siteOf(s), title), title)
}

// shortName returns what a source is called where there is little room: its site, unless that is this very machine,
// which says nothing; else its title.
func shortName(site, title string) string {
	host, _, err := net.SplitHostPort(site)
	if err != nil {
		host = site
	}
	if address, err := netip.ParseAddr(
		host,
	); err == nil && address.IsLoopback() || host == "localhost" ||
		strings.HasSuffix(host, ".localhost") {
		return title
	}
	return cmp.Or(site, title)
}

func letterIn(names ...string) string {
	for _, name := range names {
		for _, r := range name {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return string(unicode.ToUpper(r))
			}
		}
	}
	return "?"
}

// passageURL returns where a source can be opened, at the page or the words that ref names; empty if it cannot be
// opened. A nil ref means the source as a whole. The words are the source's own: a fragment made of anything else would
// lead astray.
func passageURL(s *ibid.Source, ref *ibid.Ref) string {
	return addressOf(s).at(ref)
}

// address is where a source can be opened.
type address struct {
	whole string // empty: nowhere
	bare  string // the same without its fragment
	pdf   bool
}

func addressOf(s *ibid.Source) address {
	u := openable(s.URL)
	if u == nil {
		return address{}
	}
	whole := u.String()
	bare, _, _ := strings.Cut(whole, "#")
	return address{
		whole, bare,
		strings.EqualFold(path.Ext(u.Path), ".pdf") || strings.EqualFold(path.Ext(s.Filename), ".pdf"),
	}
}

// at returns the address of a place in the source.
func (a address) at(ref *ibid.Ref) string {
	if a.whole == "" || ref == nil {
		return a.whole
	}
	if page := pageOf(ref.Locator); page > 0 && a.pdf {
		return a.bare + "#page=" + strconv.Itoa(page)
	}
	fragment := textFragment(ref.Quote)
	if fragment == "" {
		return a.whole
	}
	start, _, _ := strings.Cut(a.whole, ":~:")
	if len(start) == len(a.bare) {
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

// hostOf returns the host of an address in ASCII; empty if it has none.
func hostOf(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || len(raw) > maxAddress {
		return ""
	}
	return asciiHost(u.Hostname())
}

// asciiHost returns a host name as it is looked up: letters of other scripts look like ours.
func asciiHost(host string) string {
	if isLookedUp(host) {
		return host
	}
	ascii, err := idna.New(idna.MapForLookup(), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.Transitional(false)).
		ToASCII(host)
	if err != nil {
		ascii = host
	}
	ascii = strings.ToLower(ascii)
	if strings.IndexFunc(ascii, notInHost) < 0 {
		return ascii
	}
	var b strings.Builder
	for _, c := range []byte(ascii) {
		if notInHost(rune(c)) {
			b.WriteString("%" + strings.ToUpper(strconv.FormatInt(int64(c)|0x100, 16)[1:]))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// isLookedUp reports whether a host name is what asciiHost would make of it: most are.
func isLookedUp(host string) bool {
	for _, c := range []byte(host) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return !strings.Contains(host, "xn--")
}

func notInHost(r rune) bool {
	return r <= ' ' || r >= utf8.RuneSelf-1 || strings.ContainsRune(`"#/<>?@\^`+"`{|}%", r)
}

// pageOf returns the first page that l names; 0: none.
func pageOf(l *ibid.Locator) int {
	switch {
	case l == nil:
		return 0
	case len(l.Pages) > 0:
		return l.Pages[0]
	}
	return l.Page
}

// textFragment returns a quote as the value of a text directive (https://wicg.github.io/scroll-to-text-fragment/): as it is
// if it is short and in one piece, else its first and last words. Of a quote with gaps it takes the longest piece.
func textFragment(quote string) string {
	piece := longestPiece(quote)
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

// longestPiece returns the longest part of a quote between the marks that something was left out.
func longestPiece(quote string) string {
	quote = strings.ToValidUTF8(quote, "")
	if len(quote) > maxShownQuote {
		quote = quote[:runeStart(quote, maxShownQuote)]
	}
	quote = strings.ReplaceAll(quote, "...", "…")
	longest := ""
	for piece := range strings.SplitSeq(quote, "…") {
		if piece = strings.Trim(piece, " \t\r\n[]()"); len(piece) > len(longest) {
			longest = piece
		}
	}
	return longest
}

// directive escapes words for a text directive, in which also hyphens and commas mean something.
func directive(words string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(words) + len(words)/2)
	for _, c := range []byte(words) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '~' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// oneLine returns a name on one line, without what cannot be seen or turns the direction of text, cut to a length.
func oneLine(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	n, space := 0, false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\uFEFF',
			r == '\u200B',
			unicode.Is(unicode.Co, r):
			continue
		}
		if space {
			b.WriteByte(' ')
			n++
		}
		if n++; n > maxShownName {
			return strings.TrimSuffix(b.String(), " ") + "…"
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

// isPlain reports whether a name is what oneLine would make of it: most are.
func isPlain(s string) bool {
	if len(s) > maxShownName || s == "" || s[0] == ' ' || s[len(s)-1] == ' ' {
		return s == ""
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7F || s[i] == ' ' && s[i+1] == ' ' {
			return false
		}
	}
	return true
}

// maxShownAddress is how many bytes of an address are shown: a browser breaks longer ones into lines for many seconds.
const maxShownAddress = 2 << 10

// shownAddress returns an address as it is shown, which is not where a link leads.
func shownAddress(address string) string {
	if len(address) <= maxShownAddress {
		return address
	}
	return cutBytes(address, maxShownAddress) + "…"
}
