package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

// storedFlags say where stored answers are: in a database, or on a server.
type storedFlags struct {
	config        *server.Config
	server, token string
	tenant        string
}

// storedHelp is the end of the help of commands that read stored answers.
const storedHelp = `

They are read from the database of --data or --db, which a server may be using, or
from a server with --server: --token, or better the variable IBID_TOKEN, is its
access token.`

func (f *storedFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.server, "server", "", "read from the server at this `URL` instead of a database")
	flags.StringVar(&f.token, "token", "", "the access `TOKEN` of that server")
	addTenantFlag(flags, &f.tenant)
	f.config = server.Defaults()
	f.config.AddStoreFlags(flags)
}

// answers passes stored answers as JSON lines of the API, the latest first, to give as long as it returns true.
func (f *storedFlags) answers(cmd *cobra.Command, q *store.Query, w world, give func(json.RawMessage) bool) error {
	if f.server != "" {
		return f.served(cmd.Context(), q, give)
	}
	return withStore(cmd, f.config, w, false, func(ctx context.Context, s *store.Store) error {
		for {
			page, err := s.Calls(ctx, f.tenant, q)
			if err != nil {
				return err
			}
			for _, call := range page.Items {
				line, err := api.CallJSON(ctx, call)
				if err != nil {
					return err
				}
				if !give(line) {
					return nil
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return nil
			}
		}
	})
}

// served passes the answers of a server to give, as [storedFlags.answers] does.
func (f *storedFlags) served(ctx context.Context, q *store.Query, give func(json.RawMessage) bool) error {
	for {
		params := url.Values{"limit": {strconv.Itoa(q.Limit)}}
		for name, value := range map[string]string{
			"q": q.Text, "source": q.Source, "conversation": q.Conversation, "run": q.Run,
			"verification": q.Verification, "cursor": q.Cursor,
		} {
			if value != "" {
				params.Set(name, value)
			}
		}
		body, err := f.get(ctx, "/v1/answers?"+params.Encode())
		if err != nil {
			return err
		}
		var page struct {
			Answers []json.RawMessage `json:"answers"`
			Next    string            `json:"next_cursor"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("read the list of %s: %w", f.server, err)
		}
		for _, one := range page.Answers {
			if !give(one) {
				return nil
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
}

const (
	// serverTime bounds a request to a server.
	serverTime = 60 * time.Second
	// maxServed limits the bytes of its response.
	maxServed = 256 << 20
)

// get returns what a server has at a path.
func (f *storedFlags) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(f.server, "/")+path, nil)
	if err != nil || r.URL.Host == "" {
		return nil, usagef("--server http://127.0.0.1:8080", "--server %q is not the URL of a server", f.server)
	}
	if f.token != "" {
		r.Header.Set("Authorization", "Bearer "+f.token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, usagef("is ibid serve running there?", "read from %s: %w", f.server, bareURL(err))
	}
	defer res.Body.Close() //nolint:errcheck // it is only read
	body, err := io.ReadAll(io.LimitReader(res.Body, maxServed+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read from %s: %w", f.server, bareURL(err))
	case len(body) > maxServed:
		return nil, fmt.Errorf("read from %s: the response has more than %d MiB", f.server, maxServed>>20)
	case res.StatusCode == http.StatusOK:
		return body, nil
	}
	var problem struct{ Detail, Hint string }
	_ = json.Unmarshal(body, &problem) // a proxy's response may be anything
	advice := problem.Hint
	if res.StatusCode == http.StatusUnauthorized {
		advice = "IBID_TOKEN=ibid_… or --token is the access token; `ibid token new --scope read` makes one"
	}
	why := cmp.Or(problem.Detail, http.StatusText(res.StatusCode), res.Status)
	return nil, usagef(advice, "read from %s: %d: %s", f.server, res.StatusCode, oneLine(why))
}

// bareURL returns an error of net/http without the method and the URL, which messages state themselves.
func bareURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// listedAnswer is what the table has of an answer.
type listedAnswer struct {
	ID        string `json:"answer_id"`
	Provider  *string
	Model     *string
	Text      string
	Citations []struct{}
	Sources   []struct{}
	Call      struct {
		Started time.Time `json:"started_at"`
		Prompt  []struct{ Role, Text string }
	}
}

// cells returns a row of the table.
func (a *listedAnswer) cells() []string {
	words := a.Text
	for _, m := range slices.Backward(a.Call.Prompt) {
		if m.Role == store.RoleUser && m.Text != "" {
			words = m.Text
			break
		}
	}
	by := "–"
	if a.Model != nil {
		by = *a.Model
	} else if a.Provider != nil {
		by = *a.Provider
	}
	return []string{
		a.ID, a.Call.Started.UTC().Format(time.RFC3339), by, strconv.Itoa(len(a.Citations)),
		strconv.Itoa(len(a.Sources)), text.Line(words, maxListed),
	}
}

// maxListed limits the characters of a question or an answer in a table.
const maxListed = 60

// listFlags are the flags of ibid list and ibid search.
type listFlags struct {
	storedFlags

	limit int
	json  bool
	query store.Query
}

func (f *listFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.IntVar(&f.limit, "limit", 20, "list the latest `N`")
	flags.StringVar(&f.query.Source, "source", "", "only answers with the source at this `URL`, or with this key")
	flags.StringVar(&f.query.Conversation, "conversation", "", "only answers of the conversation with this `ID`")
	flags.StringVar(&f.query.Run, "run", "", "only answers of the run with this `ID`")
	flags.StringVar(&f.query.Verification, "verification", "",
		"only answers with this `STATUS`: failed, unverifiable, passed, unchecked, or that of a citation")
	flags.BoolVar(&f.json, "json", false, "write answer documents with the member call, one line each")
	withoutVariable(flags, "limit", "source", "conversation", "run", "verification")
	f.storedFlags.add(flags)
}

func (f *listFlags) run(cmd *cobra.Command, w world) error {
	if f.limit < 1 {
		return usagef("", "--limit %d: must be at least 1", f.limit)
	}
	f.query.Limit = min(f.limit+1, store.MaxLimit)
	n, more := 0, false
	var failed error
	rows := [][]string{{"ID", "AT", "MODEL", "CITATIONS", "SOURCES", "QUESTION OR ANSWER"}}
	err := f.answers(cmd, &f.query, w, func(line json.RawMessage) bool {
		if more = n == f.limit; more {
			return false
		}
		n++
		if f.json {
			failed = writeLine(w.out, strings.TrimSpace(string(line)))
			return failed == nil
		}
		var a listedAnswer
		if failed = json.Unmarshal(line, &a); failed == nil {
			rows = append(rows, a.cells())
		}
		return failed == nil
	})
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	switch {
	case f.json:
	case n == 0:
		say(w.err, "there are no such answers")
	default:
		if err := writeTable(w.out, 2, rows); err != nil {
			return err
		}
	}
	if more {
		hint(w.err, fmt.Sprintf("there are more than %d; use --limit to list them", f.limit))
	}
	return nil
}

func newList(w world) *cobra.Command {
	f := &listFlags{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List stored answers, the latest first",
		Long: `Lists the answers that ibid serve stored: when, by which model, how many citations
and sources each has, and what was asked.` + storedHelp,
		Example: `  ibid list
  ibid list --source https://birds.example/herons --json
  IBID_TOKEN=ibid_… ibid list --server https://ibid.example --verification failed`,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c, w) },
	}
	f.add(c.Flags())
	return c
}

func newSearch(w world) *cobra.Command {
	f := &listFlags{}
	c := &cobra.Command{
		Use:   "search WORD...",
		Short: "Search stored answers for words",
		Long: `Lists the stored answers in which all words occur: in the answer, its prompt, or
the quotes and titles of its sources.` + storedHelp,
		Example: `  ibid search herons nests
  ibid search --json herons | jq -r .answer_id`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, words []string) error {
			if f.query.Text = strings.Join(words, " "); strings.TrimSpace(f.query.Text) == "" {
				return usagef("ibid search herons; ibid list lists all answers", "there are no words to search for")
			}
			return f.run(c, w)
		},
	}
	f.add(c.Flags())
	return c
}

func newShow(w world) *cobra.Command {
	f := &storedFlags{}
	var as string
	var asJSONToo bool
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Show a stored answer with its citations",
		Long: `Writes a stored answer with its citations and sources, or in one of the other forms
of ibid cite. With --json it is the answer document with the member call: what was
asked, when, and in which run.` + storedHelp,
		Example: `  ibid show ans_0199…
  ibid show ans_0199… --as bibtex
  ibid show ans_0199… --server http://127.0.0.1:8080 --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, ids []string) error {
			form, err := formOf(as, asJSONToo)
			if err != nil {
				return err
			}
			if len(ids) != 1 {
				return usagef("ibid list has the ids", "ibid show takes one id")
			}
			return f.show(c, ids[0], cmp.Or(form, string(ibid.StyleMarkdown)), w)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	forms := slices.Concat(
		text.Strings(ibid.Styles()), []string{asJSON}, text.Strings(biblio.Formats()), text.Strings(export.Formats()))
	flags.Var(server.OneOf(&as, "FORM", forms...), "as",
		"what to write: `FORM` is markdown (default), or one of the others of ibid cite")
	flags.BoolVar(&asJSONToo, "json", false, "the same as --as json")
	alternatives(flags, "as", "json")
	withoutVariable(flags, "as")
	f.add(flags)
	return c
}

// show writes one answer.
func (f *storedFlags) show(cmd *cobra.Command, id, form string, w world) error {
	var out []byte
	var err error
	if f.server != "" {
		out, err = f.get(cmd.Context(), "/v1/answers/"+url.PathEscape(id)+"?as="+url.QueryEscape(form))
	} else {
		err = withStore(cmd, f.config, w, false, func(ctx context.Context, s *store.Store) error {
			call, err := s.Call(ctx, f.tenant, id)
			if errors.Is(err, store.ErrNotFound) {
				return usagef("ibid list has the ids", "there is no answer %q", id)
			}
			if err != nil {
				return err
			}
			if form == asJSON {
				out, err = api.CallJSON(ctx, call)
			} else {
				out, err = api.RenderAnswer(call.Answer, form, nil, &export.Options{ID: id, Context: ctx})
			}
			return err
		})
	}
	if err == nil {
		_, err = w.out.Write(out)
	}
	return err
}
