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
)

// The index of terms in SQLite is an FTS5 table without content: of each answer it has the terms, but not where they
// stand (detail='none'), under the answer's number. Terms are cut by us (see tokenizer), so FTS5 only splits at spaces,
// and both engines find the same. An answer that changes gets a new number. What is deleted is marked, and leaves the
// index when FTS5 merges what it stands in, or with [Store.Reindex].

const (
	// searchPage is how many answers are looked up in the index at first, and taken at a time.
	searchPage = 256
	// searchPages is how many more are looked up each time that those were not enough, up to searchMost: the index goes
	// through all that has the words for each question.
	searchPages = 4
	searchMost  = 256 * searchPage
)

// termText returns the terms of an answer, each once; for PostgreSQL quoted.
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
		case postgres && bytes.HasPrefix(term, []byte(tenantTerm)): // nobody asks it: the tenant is a column
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

// index adds answers that were stored just now to the index.
func (tx *transaction) index(ctx context.Context, rows []*row) error {
	if tx.postgres { // there the terms are a column
		return nil
	}
	values := rowsOf(rows, func(r *row) []any { return []any{r.n, r.terms} })
	return tx.changeIndex(ctx, &tuples{before: "INSERT INTO words (rowid, terms) VALUES ", row: "($, $)"}, values)
}

// unindex takes deleted answers out of the index.
func (tx *transaction) unindex(ctx context.Context, ns []int64) error {
	if tx.postgres {
		return nil
	}
	values := rowsOf(ns, func(n int64) []any { return []any{n} })
	return tx.changeIndex(ctx, &tuples{before: "DELETE FROM words WHERE rowid IN (", row: "$", after: ")"}, values)
}

// changeIndex runs a statement that changes the index. One that is damaged stays as it is: searches say so, and no
// answer waits for it.
func (tx *transaction) changeIndex(ctx context.Context, t *tuples, rows [][]any) error {
	if err := tx.exec(ctx, "SAVEPOINT words"); err != nil {
		return err
	}
	err := tx.execAll(ctx, t, rows)
	if err == nil { // else FTS5 would write, and find the damage, only with the commit
		err = tx.exec(ctx, "INSERT INTO words (words) VALUES ('flush')")
	}
	if isCorrupt(err) {
		tx.logger.LogAttrs(ctx, slog.LevelError, "the index is damaged: it does not find new answers until it "+
			"is made anew",
			slog.Any("error", err))
		err = tx.exec(ctx, "ROLLBACK TO words")
	}
	if err == nil {
		err = tx.exec(ctx, "RELEASE words")
	}
	return err
}

// isCorrupt reports whether SQLite found the index damaged: as such, or because it has already what is new.
func isCorrupt(err error) bool {
	return hasCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT)
}

// Reindex makes the index of SQLite anew from the answers that are stored: when it is damaged, or to remove what it
// still has of deleted ones at once. Nothing is written meanwhile. PostgreSQL does all this itself (REINDEX).
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
	return about(err, "making the index anew")
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
			if r.Call, err = DecodeCall(encoded); err == nil { // a damaged answer is found by nothing
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

// createWords makes the index; the migrations do too.
const createWords = `CREATE VIRTUAL TABLE words USING fts5(
	terms, content='', contentless_delete=1, detail='none', tokenize='ascii')`

// searchIndex calls take with the numbers of answers before a number that have what is looked for, the newest first and
// some hundred at a time, until it reports that it has enough. It is for SQLite; q is a transaction, so that all of it
// is as of one moment.
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

// ftsQuery returns what is looked for as FTS5 takes it. No character of a term means anything between quotes.
func (q termQuery) ftsQuery() string { return q.format(`"`, " OR ", " AND ", " *") }

// tsquery returns what is looked for as PostgreSQL takes it.
func (q termQuery) tsquery() string { return q.format("'", " | ", " & ", ":*") }

// format writes a query with an engine's quotes, words for or and and, and mark for the beginning of a term.
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

// A term is what an answer is found by: a word of it, or, behind a character that is in no word, the hash of a name.
const (
	tenantTerm   = "\ue000" // all answers of a tenant
	sourceTerm   = "\ue001" // a source
	providerTerm = "\ue002" // the upstream and the provider's id
)

// hashed returns the term for names of one kind.
func hashed(kind string, names ...string) string {
	return string(appendHashed(nil, kind, []byte(strings.Join(names, "\x00"))))
}

func appendHashed(b []byte, kind string, name []byte) []byte {
	sum := sha256.Sum256(name)
	return hex.AppendEncode(append(b, kind...), sum[:12])
}

// eachTerm calls put with the terms of an answer, some of them again and again, until the limit of an answer is
// reached. Term is only valid until put returns; put reports whether the answer did not have it yet.
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

// addNames puts the terms of an answer that are no words.
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

// isCount reports whether an id only counts the sources of its answer, as web:0 does.
func isCount(id string) bool {
	kind, digits, found := strings.Cut(id, ":")
	return found && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && strings.Trim(digits, "0123456789") == ""
}

// addressNames returns the names of sources with an address.
func addressNames(address string) []string {
	var names []string
	for _, kind := range []ibid.SourceKind{ibid.Web, ibid.File, ibid.DocumentKind, ibid.Tool, ibid.Map, ibid.Image} {
		source := ibid.Source{Kind: kind, URL: address}
		if key := source.Key(); strings.HasPrefix(key, string(kind)+":") { // else it is no address
			names = append(names, key)
		}
	}
	return names
}

// queryTerm is a term that is looked for.
type queryTerm struct {
	text   string
	prefix bool // it is only the beginning of one
}

// termQuery is what answers are looked for by: of each list of terms at least one.
type termQuery [][]queryTerm

// The limits of what is searched. Beyond them text is stored all the same, but not found by its words.
const (
	maxWord = 64 // bytes of one word; what is longer is found by these
	// bytes of all different names of an answer, as hashes: some 18,000; PostgreSQL takes 1 MiB with the words
	maxNames      = 512 << 10
	maxWords      = 512 << 10 // bytes of all different words of an answer
	maxQueryWords = 64        // of a query; the rest of it is not looked at
)

// A tokenizer cuts text into words, as they are searched: in lower case, without accents and in compatibility form.
// Scripts that put no spaces between words are cut into pairs of characters, and the last character of a run also is a
// word by itself, so that each character begins a word.
type tokenizer struct {
	put   func(word []byte) bool // takes a word; reports whether the answer did not have it yet
	bytes int                    // of the terms that put did not have yet

	word  []byte // the one being read
	plain bool   // it is ASCII, and in lower case
	pair  []byte // the last character of a run without spaces, and when it is put the next
	size  int    // of that last character
	alone bool   // it began its run

	query bool        // the words are looked for: an end of a run only counts if it is all of it
	asked []queryTerm // by a query, in their order
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

// fold takes accents off, and what else is only another way to write the same.
func (t *tokenizer) fold() {
	if len(t.word) > 8*maxWord { // it is cut anyway
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

// addWord hands a word on. In a query a single character out of a run stands for all pairs that begin with it.
func (t *tokenizer) addWord(word []byte, single bool) {
	switch {
	case t.query && len(t.asked) < maxQueryWords:
		t.asked = append(t.asked, queryTerm{string(word), single})
	case !t.query && t.bytes+len(word) <= maxWords && t.put(word):
		t.bytes += len(word) + 1
	}
}

// isUnspaced reports whether r is of a script that is written without spaces between words, or with endings that are.
func isUnspaced(r rune) bool {
	const prolonged = 'ー' // of no script
	return r >= 0x0E00 && (r < 0x2000 || r > 0x2E7F) && (r == prolonged || unicode.In(r, unicode.Han, unicode.Hiragana,
		unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// queryWords returns the words of a query. The last is a beginning, unless something that is no word follows it.
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
