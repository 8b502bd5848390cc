package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

// maxKeyFile limits the bytes of a private key file.
const maxKeyFile = 64 << 10

func newKey(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key new|list|retire|revoke|forget",
		Short: "Create, list, retire, revoke and forget signing keys",
		Long: `Works on the data directory, even while a server uses it; the server notices at
its next signature. The public keys and their details are in keys/keys.json. Each
private key is in its own file, readable only by its owner, or in an environment
variable. ibid serve creates the first keys by itself.`,
	}
	return group(cmd, newKeyNew(w), newKeyList(w), newKeyRetire(w), newKeyRevoke(w), newKeyForget(w))
}

func newKeyNew(w world) *cobra.Command {
	c := server.Defaults()
	use, algorithm := string(keyring.Manifest), ""
	o := &keyring.NewOptions{}
	var at timeFlag
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new [--use USE] [--algorithm NAME] [--env NAME | --import FILE]",
		Short: "Create or import a signing key",
		Long: `Prints the key's id, its JWK thumbprint. From now on the newest key signs; older
ones can be retired. What they signed stays valid.`,
		Example: `  ibid key new
  ibid key new --env IBID_SIGNING_KEY`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ring, err := openRing(cmd, c, w)
			if err != nil {
				return err
			}
			if file != "" {
				if o.Import, err = readKeyFile(file, w); err != nil {
					return err
				}
			}
			o.Use, o.Algorithm, o.At = keyring.Use(use), algorithm, at.Time
			k, err := ring.New(o)
			switch {
			case errors.Is(err, keyring.ErrExists):
				return usagef("ibid key list shows it", "%w", err)
			case errors.Is(err, keyring.ErrFull):
				return usagef(
					"ibid key forget ID removes one that was retired longer ago than manifests are kept", "%w", err,
				)
			case err != nil:
				return err
			}
			from := k.NotBefore.Format(time.RFC3339)
			say(w.err, "%s key with algorithm %s, signs from %s on", k.Use, k.Algorithm, from)
			if asJSON {
				err = json.NewEncoder(w.out).Encode(newKeyLine(k, time.Now()))
			} else {
				_, err = fmt.Fprintln(w.out, k.ID)
			}
			if err == nil {
				auditKey(cmd, c, store.AuditKeyMade, k.ID, w)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.Var(server.OneOf(&use, "use", string(keyring.Manifest), string(keyring.Log)), "use",
		"what it signs: manifest or log, the transparency log")
	flags.Var(server.OneOf(&algorithm, "name", keyring.Ed25519, keyring.ECDSAP256), "algorithm",
		"ed25519 or, except for a log, ecdsa-p256-sha256 (default ed25519)")
	flags.StringVar(&o.Env, "env", "",
		"the environment `variable` with the private key, here and wherever it signs; it is not copied")
	flags.BoolVar(&asJSON, "json", false, "write the key as one JSON object, without the private key")
	flags.StringVar(&file, "import", "", "import the private key in this `file`: PKCS#8 in PEM, or a JWK")
	flags.Var(&at, "at", "sign from this `time` on: 2026-05-01T12:00:00Z, 2026-05-01 (default now)")
	withoutVariable(flags, "at")
	addKeyFlags(flags, c)
	return cmd
}

// auditKey records an action on a key in the audit log. Keys are files, so this comes after the action, which stands
// even if it cannot be recorded. Nothing is recorded before there is a database.
func auditKey(cmd *cobra.Command, c *server.Config, action store.AuditAction, id string, w world) {
	if _, err := os.Stat(c.DB); err != nil && !store.IsPostgres(c.DB) {
		return
	}
	err := withStore(cmd, c, w, false, func(ctx context.Context, s *store.Store) error {
		return s.Audit(ctx, store.DefaultTenant, store.AuditEntry{Action: action, Object: id})
	})
	if err != nil {
		say(w.err, "not recorded in the audit log: %v", err)
	}
}

// readKeyFile reads a private key. Its errors reveal nothing of the content.
func readKeyFile(name string, w world) ([]byte, error) {
	in, closeFile, err := openFile(name, w.in)
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	defer closeFile()
	b, err := io.ReadAll(io.LimitReader(in, maxKeyFile+1))
	if err == nil && len(b) > maxKeyFile {
		err = fmt.Errorf("it has more than %d bytes", maxKeyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	return b, nil
}

// keyLine is a key in the output of ibid key list --json. Its members must not be renamed.
type keyLine struct {
	ID        string      `json:"id"`
	Use       keyring.Use `json:"use"`
	Algorithm string      `json:"algorithm"`
	State     string      `json:"state"` // active, pending (not valid yet), retired or revoked
	Created   string      `json:"created_at"`
	NotBefore *string     `json:"not_before"`
	NotAfter  *string     `json:"not_after"`
	RetiredAt *string     `json:"retired_at"`
	RevokedAt *string     `json:"revoked_at"`
	Reason    string      `json:"reason,omitempty"`
	Private   string      `json:"private"`
}

func newKeyLine(k *keyring.Key, now time.Time) keyLine {
	return keyLine{
		k.ID, k.Use, k.Algorithm, keyState(k, now), k.Created.Format(time.RFC3339), timeOrNull(k.NotBefore),
		timeOrNull(k.NotAfter), timeOrNull(k.RetiredAt), timeOrNull(k.RevokedAt), k.Reason, k.Private,
	}
}

func newKeyList(w world) *cobra.Command {
	c := server.Defaults()
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the signing keys, newest first",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ring, err := openRing(cmd, c, w)
			if err != nil {
				return err
			}
			keys, now := []keyLine{}, time.Now()
			for _, k := range ring.List() {
				keys = append(keys, newKeyLine(&k, now))
			}
			err = writeList(w, asJSON, keys, "there are no keys", func(k *keyLine) []string {
				until := cmp.Or(k.RevokedAt, k.NotAfter)
				return []string{
					k.ID, string(k.Use), k.Algorithm, k.State, orDash(k.NotBefore), orDash(until), k.Private,
				}
			}, "ID", "USE", "ALGORITHM", "STATE", "FROM", "UNTIL", "PRIVATE")
			if len(keys) == 0 && !asJSON {
				hint(w.err, "ibid key new creates one; ibid serve --publish 3 does so by itself")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	addKeyFlags(cmd.Flags(), c)
	return cmd
}

func keyState(k *keyring.Key, now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.NotAfter.IsZero() && now.After(k.NotAfter):
		return "retired"
	case now.Before(k.NotBefore):
		return "pending"
	}
	return "active"
}

func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Format(time.RFC3339))
}

func orDash(s *string) string { return *cmp.Or(s, new("-")) }

func newKeyRetire(w world) *cobra.Command {
	var at timeFlag
	cmd := newKeyEnd(w, &cobra.Command{
		Use:   "retire ID… [--at TIME]",
		Short: "Stop signing with keys",
		Long: `What a retired key has signed stays valid, and the key stays published, so that it
can be verified for years. Create the next key a day earlier, as verifiers cache
the published keys for that long.`,
	}, func(ring *keyring.Ring, id string, _ *server.Config) error { return ring.Retire(id, at.Time) })
	cmd.Flags().Var(&at, "at", "sign until this `time`, which may be in the future: 2026-05-01T12:00:00Z (default now)")
	withoutVariable(cmd.Flags(), "at")
	return cmd
}

func newKeyRevoke(w world) *cobra.Command {
	var at timeFlag
	var reason string
	cmd := newKeyEnd(w, &cobra.Command{
		Use:   "revoke ID… [--at TIME] [--reason TEXT]",
		Short: "Declare keys compromised",
		Long: `For a key that someone else may have. Anything it signed at or after this time is no
longer trusted. What it signed earlier stays valid if the transparency log already
contained it; the time can be moved back later, not forward.`,
	}, func(ring *keyring.Ring, id string, _ *server.Config) error { return ring.Revoke(id, at.Time, reason) })
	cmd.Flags().Var(&at, "at", "from this `time` on, not in the future: 2026-05-01T12:00:00Z (default now)")
	withoutVariable(cmd.Flags(), "at")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for ibid key list; it is not published")
	return cmd
}

func newKeyForget(w world) *cobra.Command {
	var manifests server.Age
	cmd := newKeyEnd(w, &cobra.Command{
		Use:   "forget ID… [--manifests TIME]",
		Short: "Remove keys whose manifests are gone",
		Long: `Only ` + strconv.Itoa(keyring.MaxKeys) +
			` manifest keys can be published. This removes those that were retired or revoked
longer ago than manifests are kept, with their private keys. Nothing they signed
can be verified any more, even if it was kept elsewhere.`,
	}, func(ring *keyring.Ring, id string, c *server.Config) error {
		kept := manifests
		if kept == 0 {
			kept = c.Retention.Manifests
		}
		if kept == 0 {
			return usagef(
				"set retention.manifests in the file of --config, or --manifests",
				"manifests are kept forever, and so are the keys that signed them",
			)
		}
		return ring.Forget(id, time.Now().Add(-time.Duration(kept)))
	})
	cmd.Flags().Var(&manifests, "manifests", "how long manifests are kept: `time`, such as 720d (default "+
		"retention.manifests of --config)")
	return cmd
}

// newKeyEnd completes a command that retires, revokes or forgets keys.
func newKeyEnd(
	w world, cmd *cobra.Command, end func(ring *keyring.Ring, id string, c *server.Config) error,
) *cobra.Command {
	c := server.Defaults()
	cmd.Args = wants(many, "which key?", "ibid key list shows their ids")
	cmd.ValidArgsFunction = func(
		cmd *cobra.Command, args []string, _ string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		return keyCompletions(cmd, c, args, w), cobra.ShellCompDirectiveNoFileComp
	}
	done := map[string]string{"retire": "retired", "revoke": "revoked", "forget": "forgotten"}[cmd.Name()]
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ring, err := openRing(cmd, c, w)
		if err != nil {
			return err
		}
		for _, id := range args {
			err := end(ring, id, c)
			if errors.Is(err, keyring.ErrNotFound) {
				return usagef("ibid key list shows their ids; --data names their directory", "there is no key %q", id)
			}
			if err != nil {
				return err
			}
			say(w.err, "key %s is %s", id, done)
			auditKey(cmd, c, store.AuditAction("key."+done), id, w)
		}
		for _, use := range []keyring.Use{keyring.Manifest, keyring.Log} {
			had := slices.ContainsFunc(ring.List(), func(k keyring.Key) bool { return k.Use == use })
			if _, _, err := ring.Signer(use); had && errors.Is(err, keyring.ErrNoKey) {
				say(w.err, "no key for use %s can sign now", use)
				hint(w.err, "ibid key new --use "+string(use)+" creates one; until then manifests wait")
			}
		}
		return nil
	}
	addKeyFlags(cmd.Flags(), c)
	return cmd
}

// keyCompletions returns the ids of the keys that a command applies to, except those already named.
func keyCompletions(cmd *cobra.Command, c *server.Config, args []string, w world) []cobra.Completion {
	if readEnv(cmd, w.env) != nil {
		return nil
	}
	ring, err := openRing(cmd, c, w)
	if err != nil {
		return nil
	}
	of := map[string][]string{
		"retire": {"active", "pending"},
		"revoke": {"active", "pending", "retired"},
		"forget": {"retired", "revoked"},
	}[cmd.Name()]
	var ids []cobra.Completion
	for _, k := range ring.List() {
		if state := keyState(&k, time.Now()); slices.Contains(of, state) && !slices.Contains(args, k.ID) {
			ids = append(ids, cobra.CompletionWithDesc(k.ID, fmt.Sprintf("%s, %s", k.Use, state)))
		}
	}
	return ids
}

// addKeyFlags adds the flags that locate the keys.
func addKeyFlags(flags *pflag.FlagSet, c *server.Config) {
	c.AddStoreFlags(flags)
	flags.Lookup("db").Hidden = true // keys are never in a database
}

// openRing opens the keyring in the data directory.
func openRing(cmd *cobra.Command, c *server.Config, w world) (*keyring.Ring, error) {
	if err := c.ResolveStore(cmd.Flags(), w.env); err != nil {
		return nil, err
	}
	return c.OpenKeyring(w.env)
}

// timeFlag is the value of a flag that accepts a time or a day in UTC.
type timeFlag struct{ time.Time }

// String returns the time.
func (t *timeFlag) String() string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// Type returns the name of the value in help texts.
func (t *timeFlag) Type() string { return "time" }

// Set parses a time.
func (t *timeFlag) Set(text string) error {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if parsed, err := time.Parse(layout, text); err == nil {
			t.Time = parsed.UTC()
			return nil
		}
	}
	return errors.New("must be a time such as 2026-05-01T12:00:00Z or 2026-05-01")
}
