package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

func newToken(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token new|list|revoke",
		Short: "Create, list and revoke access tokens",
		Long: `Works on the database directly, even while a server uses it; the server notices
within 30 seconds. Once there is a token, every request needs one: the first must
have the scope admin, so that its holder can create others.`,
	}
	return group(cmd, newTokenNew(w), newTokenList(w), newTokenRevoke(w))
}

func newTokenNew(w world) *cobra.Command {
	c := server.Defaults()
	token := &store.Token{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new --name NAME [--tenant TENANT] [--scope SCOPE…]",
		Short: "Create an access token",
		Long: `Prints the token's secret, which is shown only once: the database has only its
SHA-256.

Clients send it as Ibid-Token to the providers' paths, and as Authorization:
Bearer to /v1. Tokens of one tenant cannot see the data of another.`,
		Example: `  ibid token new --name me --scope all
  ibid token new --name laptop --scope proxy,read`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if token.Name == "" {
				return usagef("use --name to say who or what uses it", "a token needs a name")
			}
			if slices.Contains(token.Scopes, allScopes) {
				token.Scopes = store.Scopes()
			}
			if err := token.Check(); err != nil {
				return usagef("", "%w", err)
			}
			return withStore(cmd, c, w, true, func(ctx context.Context, s *store.Store) error {
				return makeToken(ctx, s, server.Redacted(c.DB), token, asJSON, w)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&token.Name, "name", "", "who or what uses it, for ibid token list")
	withoutVariable(flags, "name")
	addTenantFlag(flags, &token.Tenant)
	flags.StringSliceVar(&token.Scopes, "scope", []string{store.ScopeProxy, store.ScopeRead},
		"its permissions: "+strings.Join(store.Scopes(), ", ")+", or all; repeatable")
	flags.BoolVar(&asJSON, "json", false, "write the token as one JSON object, with its secret")
	flags.BoolVar(&token.Publish, "publishes", false, "publish its answers unless a request says otherwise")
	c.AddStoreFlags(cmd.Flags())
	return cmd
}

// allScopes stands for all scopes.
const allScopes = "all"

// makeToken creates a token in the database and prints its secret. db is the database's name for messages.
func makeToken(ctx context.Context, s *store.Store, db string, token *store.Token, asJSON bool, w world) error {
	// The server's environment, if it is this one, may provide a token with all scopes.
	if bootstrap, _ := w.env("IBID_BOOTSTRAP_TOKEN"); !slices.Contains(token.Scopes, store.ScopeAdmin) {
		if tokens, err := s.Tokens(ctx); err != nil || len(tokens) == 0 && bootstrap == "" {
			if err != nil {
				return err
			}
			return usagef(
				"`ibid token new --name "+token.Name+" --scope all` creates it; then create this one",
				"the first token must have the scope admin, since every later request needs a token",
			)
		}
	}
	secret, err := s.NewToken(ctx, token)
	if err != nil {
		return err
	}
	may := strings.Join(token.Scopes, ", ")
	if token.Publish {
		may += ", and its answers are published"
	}
	say(w.err, "token %s of tenant %s may %s; stored in %s; it is shown only once",
		token.ID, token.Tenant, may, db)
	if asJSON {
		return json.NewEncoder(w.out).Encode(struct { //nolint:gosec // the secret is what was asked for
			tokenLine
			Secret string `json:"secret"`
		}{newTokenLine(token), secret})
	}
	_, err = fmt.Fprintln(w.out, secret)
	return err
}

// tokenLine is a token in the output of ibid token list --json. Its members must not be renamed.
type tokenLine struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Tenant  string   `json:"tenant"`
	Scopes  []string `json:"scopes"`
	Publish bool     `json:"publish"`
	Created *string  `json:"created_at"`
	Revoked *string  `json:"revoked_at"` // null while it is valid
}

func newTokenLine(t *store.Token) tokenLine {
	return tokenLine{t.ID, t.Name, t.Tenant, t.Scopes, t.Publish, timeOrNull(t.Created), timeOrNull(t.Revoked)}
}

func newTokenList(w world) *cobra.Command {
	c := server.Defaults()
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the access tokens",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd, c, w, false, func(ctx context.Context, s *store.Store) error {
				tokens, err := s.Tokens(ctx)
				if err != nil {
					return err
				}
				lines := make([]tokenLine, len(tokens))
				for i := range tokens {
					lines[i] = newTokenLine(&tokens[i])
				}
				return writeList(w, asJSON, lines, "there are no tokens", func(t *tokenLine) []string {
					publish := "no"
					if t.Publish {
						publish = "yes"
					}
					scopes := strings.Join(t.Scopes, ",")
					return []string{t.ID, t.Name, t.Tenant, scopes, publish, orDash(t.Created), orDash(t.Revoked)}
				}, "ID", "NAME", "TENANT", "SCOPES", "PUBLISH", "CREATED", "REVOKED")
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	c.AddStoreFlags(cmd.Flags())
	return cmd
}

func newTokenRevoke(w world) *cobra.Command {
	c := server.Defaults()
	cmd := &cobra.Command{
		Use:               "revoke ID…",
		Short:             "Revoke access tokens",
		Args:              wants(many, "which token?", "ibid token list shows their ids"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd, c, w, false, func(ctx context.Context, s *store.Store) error {
				for _, id := range args {
					err := s.RevokeToken(ctx, id)
					if errors.Is(err, store.ErrNotFound) {
						return usagef(
							"ibid token list shows their ids, which begin with tok_", "there is no token %q", id,
						)
					}
					if err != nil {
						return err
					}
					say(w.err, "token %s is revoked", id)
				}
				return nil
			})
		},
	}
	c.AddStoreFlags(cmd.Flags())
	return cmd
}

// storeWait is how long a command waits for a gateway that is writing to the same SQLite file.
const storeWait = 15 * time.Second

// withStore opens the database for one command. It creates a missing database only if mayMake is set.
func withStore(
	cmd *cobra.Command, c *server.Config, w world, mayMake bool, f func(context.Context, *store.Store) error,
) (err error) {
	if err := c.ResolveStore(cmd.Flags(), w.env); err != nil {
		return err
	}
	ctx := cmd.Context()
	if mayMake {
		if err := c.MakeDatabaseDir(); err != nil {
			return err
		}
	} else if _, err := os.Stat(c.DB); err != nil && !store.IsPostgres(c.DB) {
		return usagef("--data or --db names the database of ibid serve", "there is no database: %w", err)
	}
	s, err := store.Open(ctx, c.DB, &store.Options{Wait: storeWait})
	if err != nil {
		return fmt.Errorf("opening the database %s: %w", server.Redacted(c.DB), err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	actor := "cli:uid " + strconv.Itoa(os.Getuid()) // for the audit log
	if u, err := user.Current(); err == nil {
		actor = "cli:" + u.Username
	}
	return f(store.WithActor(ctx, actor), s)
}
