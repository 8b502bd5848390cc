// Agent answers questions from a page, and publishes with each answer a signed manifest of how it came to it.
package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

func main() { // agent ADDRESS PAGE
	l, err := net.Listen("tcp", os.Args[1])
	keys := keyring.Memory(nil) // keyring.Open keeps them in a directory
	if _, noKey := keys.New(nil); err != nil || noKey != nil {
		log.Fatal(err, noKey)
	}
	p := &manifest.Publisher{Origin: "http://" + l.Addr().String(), Level: 3, Keys: keys}
	http.Handle("/ask", p.Middleware(http.HandlerFunc(ask)))
	http.Handle("/", p.Handler()) // manifests, keys, discovery
	log.Print("listening on ", p.Origin)
	log.Fatal(http.Serve(l, nil))
}

func ask(w http.ResponseWriter, r *http.Request) {
	run := trail.NewRecorder("", &trail.RecorderOptions{Question: r.FormValue("q")})
	var found *support.Attribution
	err := run.Do(r.Context(), &trail.StepOptions{Tool: "read"}, func(ctx context.Context, step *trail.Active) error {
		local := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} // to try it out: without it only public addresses are read
		pages := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: local})
		defer pages.Close()
		page, err := pages.Fetch(ctx, &snapshot.FetchRequest{URL: os.Args[2]})
		if err != nil {
			return err
		}
		text, err := page.Text()
		if err != nil {
			return err
		}
		manifest.Read(ctx, page)                        // these octets were read, now
		answer, _, _ := strings.Cut(text.Content, ". ") // a model's, in a real agent
		source := ibid.Source{Kind: ibid.Web, URL: page.URL, Title: text.Title}
		found, err = support.Attribute(ctx, &ibid.Answer{Text: answer + "."}, []support.Document{{Source: source, Text: text.Content}}, nil)
		step.Use(trail.Source{URL: page.URL, Title: text.Title, Content: text.Content})
		return err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	manifest.Cite(r.Context(), found.Answer, run.FinishAnswer(found.Answer))
	_, _ = io.WriteString(w, found.Answer.Text)
}
