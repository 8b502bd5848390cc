package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// agentMain is a program: agent [-level N] [-incidents INBOX] ADDRESSFILE FILE SITE. It answers POST and GET of /ask
// with the text of an answer document, whose sources it declares. $SITE in the file is the address of the pages that it
// cites. Incidents that it receives go to the file INBOX.
func agentMain() {
	flags := flag.NewFlagSet("agent", flag.ExitOnError)
	level := flags.Int("level", 3, "the level of publishing")
	inbox := flags.String("incidents", "", "the file for incidents it receives")
	_ = flags.Parse(os.Args[1:])
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = serveAgent(l, *level, *inbox, flags.Args())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func serveAgent(l net.Listener, level int, inbox string, args []string) error {
	addressFile, answer, pages := args[0], args[1], args[2]
	ring := keyring.Memory(nil)
	if _, err := ring.New(nil); err != nil {
		return err
	}
	fetcher := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	p := &manifest.Publisher{Origin: "http://" + l.Addr().String(), Level: level, Keys: ring}
	if inbox != "" {
		p.IncidentEndpoint = p.Origin + "/incidents"
	}
	ask := func(w http.ResponseWriter, r *http.Request) {
		data, err := os.ReadFile(answer)
		a := &ibid.Answer{}
		if err == nil {
			err = json.Unmarshal(bytes.ReplaceAll(data, []byte("$SITE"), []byte(pages)), a)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for i := range a.Sources { // pages that do not exist are cited as well
			if snap, err := fetcher.Fetch(r.Context(), &snapshot.FetchRequest{URL: a.Sources[i].URL}); err == nil {
				manifest.Read(r.Context(), snap)
			}
		}
		manifest.Cite(r.Context(), a, nil)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, a.Text)
	}
	mux := http.NewServeMux()
	mux.Handle("/", p.Handler())
	mux.HandleFunc("POST /incidents", func(w http.ResponseWriter, r *http.Request) {
		if err := keepIncident(inbox, r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	asked, err := p.Middleware(http.HandlerFunc(ask))
	if err != nil {
		return err
	}
	mux.Handle("/ask", asked)
	if err := file.Replace(filepath.Clean(addressFile), []byte(p.Origin+"\n"), 0o644); err != nil {
		return err
	}
	return http.Serve(l, mux)
}

// keepIncident appends a request to a file: a line with what is signed and the signature, and one with the incident.
func keepIncident(inbox string, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(inbox, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	h := r.Header
	_, err = fmt.Fprintf(f, "%s %s %s %s %s %s\n%s\n", r.Method, r.URL.Path, h.Get("Content-Type"), h.Get("Content-Digest"),
		h.Get("Signature-Input"), h.Get("Signature"), body)
	return errors.Join(err, f.Close())
}

// An interrupted run keeps the previous JUnit report. The new report has the same permissions.
func TestJUnitReplaces(t *testing.T) {
	name := filepath.Join(t.TempDir(), "report.xml")
	testenv.OK(t, os.WriteFile(name, []byte("old"), 0o640))
	v := &verifying{flags: &verifyFlags{junit: name}}
	f := testenv.Must(v.createJUnit())(t)
	if b := testenv.Must(os.ReadFile(name))(t); string(b) != "old" {
		t.Errorf("while it is verified: %q", b)
	}
	testenv.OK(t, v.writeJUnit(f))
	b, info := testenv.Must(os.ReadFile(name))(t), testenv.Must(os.Stat(name))(t)
	if !strings.Contains(string(b), "<testsuites") || info.Mode().Perm() != 0o640 {
		t.Errorf("afterwards: %q, %v", b, info.Mode())
	}
}
