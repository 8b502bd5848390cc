package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newCompletion(w world) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print the completion script of a shell",
		Long: `Prints a script that makes a shell complete the commands, flags and values of
ibid. To use it now, and in every new shell:

  bash        source <(ibid completion bash)
              ibid completion bash >~/.local/share/bash-completion/completions/ibid
  zsh         source <(ibid completion zsh)
              ibid completion zsh >"${fpath[1]}/_ibid"
  fish        ibid completion fish | source
              ibid completion fish >~/.config/fish/completions/ibid.fish
  powershell  ibid completion powershell | Out-String | Invoke-Expression
              the same line in the file $PROFILE`,
		ValidArgs: shells,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return &usageError{
					fmt.Errorf("%s wants one shell: %s", c.CommandPath(), strings.Join(shells, ", ")),
					c.CommandPath() + " --help says what to do with the script",
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return writeCompletion(w.out, c.Root(), args[0]) },
	}
}

func writeCompletion(w io.Writer, root *cobra.Command, shell string) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	default:
		return root.GenPowerShellCompletionWithDesc(w)
	}
}
