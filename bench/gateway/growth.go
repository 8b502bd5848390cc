package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // asks PostgreSQL how large it is

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
)

const (
	growthBatch = 512 // per transaction, like the indexer under load
	growthAsks  = 60  // repetitions of each question
	growthPages = 20  // answers per cited page
)

// growthStops are the numbers of answers at which the store is queried.
var growthStops = []int{10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000}

// growth fills a store with generated answers and runs the same queries at each of growthStops, and at the end. A store
// filled earlier is extended: one that took hours to load can be queried when the machine is idle.
func growth(ctx context.Context, args []string, out io.Writer) error {
	set := flags("growth")
	dsn := set.String("db", "", "postgres://… or a file, empty or filled by growth, and to be deleted afterwards; none: a file of its own")
	most := set.Int("answers", 1_000_000, "how many")
	every := set.Duration("every", 6300*time.Millisecond, "the time between answers; PostgreSQL has a partition for each seven weeks")
	chart := set.String("chart", "", "draw the medians into this SVG file")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *dsn == "" {
		dir, err := os.MkdirTemp("", "ibid-growth-*")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		*dsn = filepath.Join(dir, "ibid.db")
	}
	g := newGrower(*dsn, *every)
	s, err := store.Open(ctx, *dsn, &store.Options{Now: func() time.Time { return g.startOf(g.n) }})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	g.store = s
	g.n = sort.Search(*most, func(i int) bool {
		_, err := s.Call(ctx, store.DefaultTenant, g.answerID(i))
		return errors.Is(err, store.ErrNotFound)
	})
	lines := make([]line, len(growthQuestions))
	fmt.Fprint(out, "| answers | stored a second | KB an answer |")
	for i, q := range growthQuestions {
		lines[i].name = q.name
		fmt.Fprintf(out, " %s |", q.name)
	}
	fmt.Fprintf(out, "\n|%s\n", strings.Repeat(" --- |", 3+len(lines)))
	for _, stop := range append(slices.Clip(growthStops), *most) {
		if stop > *most || stop < g.n || stop == *most && len(lines[0].points) > 0 && g.n == stop {
			continue
		}
		begin, from := time.Now(), g.n
		if err := g.grow(ctx, stop); err != nil {
			return err
		}
		rate := float64(g.n-from) / time.Since(begin).Seconds()
		size, err := g.settle(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %d | %.0f | %.2f |", g.n, rate, float64(size)/1024/float64(g.n))
		for i, q := range growthQuestions {
			took, err := g.ask(ctx, q.ask)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			lines[i].points = append(lines[i].points, point{float64(g.n), took.P50 / 1e3})
			fmt.Fprintf(out, " %.2f (%.2f) |", took.P50/1e3, took.P99/1e3)
		}
		fmt.Fprintln(out)
	}
	if *chart == "" {
		return nil
	}
	return os.WriteFile(*chart, drawnLines(lines), 0o644) //nolint:gosec // a public picture
}

// growthQuestions are the queries on the store, with random parameters.
var growthQuestions = []struct {
	name string
	ask  func(ctx context.Context, g *grower) (found int, err error)
}{
	{"by id", func(ctx context.Context, g *grower) (int, error) {
		_, err := g.store.Call(ctx, store.DefaultTenant, g.answerID(g.random.IntN(g.n)))
		return 1, err
	}},
	{"newest 50", func(ctx context.Context, g *grower) (int, error) { return g.list(ctx, &store.Query{}) }},
	{"a conversation", func(ctx context.Context, g *grower) (int, error) {
		return g.list(ctx, &store.Query{Conversation: conversationOf(g.random.IntN(g.n))})
	}},
	{"by source", func(ctx context.Context, g *grower) (int, error) {
		page, err := g.store.Sources(ctx, store.DefaultTenant, &store.SourceQuery{URL: pageURL(g.random.IntN(g.n) / growthPages)})
		if err != nil {
			return 0, err
		}
		return len(page.Items), nil
	}},
	{"a rare word", func(ctx context.Context, g *grower) (int, error) {
		return g.list(ctx, &store.Query{Text: fmt.Sprintf("number%d ", g.random.IntN(g.n))})
	}},
	{"two words", func(ctx context.Context, g *grower) (int, error) {
		return g.list(ctx, &store.Query{Text: g.words[g.random.IntN(500)+500] + " " + g.words[g.random.IntN(500)+500] + " "})
	}},
	{"a word of every third answer", func(ctx context.Context, g *grower) (int, error) {
		return g.list(ctx, &store.Query{Text: g.words[3] + " "})
	}},
}

// grower fills a store.
type grower struct {
	store  *store.Store
	dsn    string
	words  []string
	random *rand.Rand
	zipf   *rand.Zipf
	every  time.Duration // between answers
	n      int           // number of answers so far
}

// newGrower uses words distributed as in a language: a few frequent, many rare.
func newGrower(dsn string, every time.Duration) *grower {
	g := &grower{dsn: dsn, every: every, random: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // no secret
	g.zipf = rand.NewZipf(g.random, 1.1, 8, 39_999)
	for i := range 40_000 {
		var word strings.Builder
		for n := i; n > 0 || word.Len() == 0; n /= 20 {
			word.WriteByte("bcdfghklmnprstvwzjyq"[n%20])
			word.WriteByte("aeiou"[(n/3)%5])
		}
		g.words = append(g.words, word.String())
	}
	return g
}

// grow stores answers until there are n.
func (g *grower) grow(ctx context.Context, n int) error {
	for g.n < n {
		batch := make([]*store.Call, 0, growthBatch)
		for i := g.n; i < min(n, g.n+growthBatch); i++ {
			batch = append(batch, g.call(i))
		}
		if err := g.store.Put(ctx, batch); err != nil {
			return err
		}
		g.n += len(batch)
	}
	return nil
}

// startOf returns when an answer began.
func (g *grower) startOf(i int) time.Time {
	return time.UnixMilli(1_780_000_000_000).Add(time.Duration(i) * g.every)
}

// answerID returns an id in the gateway's format.
func (g *grower) answerID(i int) string {
	ms := g.startOf(i).UnixMilli()
	return fmt.Sprintf("ans_%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, i)
}

func conversationOf(i int) string { return fmt.Sprintf("conversation-%d", i/8) }
func pageURL(i int) string        { return fmt.Sprintf("https://www.site%d.example/%d", i%1000, i) }

// call returns a short answer with one source and one citation: its row has about 1 KB.
func (g *grower) call(i int) *store.Call {
	var text strings.Builder
	for text.Len() < 72 {
		text.WriteString(g.words[g.zipf.Uint64()])
		text.WriteByte(' ')
	}
	fmt.Fprintf(&text, "number%d.", i)
	span := ibid.Span{End: 24} // the only part that Cite looks at
	a := &ibid.Answer{
		ID: fmt.Sprintf("resp_%08d", i), Provider: "openai", Format: "openai-responses", Model: "gpt-5",
		Text: text.String(), Complete: true, Finish: ibid.FinishStop,
		Parts:   []ibid.Part{{Span: ibid.Span{End: text.Len()}, Kind: ibid.AnswerPart}},
		Sources: []ibid.Source{{ID: "web:0", Kind: ibid.Web, URL: pageURL(i / growthPages)}},
	}
	_ = a.Cite(span, ibid.Ref{Source: "web:0"}) // the span is in the text
	return &store.Call{
		AnswerID: g.answerID(i), Tenant: store.DefaultTenant, Upstream: "openai", Route: "POST /v1/responses",
		Conversation: conversationOf(i), Status: 200, Started: g.startOf(i),
		Duration: time.Second, Bytes: 1000, Answer: a,
	}
}

func (g *grower) list(ctx context.Context, q *store.Query) (int, error) {
	page, err := g.store.Calls(ctx, store.DefaultTenant, q)
	if err != nil {
		return 0, err
	}
	return len(page.Items), nil
}

// ask runs one query repeatedly, and returns the times in microseconds. It must find something.
func (g *grower) ask(
	ctx context.Context, question func(context.Context, *grower) (int, error),
) (quantiles, error) {
	var took []float64
	for range growthAsks {
		begin := time.Now()
		found, err := question(ctx, g)
		if err != nil {
			return quantiles{}, err
		}
		if found == 0 {
			continue // no answer has both words
		}
		took = append(took, microseconds(time.Since(begin)))
	}
	if len(took) == 0 {
		return quantiles{}, fmt.Errorf("nothing was found in %d answers", g.n)
	}
	return quantilesOf(took), nil
}

// settle returns the size of the database on disk, in bytes. It does not wait for autovacuum, which updates
// PostgreSQL's planner statistics within minutes.
func (g *grower) settle(ctx context.Context) (size int64, err error) {
	if !store.IsPostgres(g.dsn) {
		names, _ := filepath.Glob(g.dsn + "*")
		for _, name := range names {
			if info, err := os.Stat(name); err == nil {
				size += info.Size()
			}
		}
		return size, nil
	}
	db, err := sql.Open("pgx", g.dsn)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, "VACUUM ANALYZE calls"); err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	return size, err
}
