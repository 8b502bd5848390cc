package manifest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// answer is an agent: it reads a page, answers, and reports its citations.
func answer(w http.ResponseWriter, r *http.Request) {
	manifest.Read(r.Context(), &snapshot.Snapshot{
		URL: "https://birds.example/heron", MediaType: "text/html",
		Octets: []byte("<p>The grey heron stands up to 98 cm tall.</p>"),
	})
	a := &ibid.Answer{
		Text:    "Herons grow to 98 cm.",
		Sources: []ibid.Source{{ID: "1", Kind: ibid.Web, URL: "https://birds.example/heron"}},
	}
	_ = a.Cite(ibid.Span{Start: 0, End: len(a.Text)}, ibid.Ref{Source: "1", Quote: "stands up to 98 cm tall"})
	manifest.Cite(r.Context(), a, nil)
	_, _ = io.WriteString(w, a.Text)
}

// ask asks an agent and prints the parts of its header that are the same in every run.
func ask(p *manifest.Publisher) *manifest.Announcement {
	h, err := p.Middleware(http.HandlerFunc(answer))
	if err != nil {
		fmt.Println(err)
		return nil
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ask", nil))
	list, err := manifest.ParseHeader(w.Header().Values(manifest.HeaderName))
	if err != nil || len(list) != 1 {
		fmt.Println(list, err)
		return nil
	}
	fmt.Println(w.Body)
	fmt.Println(list[0].URL, strings.HasPrefix(list[0].Manifest, "https://agent.example/runs/"), len(list[0].Digest))
	return &list[0]
}

// fetch gets the manifest from its URL.
func fetch(p *manifest.Publisher, url string) (*manifest.Manifest, http.Header) {
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	m, err := manifest.Parse(w.Body.Bytes())
	if err != nil {
		fmt.Println(err)
	}
	return m, w.Header()
}

// Level 1: a header announces what was consulted.
func ExamplePublisher_Middleware_level1() {
	p := &manifest.Publisher{Origin: "https://agent.example", Level: 1}
	ask(p)
	// Output:
	// Herons grow to 98 cm.
	// https://birds.example/heron false 0
}

// Level 2: a manifest also records which claim rests on which words.
func ExamplePublisher_Middleware_level2() {
	p := &manifest.Publisher{Origin: "https://agent.example", Level: 2}
	m, _ := fetch(p, ask(p).Manifest)
	fmt.Println(m.Claims[0].Text)
	fmt.Println(m.Claims[0].Sources[0].Excerpt.Exact, *m.Claims[0].Sources[0].ExcerptOffset)
	// Output:
	// Herons grow to 98 cm.
	// https://birds.example/heron true 32
	// Herons grow to 98 cm.
	// stands up to 98 cm tall [15 38]
}

// Level 3: the manifest is also signed.
func ExamplePublisher_Middleware_level3() {
	keys := keyring.Memory(nil)
	if _, err := keys.New(nil); err != nil {
		fmt.Println(err)
	}
	p := &manifest.Publisher{Origin: "https://agent.example", Level: 3, Keys: keys}
	m, h := fetch(p, ask(p).Manifest)
	fmt.Println(m.AgentID, m.Sources[0].RetrievedBy)
	fmt.Println(strings.HasPrefix(h.Get("Signature-Input"), `manifest=("@status" "content-type" "content-digest" "@target-uri";req);created=`))
	// Output:
	// Herons grow to 98 cm.
	// https://birds.example/heron true 32
	// agent.example/v1 publisher
	// true
}

// A program serves its agent, and also manifests, keys and discovery.
func ExamplePublisher_Middleware() {
	keys := keyring.Memory(nil) // keyring.Open keeps them
	if _, err := keys.New(nil); err != nil {
		fmt.Println(err)
	}
	p := &manifest.Publisher{Origin: "https://agent.example", Level: 3, Keys: keys}
	ask, err := p.Middleware(http.HandlerFunc(answer))
	if err != nil {
		fmt.Println(err) // it cannot publish, for example without a key
	}
	http.Handle("/ask", ask)
	http.Handle("/", p.Handler()) // manifests, keys, discovery
}

func ExampleBuilder_Build() {
	a := &ibid.Answer{
		Text:    "Herons grow to 98 cm.",
		Sources: []ibid.Source{{ID: "1", Kind: ibid.DocumentKind, Content: "The grey heron stands up to 98 cm tall."}},
	}
	_ = a.Cite(ibid.Span{Start: 0, End: len(a.Text)}, ibid.Ref{Source: "1", Quote: "stands up to 98 cm"})
	b := &manifest.Builder{
		Self: "https://agent.example/runs/1/cite", RunID: "1", AgentID: "agent.example/v1",
		Excerpts: manifest.ExcerptsAll, // the document has no address
	}
	m, err := b.Build(context.Background(), a, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range m.Claims {
		for _, s := range c.Sources {
			fmt.Printf("%s [%d, %d)\n%s: %s %v\n", c.Text, c.Span[0], c.Span[1], s.URL, s.Excerpt.Exact, *s.ExcerptOffset)
		}
	}
	// Output:
	// Herons grow to 98 cm. [0, 21)
	// urn:ibid:src:1: stands up to 98 cm [15 33]
}
