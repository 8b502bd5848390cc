// Command ibid shows what LLM providers answered with its citations in the right places.
//
// docs/cli.md describes its commands, flags and exit codes. There is one file per subcommand; cite is the one that has
// more. This package is the only one that reads the environment, knows what a terminal is, or exits.
//
// What it says follows one rule: standard output carries data and nothing else. Words for people go to standard error,
// as lines that begin with "ibid: " or "hint: ".
package main

//go:generate go test -run ^Test(Metrics)?Docs$ . -update
