// Agent answers questions from a page, and publishes with each answer a signed manifest of how it was reached.
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

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: agent ADDRESS PAGE")
	}
	l, err := net.Listen("tcp", os.Args[1])
	keys := keyring.Memory(nil) // keyring.Open keeps them in a directory
	if _, noKey := keys.New(nil); err != nil || noKey != nil {
		log.Fatal(err, noKey)
	}
	p := &manifest.Publisher{Origin: "http://" + l.Addr().String(), Level: 3, Keys: keys}
	agent, err := p.Middleware(http.HandlerFunc(ask))
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/ask", agent)
	http.Handle("/", p.Handler()) // manifests, keys, discovery
	log.Print("listening on ", p.Origin)
	log.Fatal(http.Serve(l, nil))
}

func ask(w http.ResponseWriter, r *http.Request) {
	run := trail.NewRecorder("", &trail.RecorderOptions{Question: r.FormValue("q")})
	var found *support.Attribution
	err := run.Do(r.Context(), &trail.StepOptions{Tool: "read"}, func(ctx context.Context, step *trail.Active) error {
		// Pages at 127.0.0.0/8 are only allowed for trying it out; by default, only public addresses are fetched.
		pages := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		defer pages.Close()
		page, err := pages.Fetch(ctx, &snapshot.FetchRequest{URL: os.Args[2]})
		if err != nil {
			return err
		}
		text, err := page.Text()
		if err != nil {
			return err
		}
		manifest.Read(ctx, page) // records that these bytes were read now
		doc := support.Document{Source: ibid.Source{Kind: ibid.Web, URL: page.URL, Title: text.Title}, Text: text.Content}
		// The answer is the page's first sentence; in a real agent, a model's.
		found, err = support.Attribute(ctx, &ibid.Answer{Text: strings.SplitAfter(text.Content, ". ")[0]}, []support.Document{doc}, nil)
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
