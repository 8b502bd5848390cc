package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid"
)

// newPrompt returns the command prompt.
func newPrompt(w world) *cobra.Command {
	var documents string
	var asJSON bool
	c := &cobra.Command{
		Use:   "prompt --documents FILE",
		Short: "Format documents as XML for a prompt",
		Long: `Formats documents as the XML that providers recommend for passages in a prompt: one
result per document, with its id, name and URL, and one content per passage.
Everything is escaped, so that no passage can close its element.

Exit codes: 0 done, 2 the documents cannot be read.`,
		Example: `  ibid prompt --documents passages.json
  ibid prompt --documents - < passages.json`,
		RunE: func(*cobra.Command, []string) error {
			if documents == "" {
				return usagef("ibid prompt --documents FILE; - is standard input", "no documents")
			}
			list, err := readDocuments(documents, w.in)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(w.out).Encode(map[string]string{"prompt": ibid.PromptSources(list)})
			}
			_, err = fmt.Fprintln(w.out, ibid.PromptSources(list))
			return err
		},
	}
	c.Flags().StringVar(&documents, "documents", "",
		"the documents: a JSON array of strings, flat objects, or {\"id\", \"data\"} in `FILE`")
	c.Flags().BoolVar(&asJSON, "json", false, "write {\"prompt\"}, as POST /v1/prompt does")
	return c
}
