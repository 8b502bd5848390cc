package biblio

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// The maximum numbers of bytes of a key that come from the author or site, and from the title.
const (
	maxKeyAuthor = 24
	maxKeyTitle  = 16
)

// baseKey returns the entry's key before it is made unique: lower-case ASCII letters and digits.
func (it *item) baseKey() string {
	year := "nd"
	if it.issued.known() {
		year = strconv.Itoa(it.issued.year)
	}
	title := keyWord(it.title)
	if who := it.keyAuthor(); who != "" {
		return who + year + title
	}
	if title == "" {
		// There is nothing in Latin script: a digest keeps keys apart, and the same if the list changes.
		sum := sha256.Sum256([]byte(it.url + "\n" + it.title))
		title = "source" + hex.EncodeToString(sum[:3])
	}
	return title + year
}

func (it *item) keyAuthor() string {
	if len(it.names) > 0 {
		n := it.names[0]
		if key := keyName(n.whole + n.particle + n.family); key != "" {
			return key
		}
	}
	if key := keyName(domainLabel(it.site)); key != "" {
		return key
	}
	u, err := url.Parse(it.url)
	if err != nil {
		return ""
	}
	return keyName(domainLabel(u.Hostname()))
}

// keyName joins the words of a name that fit into a key, at least the first one.
func keyName(s string) string {
	var b strings.Builder
	for _, word := range keyWords(s) {
		if b.Len() > 0 && b.Len()+len(word) > maxKeyAuthor {
			break
		}
		b.WriteString(word)
	}
	return b.String()[:min(b.Len(), maxKeyAuthor)]
}

// keyWord returns the first meaningful word of a title, else the first word.
func keyWord(title string) string {
	words := keyWords(title)
	if len(words) == 0 {
		return ""
	}
	word := words[0]
	for _, w := range words {
		if len(w) > 3 && !stopWords[w] {
			word = w
			break
		}
	}
	return word[:min(len(word), maxKeyTitle)]
}

// keyWords splits s into words of ASCII letters and digits, in lower case and without accents. Words in other scripts
// are dropped.
func keyWords(s string) []string {
	return strings.FieldsFunc(foldLatin(strings.ReplaceAll(s, "'", "")), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// stopWords have no meaning in a title.
var stopWords = set("what when where which with from this that they your into about does have will https http")

// domainLabel returns the registered label of a domain name, "wikipedia" of "en.wikipedia.org", and anything else
// unchanged. The only public suffixes it knows are the common two-part ones: a key need only be recognisable.
func domainLabel(s string) string {
	labels := strings.Split(strings.ToLower(s), ".")
	n := len(labels)
	if n < 2 || strings.ContainsAny(s, " /,") || net.ParseIP(s) != nil || labels[n-1] == "" {
		return s
	}
	if n > 2 && secondLevels[labels[n-2]] {
		n--
	}
	return labels[n-2]
}

var secondLevels = set("co com org ac gov net edu or ne go")

// uniqueKey returns key, followed if necessary by the first of a, b, …, z, aa, … that makes it differ from those taken,
// and adds it to them.
func uniqueKey(key string, taken map[string]bool) string {
	unique := key
	for n := 0; taken[unique]; n++ {
		unique = key + letters(n)
	}
	taken[unique] = true
	return unique
}

// letters returns the n-th of a, b, …, z, aa, ab, …, from 0.
func letters(n int) string {
	s := string(rune('a' + n%26))
	if n >= 26 {
		return letters(n/26-1) + s
	}
	return s
}

// foldLatin returns s in lower case with accented Latin letters as their ASCII bases.
func foldLatin(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Mn, r): // the accent of a decomposed letter
		case r < 0x80:
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteString(asciiBase(unicode.ToLower(r)))
		}
	}
	return b.String()
}

// asciiBase spells a lower-case letter of Western, Central and Northern European languages and of Vietnamese in ASCII;
// other letters are unchanged.
func asciiBase(r rune) string {
	if spelt := asciiSpelling[r]; spelt != "" {
		return spelt
	}
	const bases = "aáàâãäåāăąǎảạấầẩẫậắằẳẵặ cçćĉċč eéèêëēĕėęěẻẽẹếềểễệ gĝğġģ hĥħ iíìîïĩīĭįỉị jĵ kķ nñńņňŋ " +
		"oóòôõöøōŏőǒỏọốồổỗộơớờởỡợ rŕŗř sśŝşšș tţťŧț uúùûüũūŭůűųủụưứừửữự wŵẁẃẅ yýÿŷỳỷỹỵ zźżž"
	at := strings.IndexRune(bases, r)
	if at < 0 {
		return string(r)
	}
	group := bases[strings.LastIndexByte(bases[:at], ' ')+1:]
	return group[:1]
}

var asciiSpelling = map[rune]string{
	'ß': "ss", 'ẞ': "ss", 'æ': "ae", 'ǽ': "ae", 'œ': "oe", 'þ': "th", 'ð': "d", 'đ': "d", 'ď': "d", 'ł': "l", 'ĺ': "l",
	'ľ': "l", 'ļ': "l", 'ı': "i",
}
