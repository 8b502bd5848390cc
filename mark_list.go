package ibid

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ibidhq/ibid/internal/text"

	"github.com/ibidhq/ibid/internal/wire"
)

// markList is the list of sources that the marks in a text refer to. Only what it has can be cited by a mark.
type markList struct {
	wire.Markers
	calls    []called         // by index in Refs; nil if the list has neither labels nor names
	numbers  map[int][]int    // indexes by number; nil if numbers are positions
	names    map[string][]int // indexes by label, id, file name or title, folded
	urls     map[string]int   // index by address in its normal form, plus 1
	prefixes map[string]bool  // what precedes the numbers of labels: "kb-"
	isGiven  bool             // it is what the model was given
}

// called is what marks and printed lists may call a source by.
type called struct{ label, id, title, filename, page, url string }

// newMarkList returns the list for w. calls are in the order of w.Refs, or nil. Given means that it is what the model
// was given.
func newMarkList(w *wire.Markers, calls []called, given bool) *markList {
	l := &markList{Markers: wire.Markers{
		Style: w.Style, Refs: slices.Clone(w.Refs), Names: w.Names, Round: w.Round,
	}, calls: calls, isGiven: given}
	add := func(m *map[string][]int, name string, i int) {
		if name = foldName(name); name == "" {
			return
		}
		if *m == nil {
			*m = map[string][]int{}
		}
		if !slices.Contains((*m)[name], i) {
			(*m)[name] = append((*m)[name], i)
		}
	}
	for i := range calls {
		add(&l.names, calls[i].label, i)
	}
	l.number()
	if !w.Names {
		return l
	}
	for _, name := range []func(*called) string{
		func(c *called) string { return c.id },
		func(c *called) string {
			if c.page == "" {
				return ""
			}
			return c.filename + ", page " + c.page
		},
		func(c *called) string { return c.filename },
		func(c *called) string { return c.title },
	} {
		var more map[string][]int // a label wins over an id, an id over a title
		for i := range calls {
			add(&more, name(&calls[i]), i)
		}
		for key, indexes := range more {
			if len(l.names[key]) == 0 {
				add(&l.names, key, indexes[0])
				l.names[key] = indexes
			}
		}
	}
	for i := range calls {
		if url := calls[i].url; url != "" {
			if l.urls == nil {
				l.urls = map[string]int{}
			}
			key := string(appendNormalURL(nil, url))
			l.urls[key] = cmp.Or(l.urls[key], i+1)
		}
	}
	return l
}

// number decides what numbers mean. Where labels are numbers, or a common prefix and numbers that count from 0 or 1,
// these count; else positions do. So [1] is S1 in a list of S1, S2 and S3, but the first of kb-310 and kb-101.
func (l *markList) number() {
	labels := make([]string, len(l.calls))
	for i := range l.calls {
		labels[i] = l.calls[i].label
	}
	if !slices.ContainsFunc(labels, func(s string) bool { return s != "" }) {
		if !l.isGiven { // a provider that has ids counts by position
			return
		}
		for i := range l.calls {
			labels[i] = l.calls[i].id
		}
	}
	numbers := map[int][]int{}
	plain, counted := false, len(labels) > 0
	first, common := -1, ""
	for i, label := range labels {
		prefix, n := splitNumber(foldName(label))
		if n < 0 {
			counted = false
			continue
		}
		if prefix == "" {
			plain = true
		} else {
			if l.prefixes == nil {
				l.prefixes = map[string]bool{}
			}
			l.prefixes[prefix] = true
		}
		if i == 0 {
			first, common = n, prefix
		}
		counted = counted && first <= 1 && prefix == common && (len(numbers[n]) > 0 || n == first+len(numbers))
		numbers[n] = append(numbers[n], i)
	}
	switch {
	case plain: // labels with other prefixes are called by their whole name
		for n, indexes := range numbers {
			indexes = slices.DeleteFunc(indexes, func(i int) bool {
				other, _ := splitNumber(foldName(labels[i]))
				return other != ""
			})
			if numbers[n] = indexes; len(indexes) == 0 {
				delete(numbers, n)
			}
		}
		l.numbers = numbers
	case counted:
		l.numbers = numbers
	}
}

// splitNumber splits a label such as kb-101 into what precedes its number, and the number; -1 if it does not end in
// one.
func splitNumber(s string) (prefix string, n int) {
	prefix = strings.TrimRight(s, "0123456789")
	digits := s[len(prefix):]
	if digits == "" || len(digits) > 9 {
		return s, -1
	}
	n, _ = strconv.Atoi(digits)
	return prefix, n
}

// foldName returns a name in the form in which names are compared.
func foldName(s string) string {
	s = strings.Trim(s, " \t\r\n\"'`*_“”‘’")
	lower := strings.ToLower(s)
	if strings.ContainsAny(lower, "\t\r\n") || strings.Contains(lower, "  ") {
		return strings.Join(strings.Fields(lower), " ")
	}
	return lower
}

// at returns what a number refers to.
func (l *markList) at(n int) []int {
	if l.numbers != nil {
		return l.numbers[n]
	}
	if n < 1 || n > len(l.Refs) || l.Refs[n-1].Source == "" {
		return nil
	}
	return []int{n - 1}
}

// most is the largest number that refers to something.
func (l *markList) most() int {
	if l.numbers == nil {
		return len(l.Refs)
	}
	most := 0
	for n := range l.numbers {
		most = max(most, n)
	}
	return most
}

// markSense is what the inside of a mark means.
type markSense struct {
	refs    []int // indexes in the list
	lost    bool  // something in it has the form of a mark, and is not in the list
	numbers int   // how many numbers it has
	noun    bool  // it says what the numbers count: it is unlikely to be anything but a mark
}

// maxMarkItems is the most sources that one mark refers to.
const maxMarkItems = 100

// read returns what the inside of brackets refers to, such as "1", "1, 3", "2-4", "doc-a", "Source 2", "^1" or
// "1†source". It returns false if it is not a mark.
func (l *markList) read(inside string) (sense markSense, ok bool) {
	s := strings.TrimSpace(inside)
	s = strings.Trim(s, "^")
	s, _, _ = strings.Cut(s, "†")
	if s == "" {
		return sense, false
	}
	if l.Style == wire.DocNumber {
		for item := range strings.SplitSeq(s, ",") {
			digits, ok := strings.CutPrefix(strings.TrimSpace(item), "doc")
			if n := number(digits); !ok || n <= 0 || !l.add(&sense, n, n) {
				return sense, false
			}
		}
		return sense, true
	}
	if indexes := l.named(s); indexes != nil && number(s) < 0 {
		return markSense{refs: indexes}, true
	}
	if rows, ok := strings.CutPrefix(s, "Data: "); ok && l.isGiven {
		return l.readRows(rows)
	}
	noun := ""
	for _, item := range markItems.Split(s, maxMarkItems+1) {
		item = strings.TrimSpace(item)
		if indexes := l.named(item); indexes != nil && number(item) < 0 {
			sense.refs = append(sense.refs, indexes...)
			continue
		}
		m := numbered().FindStringSubmatch(item)
		if m == nil {
			if !l.resembles(item) {
				return sense, false
			}
			sense.lost = true
			continue
		}
		if m[1] != "" {
			noun, sense.noun = m[1], true
		}
		first, last := number(m[2]), number(cmp.Or(m[3], m[2]))
		if indexes := l.names[foldName(noun+m[2])]; noun != "" && m[3] == "" && indexes != nil {
			sense.refs = append(sense.refs, indexes...)
			continue
		}
		if first < 0 || !l.add(&sense, first, last) {
			return sense, false
		}
	}
	return sense, len(sense.refs) <= maxMarkItems
}

// tableRows matches the rows of a table in a mark of GraphRAG: Sources (15, 16, +more).
var tableRows = text.Pattern(`([A-Z][A-Za-z ]{0,40}?) ?\(([0-9, ]{1,200})(?:, *\+more|\+more)?\)`)

// readRows reads a mark that names rows of tables: Sources (15, 16); Entities (5, +more).
func (l *markList) readRows(s string) (sense markSense, ok bool) {
	for _, m := range tableRows().FindAllStringSubmatch(s, maxMarkItems) {
		for row := range strings.SplitSeq(m[2], ",") {
			if row = strings.TrimSpace(row); row == "" {
				continue
			}
			indexes := l.names[foldName(m[1]+" "+row)]
			sense.refs = append(sense.refs, indexes...)
			sense.lost = sense.lost || len(indexes) == 0
			sense.numbers, sense.noun = sense.numbers+1, true
		}
	}
	return sense, sense.numbers > 0 && len(sense.refs) <= maxMarkItems
}

// add adds what the numbers from first to last refer to. It returns false if they are no mark.
func (l *markList) add(sense *markSense, first, last int) bool {
	ranged := last != first
	switch {
	case l.Names && ranged && first >= 1 && first < last && last > l.most() && last < leastYear:
		sense.lost, sense.numbers = true, sense.numbers+2
		return true
	case last < first, last-first >= maxMarkItems, ranged && last > l.most(), first == 0 && len(l.at(0)) == 0:
		return false
	}
	for n := first; n <= last; n++ {
		sense.numbers++
		indexes := l.at(n)
		sense.refs = append(sense.refs, indexes...)
		sense.lost = sense.lost || len(indexes) == 0 && (n < leastYear || n > mostYear || !l.Names)
		if len(indexes) == 0 && l.Names && n >= leastYear && n <= mostYear && !sense.noun {
			return false // [1998] 2 AC 41
		}
	}
	return true
}

// Numbers of four digits between these are years, unless the list has them.
const leastYear, mostYear = 1000, 2999

// markItems separates the items of a mark: [1, 2], [1; 2], [1 and 2].
var markItems = regexp.MustCompile(`\s*[,;，；、&]\s*(?:(?:and|und|et|y|e|en|och)\s+)?|` +
	`\s+(?:and|und|et|y|e|en|och|和|及)\s+`)

// numbered matches an item with a number: a noun perhaps, a number, and the end of a range perhaps.
var numbered = text.Pattern(`(?i)^((?:` + markNouns + `)[ :_#.-]*)?(\d{1,4})(?:\s*[-–—~]\s*(?:` + markNouns +
	`)?[ :_#.-]*(\d{1,4}))?$`)

// markNouns are what sources are called before their numbers in marks, and the prefixes of their numbers.
const markNouns = `sources?|src|docs?|documents?|refs?|references?|citations?|cites?|web|webpage|context|passages?|` +
	`chunks?|results?|search result|snippets?|excerpts?|texts?|articles?|items?|notes?|footnotes?|fn|id|no\.?|nr\.?|` +
	`#|quellen?|dokumente?|abschnitt|textstelle|fuentes?|documentos?|fonti|fonte|documenti?|bron|bronnen|` +
	`来源|资料|文档|文献|引用|参考|网页|出典|資料|文書|출처|문서|источник|документ`

// isRound reports whether s is a mark in parentheses, as far as its form tells.
func isRound(s string) bool {
	inside, ok := strings.CutPrefix(s, "(")
	inside, shut := strings.CutSuffix(inside, ")")
	if !ok || !shut || strings.ContainsAny(inside, "()[]\n") {
		return false
	}
	for _, item := range markItems.Split(inside, maxMarkItems) {
		isLabel := !strings.Contains(item, " ") && strings.ContainsAny(item, "._-0123456789")
		if !isLabel && !numbered().MatchString(item) && !pageOf.MatchString(inside) {
			return false
		}
	}
	return true
}

// pageOf matches a file name and a page: [plan.pdf, page 4], [plan.pdf p. 4], [plan.pdf:4].
var pageOf = regexp.MustCompile(`(?i)^(.+?)(?:[,;]?\s*\(?(?:pages?|pp?\.?|pg\.?|seiten?|s\.)\s*|[,:#]\s*)(\d{1,5})` +
	`(?:\s*[-–]\s*\d{1,5})?\)?$`)

// named returns what a name refers to, nil if nothing.
func (l *markList) named(s string) []int {
	if len(l.names) == 0 {
		return nil
	}
	name := foldName(s)
	if indexes := l.names[name]; indexes != nil {
		return indexes
	}
	if !l.Names {
		return nil
	}
	if _, rest, ok := strings.Cut(name, ":"); ok { // [source: plan.pdf]
		if m := nounOnly().FindString(name[:len(name)-len(rest)-1]); m != "" {
			if indexes := l.names[foldName(rest)]; indexes != nil {
				return indexes
			}
		}
	}
	if m := pageOf.FindStringSubmatch(name); m != nil {
		return l.names[m[1]+", page "+m[2]]
	}
	return nil
}

var nounOnly = text.Pattern(`(?i)^(?:` + markNouns + `|[a-z]+_id)$`)

// resembles reports whether an item has the form of the list's labels, as kb-999 has in a list of kb-101 and kb-310.
func (l *markList) resembles(item string) bool {
	prefix, n := splitNumber(foldName(item))
	return n >= 0 && prefix != "" && l.prefixes[prefix] && strings.ContainsFunc(prefix, unicode.IsLetter)
}

// number parses one to four digits. It returns -1 for anything else.
func number(s string) int {
	if len(s) == 0 || len(s) > 4 || strings.Trim(s, "0123456789") != "" {
		return -1
	}
	n, _ := strconv.Atoi(s)
	return n
}
