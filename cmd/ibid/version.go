package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build says what the program was built from. The fields are the output of ibid version --json: names stay.
type build struct {
	Version  string  `json:"version"`
	Revision *string `json:"revision"` // of the repository; null: not built in one
	Time     *string `json:"time"`     // of the revision
	Modified bool    `json:"modified"` // the tree had changes
	Go       string  `json:"go"`
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
}

// readBuild asks the Go runtime.
func readBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return newBuild(info)
}

func newBuild(info *debug.BuildInfo) build {
	b := build{
		Version: cmp.Or(info.Main.Version, "(devel)"),
		Go:      info.GoVersion,
		OS:      runtime.GOOS,
		Arch:    runtime.GOARCH,
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = &s.Value
		case "vcs.time":
			b.Time = &s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns the version as people report it.
func (b build) String() string {
	s := b.Version
	if b.Revision != nil {
		revision := (*b.Revision)[:min(len(*b.Revision), 12)]
		if b.Modified {
			revision += ", modified"
		}
		s += " (" + revision + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", s, b.Go, b.OS, b.Arch)
}

func newVersion(w world) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:               "version",
		Short:             "Say which version this is",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if !asJSON {
				_, err := fmt.Fprintln(w.out, "ibid", b)
				return err
			}
			line, err := json.Marshal(b)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(w.out, "%s\n", line)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// noArgs refuses arguments with a usage error.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{
			fmt.Errorf("%s takes no argument, not %q", c.CommandPath(), args[0]),
			c.CommandPath() + " --help says how to call it",
		}
	}
	return nil
}
