// Command ibid shows the answers of LLM providers with their citations in the right places.
//
// docs/cli.md describes its commands, flags and exit codes. There is one file per subcommand; cite has more. This
// package is the only one that reads the environment, deals with terminals, or exits.
//
// Standard output carries data and nothing else. Messages for people go to standard error, as lines that begin with
// "ibid: " or "hint: ".
package main

//go:generate go test -run ^Test(Metrics)?Docs$ . -update
