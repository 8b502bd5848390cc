package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/sqlite"
)

// SQLite's index of terms is a contentless FTS5 table: for each answer, under its number, it has the terms but not
// their positions (detail='none'). We split text into terms ourselves (see tokenizer), so FTS5 only splits at spaces,
// and both engines find the same. An answer that changes gets a new number. Deleted entries are marked, and leave the
// index when FTS5 merges their segment, or with [Store.Reindex].

const (
	// searchPage is how many answers the first lookup in the index returns, and how many are processed at a time.
	searchPage = 256
	// searchPages is the factor by which each further lookup grows, up to searchMost: every lookup goes through all
	// entries that match.
	searchPages = 4
	searchMost  = 256 * searchPage
)

// termText returns the terms of an answer, each once; for PostgreSQL they are quoted.
func termText(c *Call, postgres bool) string {
	seen := map[string]bool{}
	var b strings.Builder
	var t tokenizer
	t.eachTerm(c, func(term []byte) bool {
		isNew := !seen[string(term)]
		if isNew {
			seen[string(term)] = true
		}
		switch {
		case !isNew:
		case postgres && bytes.HasPrefix(term, []byte(tenantTerm)): // not needed: the tenant is a column
		case !postgres:
			b.Write(term)
			b.WriteByte(' ')
		default:
			b.WriteString("'")
			b.Write(term)
			b.WriteString("' ")
		}
		return isNew
	})
	return b.String()
}

// index adds answers that were just stored to the index.
func (tx *transaction) index(ctx context.Context, rows []*row) error {
	if tx.postgres { // the terms are a column
		return nil
	}
	values := rowsOf(rows, func(r *row) []any { return []any{r.n, r.terms} })
	return tx.changeIndex(ctx, &tuples{before: "INSERT INTO words (rowid, terms) VALUES ", row: "($, $)"}, values)
}

// unindex removes deleted answers from the index.
func (tx *transaction) unindex(ctx context.Context, ns []int64) error {
	if tx.postgres {
		return nil
	}
	values := rowsOf(ns, func(n int64) []any { return []any{n} })
	return tx.changeIndex(ctx, &tuples{before: "DELETE FROM words WHERE rowid IN (", row: "$", after: ")"}, values)
}

// changeIndex runs a statement that changes the index. If the index is damaged, it stays as it is: searches report
// that, and answers are stored all the same.
func (tx *transaction) changeIndex(ctx context.Context, t *tuples, rows [][]any) error {
	if err := tx.exec(ctx, "SAVEPOINT words"); err != nil {
		return err
	}
	err := tx.execAll(ctx, t, rows)
	if err == nil { // otherwise FTS5 would write, and find the damage, only at the commit
		err = tx.exec(ctx, "INSERT INTO words (words) VALUES ('flush')")
	}
	if isCorrupt(err) {
		tx.logger.LogAttrs(ctx, slog.LevelError, "the index is damaged: it does not find new answers until it "+
			"is rebuilt",
			slog.Any("error", err))
		err = tx.exec(ctx, "ROLLBACK TO words")
	}
	if err == nil {
		err = tx.exec(ctx, "RELEASE words")
	}
	return err
}

// isCorrupt reports whether SQLite found the index damaged: explicitly, or because it already contains a new row.
func isCorrupt(err error) bool {
	return sqlite.HasCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT)
}

// Reindex rebuilds SQLite's index from the stored answers, to repair it or to remove deleted entries at once. Nothing
// else is written meanwhile. PostgreSQL has REINDEX and needs none of this.
func (s *Store) Reindex(ctx context.Context) error {
	if s.postgres {
		return nil
	}
	err := s.update(ctx, func(tx *transaction) error {
		if err := tx.reindex(ctx); err != nil {
			return err
		}
		return tx.audit(ctx, DefaultTenant, AuditEntry{Action: AuditIndexRebuilt})
	})
	return wrap(err, "rebuilding the index")
}

func (tx *transaction) reindex(ctx context.Context) error {
	for _, statement := range []string{"DROP TABLE IF EXISTS words", createWords} {
		if err := tx.exec(ctx, statement); err != nil {
			return err
		}
	}
	for last := int64(-1); ; {
		var rows []*row
		err := each(ctx, tx, func(found *sql.Rows) error {
			var r row
			var encoded []byte
			err := found.Scan(&r.n, &encoded)
			last = r.n
			if err != nil {
				return err
			}
			if r.Call, err = DecodeCall(encoded); err == nil { // a damaged answer is not found
				r.terms = termText(r.Call, false)
				rows = append(rows, &r)
			}
			return nil
		}, "SELECT n, call FROM calls WHERE n > $1 ORDER BY n LIMIT $2", last, searchPage)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := tx.index(ctx, rows); err != nil {
			return err
		}
	}
}

// createWords creates the index, like the migrations.
const createWords = `CREATE VIRTUAL TABLE words USING fts5(
	terms, content='', contentless_delete=1, detail='none', tokenize='ascii')`

// searchIndex calls take with the numbers below before of answers that match, newest first and up to searchPage at a
// time, until it reports that it has enough. It is for SQLite; q is a transaction, so that all is read from one
// snapshot.
func searchIndex(
	ctx context.Context, q querier, what termQuery, before int64, take func(ns []int64) (enough bool, err error),
) error {
	match := what.ftsQuery()
	for page := searchPage; ; page = min(page*searchPages, searchMost) {
		ns, err := collect(
			ctx, q, scanNumber,
			"SELECT rowid FROM words WHERE words MATCH $1 AND rowid < $2 ORDER BY rowid DESC LIMIT $3",
			match, before, page,
		)
		if isCorrupt(err) {
			return fmt.Errorf("%w: %w", errIndex, err)
		}
		if err != nil || len(ns) == 0 {
			return err
		}
		for some := range slices.Chunk(ns, searchPage) {
			if enough, err := take(some); enough || err != nil {
				return err
			}
		}
		if before = ns[len(ns)-1]; len(ns) < page {
			return nil
		}
	}
}

// ftsQuery returns the query in the syntax of FTS5. No character of a term is special between quotes.
func (q termQuery) ftsQuery() string { return q.format(`"`, " OR ", " AND ", " *") }

// tsquery returns the query in PostgreSQL's syntax.
func (q termQuery) tsquery() string { return q.format("'", " | ", " & ", ":*") }

// format writes a query with an engine's quotes, its operators for or and and, and its suffix for a prefix match.
func (q termQuery) format(quote, or, and, prefix string) string {
	var b strings.Builder
	for i, list := range q {
		if i > 0 {
			b.WriteString(and)
		}
		for k, term := range list {
			if k == 0 {
				b.WriteByte('(')
			} else {
				b.WriteString(or)
			}
			b.WriteString(quote + term.text + quote)
			if term.prefix {
				b.WriteString(prefix)
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}

// A term is what an answer is found by: one of its words, or the hash of a name, after a character that occurs in no
// word.
const (
	tenantTerm   = "\ue000" // all answers of a tenant
	sourceTerm   = "\ue001" // a source
	providerTerm = "\ue002" // the upstream and the provider's id
)

// hashed returns the term for a name, which may have several parts.
func hashed(kind string, names ...string) string {
	return string(appendHashed(nil, kind, []byte(strings.Join(names, "\x00"))))
}

func appendHashed(b []byte, kind string, name []byte) []byte {
	sum := sha256.Sum256(name)
	return hex.AppendEncode(append(b, kind...), sum[:12])
}

// eachTerm calls put with the terms of an answer, possibly repeatedly, until the limit of an answer is reached. A term
// is only valid until put returns; put reports whether the term is new.
func (t *tokenizer) eachTerm(c *Call, put func(term []byte) bool) {
	t.put, t.bytes = put, 0
	t.addNames(c)
	t.bytes = 0
	t.add(c.Answer.Text)
	for i := range c.Prompt {
		t.add(c.Prompt[i].Text)
	}
	for i := range c.Answer.Sources {
		t.add(c.Answer.Sources[i].Title)
	}
	for i := range c.Answer.Citations {
		for k := range c.Answer.Citations[i].Refs {
			t.add(c.Answer.Citations[i].Refs[k].Quote)
		}
	}
}

// addNames puts the terms that are not words.
func (t *tokenizer) addNames(c *Call) {
	t.addName(tenantTerm, c.Tenant)
	if c.Answer.ID != "" {
		t.addName(providerTerm, c.Upstream, c.Answer.ID)
	}
	for i := range c.Answer.Sources {
		for _, name := range sourceNames(&c.Answer.Sources[i]) {
			if t.addName(sourceTerm, name); t.bytes > maxNames {
				return
			}
		}
	}
}

func (t *tokenizer) addName(kind string, names ...string) {
	t.word = append(t.word[:0], names[0]...)
	for _, name := range names[1:] {
		t.word = append(append(t.word, 0), name...)
	}
	if t.word = appendHashed(t.word[:0], kind, t.word); t.put(t.word) {
		t.bytes += len(t.word) + 1
	}
}

// sourceNames returns the names by which a source is looked up.
func sourceNames(s *ibid.Source) []string {
	names := []string{s.Key()}
	if s.ID != s.GlobalID && !isCount(s.ID) {
		names = append(names, "id:"+s.ID)
	}
	return names
}

// isCount reports whether an id only counts the sources of its answer, like web:0.
func isCount(id string) bool {
	kind, digits, found := strings.Cut(id, ":")
	return found && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && strings.Trim(digits, "0123456789") == ""
}

// addressNames returns the names of sources with an address.
func addressNames(address string) []string {
	var names []string
	for _, kind := range []ibid.SourceKind{ibid.Web, ibid.File, ibid.DocumentKind, ibid.Tool, ibid.Map, ibid.Image} {
		source := ibid.Source{Kind: kind, URL: address}
		if key := source.Key(); strings.HasPrefix(key, string(kind)+":") { // otherwise it is not an address
			names = append(names, key)
		}
	}
	return names
}

// queryTerm is a term to search for.
type queryTerm struct {
	text   string
	prefix bool // match all terms that begin with it
}

// termQuery is a search: at least one term of each list must match.
type termQuery [][]queryTerm

// Limits of what is searchable. Text beyond them is stored, but not found by its words.
const (
	maxWord = 64 // bytes of one word; longer ones are cut
	// bytes of all different names of an answer, as hashes: some 18,000; PostgreSQL accepts 1 MiB including the words
	maxNames      = 512 << 10
	maxWords      = 512 << 10 // bytes of all different words of an answer
	maxQueryWords = 64        // of a query; the rest is ignored
)

// A tokenizer splits text into words as they are searched: in lower case, without accents and in compatibility form.
// Text in scripts without spaces between words is split into pairs of characters, plus the last character of each run,
// so that each character begins a word.
type tokenizer struct {
	put   func(word []byte) bool // receives a word; reports whether it is new
	bytes int                    // of the new terms

	word  []byte // the one being read
	plain bool   // it is ASCII, and in lower case
	pair  []byte // the last character of a run without spaces, and the next one while it is put
	size  int    // of that last character
	alone bool   // it is the first of its run

	query bool        // parsing a query: the last character of a run counts only if it is the whole run
	asked []queryTerm // the terms of a query, in their order
}

// add puts the words of text.
func (t *tokenizer) add(text string) {
	t.word, t.plain, t.pair, t.size = t.word[:0], true, t.pair[:0], 0
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			t.ascii(c)
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		t.rune(r, text[i:i+size])
		i += size
	}
	t.end()
	t.endRun()
}

func (t *tokenizer) ascii(c byte) {
	if t.size > 0 {
		t.endRun()
	}
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		t.word = append(t.word, c)
	case 'A' <= c && c <= 'Z':
		t.word = append(t.word, c+'a'-'A')
	case len(t.word) > 0:
		t.end()
	}
}

func (t *tokenizer) rune(r rune, text string) {
	switch {
	case isUnspaced(r):
		t.end()
		t.alone = t.size == 0
		t.pair = append(t.pair, text...)
		if !t.alone {
			t.addWord(t.pair, false)
		}
		t.pair, t.size = append(t.pair[:0], text...), len(text)
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
		t.endRun()
		t.word, t.plain = append(t.word, text...), false
	default:
		t.endRun()
		t.end()
	}
}

// end ends a word.
func (t *tokenizer) end() {
	if len(t.word) == 0 {
		return
	}
	if !t.plain {
		t.fold()
		t.plain = true
	}
	if n := maxWord; len(t.word) > n {
		for !utf8.RuneStart(t.word[n]) {
			n--
		}
		t.word = t.word[:n]
	}
	if len(t.word) > 0 {
		t.addWord(t.word, false)
	}
	t.word = t.word[:0]
}

// fold removes accents and other variations in writing.
func (t *tokenizer) fold() {
	if len(t.word) > 8*maxWord { // it will be cut anyway
		t.word = t.word[:8*maxWord]
	}
	folded := t.word[:0]
	for _, r := range string(norm.NFKD.Bytes(t.word)) {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			folded = utf8.AppendRune(folded, unicode.ToLower(r))
		}
	}
	t.word = folded
}

// endRun ends a run of characters without spaces.
func (t *tokenizer) endRun() {
	if t.size > 0 && (!t.query || t.alone) {
		t.addWord(t.pair, true)
	}
	t.pair, t.size = t.pair[:0], 0
}

// addWord puts a word. In a query, a single-character run matches all pairs that begin with it.
func (t *tokenizer) addWord(word []byte, single bool) {
	switch {
	case t.query && len(t.asked) < maxQueryWords:
		t.asked = append(t.asked, queryTerm{string(word), single})
	case !t.query && t.bytes+len(word) <= maxWords && t.put(word):
		t.bytes += len(word) + 1
	}
}

// isUnspaced reports whether r belongs to a script without spaces between words, or with unspaced endings.
func isUnspaced(r rune) bool {
	const prolonged = 'ー' // belongs to no script
	return r >= 0x0E00 && (r < 0x2000 || r > 0x2E7F) && (r == prolonged || unicode.In(r, unicode.Han, unicode.Hiragana,
		unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// queryWords returns the words of a query. The last is a prefix unless it is followed by something that is not a word.
func queryWords(query string) []queryTerm {
	t := tokenizer{query: true}
	t.add(query)
	last, _ := utf8.DecodeLastRuneInString(query)
	if n := len(t.asked); n > 0 && n < maxQueryWords &&
		(unicode.IsLetter(last) || unicode.IsNumber(last) || unicode.IsMark(last)) {
		t.asked[n-1].prefix = true
	}
	return t.asked
}
