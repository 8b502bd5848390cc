package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/verify"
)

func newManifest(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "manifest build|lint|show",
		Short: "Build, check and show manifests: who claimed what from where",
		Long: `A manifest lists the claims of one answer with the sources of each, and the steps
that led to it. What is looked at here is the manifest by itself; whether it is
true, and who signed it, is for ibid verify.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cmd.AddCommand(newManifestBuild(w), newManifestLint(w), newManifestShow(w))
	return cmd
}

// manifestFile is a manifest as it was read.
type manifestFile struct {
	body   []byte // no more than one byte over what a manifest may have
	signed bool   // it is from a bundle with a signature, which nobody has looked at
}

// readManifest reads the bytes of a manifest, or of the one in a stored bundle, and says so. A byte order mark stays:
// it is one of the things that are wrong.
func readManifest(name string, w world) (*manifestFile, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return nil, &usageError{
			fmt.Errorf("%s is an address, and only files are read here", name),
			"ibid verify " + name + " fetches and checks it",
		}
	}
	in, err := openInput(name, w.in, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, verify.DefaultInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, bare(err))
	}
	f := &manifestFile{body: data}
	if len(data) <= verify.DefaultInput && isBundle(data) {
		var s manifest.Signed
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		say(w.err, "%s is a stored bundle: this is about the manifest in it", name)
		f.body, f.signed = s.Body, s.SignatureInput != ""
	}
	f.body = f.body[:min(len(f.body), manifest.MaxBytes+1)]
	return f, nil
}

// isBundle reports whether JSON has the members of a stored bundle, as ibid manifest build --sign prints it.
func isBundle(data []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return false
	}
	return members["target_uri"] != nil && (members["body"] != nil || members["body_base64"] != nil)
}
