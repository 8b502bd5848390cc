package main

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ibidhq/ibid/internal/file"
)

// cmdReserve returns unused ports: a server that publishes its own address must know it before it listens.
func cmdReserve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: reserve VARIABLE…")
	}
	for _, name := range args {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		defer l.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		ts.Check(err)
		ts.Setenv(name, port)
	}
}

// cmdExtract sets a variable to the first group of a pattern's match in a file or stdout.
func cmdExtract(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: extract FILE PATTERN VARIABLE")
	}
	found := regexp.MustCompile(`(?m)` + args[1]).FindStringSubmatch(ts.ReadFile(args[0]))
	if len(found) < 2 {
		ts.Fatalf("%s has no %s", args[0], args[1])
	}
	ts.Setenv(args[2], found[1])
}

// siteMain is a program: site ADDRESSFILE DIR. It serves the current files of a directory: pages to GET and, like a
// provider, NAME.json or else NAME.sse to POST. $SITE in a file is replaced by the site's own address.
func siteMain() {
	flags := flag.NewFlagSet("site", flag.ExitOnError)
	_ = flags.Parse(os.Args[1:])
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = file.Replace(flags.Arg(0), []byte("http://"+l.Addr().String()+"\n"), 0o644)
	}
	if err == nil {
		err = http.Serve(l, &site{dir: flags.Arg(1), url: "http://" + l.Addr().String()})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

type site struct{ dir, url string }

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := filepath.Join(s.dir, filepath.FromSlash(path.Clean("/"+r.URL.Path)))
	types := map[string]string{"": "text/html; charset=utf-8"}
	if r.Method == http.MethodPost {
		types = map[string]string{".json": "application/json", ".sse": "text/event-stream"}
	}
	for extension, mediaType := range types {
		data, err := os.ReadFile(name + extension)
		if err != nil {
			continue
		}
		data = bytes.ReplaceAll(data, []byte("$SITE"), []byte(s.url))
		w.Header().Set("Content-Type", mediaType)
		if strings.HasSuffix(name, ".txt") {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		_, _ = w.Write(data)
		return
	}
	http.NotFound(w, r)
}
