package page

import (
	"html/template"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
)

// piece is a part of a text, which may be marked.
type piece struct {
	Text   string
	Marked bool
	Of     string // the ids of the citations that a mark is for, as in an attribute; empty for all
}

// piecesHTML returns pieces as HTML. A page has thousands of them, and a template would take most of its time on them.
func piecesHTML(list []piece) template.HTML {
	var b strings.Builder
	for _, p := range list {
		switch {
		case !p.Marked:
			b.WriteString(template.HTMLEscapeString(p.Text))
		case p.Of == "":
			b.WriteString("<mark>" + template.HTMLEscapeString(p.Text) + "</mark>")
		default:
			b.WriteString(`<mark data-of="` + template.HTMLEscapeString(p.Of) + `">`)
			b.WriteString(template.HTMLEscapeString(p.Text) + "</mark>")
		}
	}
	return trustedHTML(b.String())
}

// marked returns the pieces of a text in which the first occurrence of words is marked; nil if the text is empty.
func marked(s, words string) []piece {
	before, behind, found := strings.Cut(s, words)
	if !found || words == "" {
		return appendPiece(nil, s, false)
	}
	return appendPiece(append(appendPiece(nil, before, false), piece{Text: words, Marked: true}), behind, false)
}

// appendPiece appends a piece, or extends the last one if both are marked or both are not.
func appendPiece(list []piece, s string, isMarked bool) []piece {
	if s == "" {
		return list
	}
	if n := len(list); n > 0 && list[n-1].Marked == isMarked {
		list[n-1].Text += s
		return list
	}
	return append(list, piece{Text: s, Marked: isMarked})
}

const (
	// maxShownQuote is how many bytes of one quote a list of sources shows. The panel shows all.
	maxShownQuote = 6 << 10
	// shortQuote is how many characters of a quote are shown before it is unfolded.
	shortQuote = 280
	// maxCompared is how many bytes of a claim are compared with a quote.
	maxCompared = 4 << 10
	// minCompared is the number of letters from which on a word counts as shared by two texts. Numbers always count.
	minCompared = 4
	// maxClaims is how many claims one quote is compared with. What further claims share with it is not marked.
	maxClaims = 16
)

// quote is a source's words, split into parts, with the claims that share them.
type quote struct {
	text   string
	gap    string // follows it; empty if it is complete
	parts  []quotePart
	claims []string // the ids of the citations whose claims were compared
	// differs are words that contradict the claim, and are then marked alone; if empty, the words that it shares with
	// the claim are.
	differs string
}

// quotePart is a word of a quote, or the text between two.
type quotePart struct {
	end    int // in the quote
	word   bool
	glyph  bool   // a word of one character, in a script without spaces between words
	shares uint32 // a bit for each claim that has it
}

// newQuote returns a quote of up to most bytes, not yet compared.
func newQuote(s string, most int) *quote {
	q := &quote{text: strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))}
	if len(q.text) > most {
		end := prose.GraphemeEnd(q.text, len(text.Head(q.text, most)))
		q.text, q.gap = strings.TrimSpace(q.text[:end]), " …"
	}
	at := 0
	for start, end := range prose.Words(q.text) {
		if at < start {
			q.parts = append(q.parts, quotePart{end: start})
		}
		r, n := utf8.DecodeRuneInString(q.text[start:end])
		glyph := n == end-start && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
		q.parts = append(q.parts, quotePart{end: end, word: true, glyph: glyph})
		at = end
	}
	if at < len(q.text) {
		q.parts = append(q.parts, quotePart{end: len(q.text)})
	}
	return q
}

// start returns where a part begins.
func (q *quote) start(part int) int {
	if part == 0 {
		return 0
	}
	return q.parts[part-1].end
}

// compare marks the words that a citation's claim shares with the quote, and the spaces between such words. Characters
// of scripts without spaces count in pairs.
func (q *quote) compare(id, claim string) {
	if len(q.claims) > maxClaims || len(q.claims) > 0 && q.claims[len(q.claims)-1] == id {
		return
	}
	bit := uint32(1) << len(q.claims)
	q.claims = append(q.claims, id)
	claim = strings.ToLower(text.Head(claim, maxCompared))
	words := map[string]bool{}
	for start, end := range prose.Words(claim) {
		if word := claim[start:end]; isTelling(word) {
			words[word] = true
		}
	}
	behind := -1 // the part after the last one that is shared
	for i := range q.parts {
		p, first := &q.parts[i], i
		switch {
		case !p.word:
			continue
		case p.glyph:
			if i == 0 || !q.parts[i-1].glyph || !strings.Contains(claim, q.text[q.start(i-1):p.end]) {
				continue
			}
			first--
		case !words[strings.ToLower(q.text[q.start(i):p.end])]:
			continue
		}
		if behind >= 0 && behind < first && strings.Trim(q.text[q.start(behind):q.start(first)], " ") == "" {
			first = behind
		}
		for k := first; k <= i; k++ {
			q.parts[k].shares |= bit
		}
		behind = i + 1
	}
}

// commonWords are words without a meaning of their own.
var commonWords = func() map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(`about after also been before being between could does each from have into many
		more most much only other over same should some such than that their them then there these they this those under
		very were what when where which while will with would your`) {
		all[word] = true
	}
	return all
}()

// isTelling reports whether a word has a meaning of its own.
func isTelling(word string) bool {
	return strings.ContainsFunc(word, unicode.IsDigit) ||
		utf8.RuneCountInString(word) >= minCompared && !commonWords[word]
}

// pieces returns the quote up to a byte with its marks. A mark that would be cut is left out.
func (q *quote) pieces(end int) []piece {
	if strings.Contains(q.text[:end], q.differs) && q.differs != "" {
		return marked(q.text[:end], q.differs)
	}
	var list []piece
	for i, at := 0, 0; at < end; {
		shares := q.parts[i].shares
		for i < len(q.parts) && q.parts[i].shares == shares {
			i++
		}
		to := q.start(i)
		if to > end {
			to, shares = end, 0
		}
		one := piece{Text: q.text[at:to], Marked: shares != 0}
		if one.Marked && shares != 1<<len(q.claims)-1 {
			for k, id := range q.claims {
				if shares>>k&1 != 0 {
					one.Of = strings.TrimPrefix(one.Of+" "+id, " ")
				}
			}
		}
		list = append(list, one)
		at = to
	}
	return list
}

// quoteView is a source's words as they are shown; a long quote is folded.
type quoteView struct {
	Short template.HTML // the beginning of a long quote; else empty
	Full  template.HTML
}

func (q *quote) view() quoteView {
	v := quoteView{Full: piecesHTML(append(q.pieces(len(q.text)), piece{Text: q.gap}))}
	if end := shortEnd(q.text); end > 0 {
		v.Short = piecesHTML(q.pieces(end))
	}
	return v
}

// shortEnd returns where the beginning of a long quote ends, between words; 0 if the quote is not long.
func shortEnd(s string) int {
	end := len(text.Runes(s, shortQuote))
	if len(s)-end < shortQuote/4 { // not worth a fold
		return 0
	}
	if space := strings.LastIndexByte(s[:end], ' '); space > end/2 {
		return space
	}
	return end
}

const (
	// hitBefore and hitAfter are how many bytes of an answer are shown before the first word that was found, and from
	// it on.
	hitBefore = 80
	hitAfter  = 240
	// hitLooked is how many bytes of an answer are searched for words to mark.
	hitLooked = 256 << 10
	// maxFound is how many words of a query are marked.
	maxFound = 32
)

// finder finds the words of a query in a text as the store does: ignoring case and accents, the last word by its
// prefix.
type finder struct {
	words []string
	last  string // a prefix; empty if the query ends after its last word
}

func newFinder(query string) *finder {
	f := &finder{}
	end := 0
	for start, stop := range prose.Words(query) {
		if word := fold(query[start:stop]); len(f.words) < maxFound {
			f.words, end = append(f.words, word), stop
		}
	}
	if n := len(f.words); n > 0 && end == len(query) {
		f.words, f.last = f.words[:n-1], f.words[n-1]
	}
	return f
}

// fold returns a word in compatibility form, in lower case and without accents.
func fold(word string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(word)))
}

// has reports whether a word of a text matches the query.
func (f *finder) has(word string) bool {
	word = fold(word)
	return f.last != "" && strings.HasPrefix(word, f.last) || slices.Contains(f.words, word)
}

// count returns how often the words of the query occur in a text, each at most most times.
func (f *finder) count(s string, most int) int {
	seen := map[string]int{}
	n := 0
	for start, end := range prose.Words(s) {
		if !f.has(s[start:end]) {
			continue
		}
		word := fold(s[start:end])
		if f.last != "" && strings.HasPrefix(word, f.last) {
			word = f.last
		}
		if seen[word]++; seen[word] <= most {
			n++
		}
	}
	return n
}

// excerpt returns a stretch of a text on one line, as it reads, with the words of the query marked; the beginning if
// nothing is found.
func (f *finder) excerpt(s string) []piece {
	s = text.Head(s, hitLooked)
	from := 0
	if f.last != "" || len(f.words) > 0 {
		for start, end := range prose.Words(s) {
			if f.has(s[start:end]) {
				from = start
				break
			}
		}
	}
	start := len(text.Head(s, max(0, from-hitBefore)))
	if start > 0 { // begin at a word
		if i := strings.IndexFunc(s[start:from], unicode.IsSpace); i >= 0 {
			start += i
		}
	}
	end := len(text.Head(s, max(from, start)+hitAfter))
	if end < len(s) {
		if i := strings.LastIndexFunc(s[from:end], unicode.IsSpace); i > 0 {
			end = from + i
		}
	}
	var list []piece
	if start > 0 {
		list = append(list, piece{Text: "… "})
	}
	shown := plainWords(strings.ToValidUTF8(s[start:end], "\uFFFD"))
	at := 0
	for start, stop := range prose.Words(shown) {
		if f.has(shown[start:stop]) {
			list = append(list, piece{Text: shown[at:start]}, piece{Text: shown[start:stop], Marked: true})
			at = stop
		}
	}
	list = append(list, piece{Text: shown[at:]})
	if end < len(s) {
		list = append(list, piece{Text: " …"})
	}
	return list
}

// maxTokens is how many words, and gaps between words, of each text are compared. Longer stretches count as different
// as a whole.
const maxTokens = 600

// diffWords compares two texts by whole words: a change from 26 to 25 is easier to see than one from 6 to 5. Edits of
// kind quote are in the first text only, those of kind text in the second.
func diffWords(x, y string) []snapshot.Edit {
	var list []snapshot.Edit
	add := func(kind snapshot.EditKind, tokens ...string) {
		s := strings.Join(tokens, "")
		switch n := len(list); {
		case s == "":
		case n > 0 && list[n-1].Kind == kind:
			list[n-1].Text += s
		default:
			list = append(list, snapshot.Edit{Kind: kind, Text: s})
		}
	}
	a, b := tokensOf(x), tokensOf(y)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		add(snapshot.EditSame, a[0])
		a, b = a[1:], b[1:]
	}
	var end []string
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		end = append(end, a[len(a)-1])
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	slices.Reverse(end)
	if len(a) > maxTokens || len(b) > maxTokens {
		add(snapshot.EditQuote, a...)
		add(snapshot.EditText, b...)
		a, b = nil, nil
	}
	// The longest common subsequence, computed from the ends.
	same := make([][]int16, len(a)+1)
	for i := range same {
		same[i] = make([]int16, len(b)+1)
	}
	for i, one := range slices.Backward(a) {
		for k, other := range slices.Backward(b) {
			if one == other {
				same[i][k] = same[i+1][k+1] + 1
			} else {
				same[i][k] = max(same[i+1][k], same[i][k+1])
			}
		}
	}
	for i, k := 0, 0; i < len(a) || k < len(b); {
		switch {
		case i < len(a) && k < len(b) && a[i] == b[k]:
			add(snapshot.EditSame, a[i])
			i, k = i+1, k+1
		case k == len(b) || i < len(a) && same[i+1][k] >= same[i][k+1]:
			add(snapshot.EditQuote, a[i])
			i++
		default:
			add(snapshot.EditText, b[k])
			k++
		}
	}
	add(snapshot.EditSame, end...)
	return list
}

// compareWords sets two texts side by side, with the words that only one of them has marked. If one is empty nothing is
// marked.
func compareWords(x, y string) (xs, ys []piece) {
	if x == "" || y == "" {
		return appendPiece(nil, x, false), appendPiece(nil, y, false)
	}
	for _, e := range diffWords(x, y) {
		if e.Kind != snapshot.EditText {
			xs = appendPiece(xs, e.Text, e.Kind == snapshot.EditQuote)
		}
		if e.Kind != snapshot.EditQuote {
			ys = appendPiece(ys, e.Text, e.Kind == snapshot.EditText)
		}
	}
	return xs, ys
}

// tokensOf splits a text into words and the gaps between them.
func tokensOf(s string) []string {
	var list []string
	at := 0
	for start, end := range prose.Words(s) {
		if at < start {
			list = append(list, s[at:start])
		}
		list = append(list, s[start:end])
		at = end
	}
	if at < len(s) {
		list = append(list, s[at:])
	}
	return list
}
