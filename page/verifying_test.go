package page_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/store"
)

// A verification that takes longer than a moment shows how far it is and what it found, and loads itself again, with
// scripts or without. It is one verification, however often it is looked at.
func TestVerificationProgress(t *testing.T) {
	w := newProofWorld(t, nil)
	reads, slow := make(chan string, 100), make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		reads <- r.URL.Path
		if r.URL.Path == "/slow" {
			<-slow
		}
		_, _ = io.WriteString(rw, "<p>The old mill closed its gates in the autumn of 1989, after two centuries of work.")
	}))
	t.Cleanup(site.Close)
	call := millCall(0, store.DefaultTenant)
	call.Answer.Sources[0].URL, call.Answer.Sources[1].URL = site.URL+"/mill", site.URL+"/slow"
	call.Answer.Citations[0].Refs[0].Quote = "The old mill closed its gates in the autumn of 1989"
	w.token = testenv.Must(w.store.NewToken(t.Context(), &store.Token{
		Tenant: store.DefaultTenant, Name: "t", Scopes: []string{store.ScopeRead, store.ScopeVerify},
	}))(t)
	must(t, w.store.Put(t.Context(), []*store.Call{call}))
	path := "/ui/answers/" + call.AnswerID + "/verification"
	testenv.Until(t, "the first source is compared", func() bool {
		got := w.get(t, "GET", path)
		checkHTML(t, got.body)
		if got.StatusCode != http.StatusOK || got.Header.Get("Refresh") != "1" || !strings.Contains(got.body, `role="status"`) {
			t.Fatalf("%d %v %s", got.StatusCode, got.Header, got.body)
		}
		return strings.Contains(got.body, "Comparing with the sources: 1 of 2 …") && strings.Contains(got.body, "1 quote found")
	})
	close(slow)
	var got *shownPage
	testenv.Until(t, "the report is there", func() bool {
		got = w.get(t, "GET", path)
		return got.Header.Get("Refresh") == ""
	})
	if !strings.Contains(got.body, "What was checked") || strings.Contains(got.body, "verify-running") {
		t.Error(got.body)
	}
	pages := 0
	for len(reads) > 0 {
		if at := <-reads; at == "/mill" || at == "/slow" {
			pages++
		}
	}
	if pages != 2 {
		t.Errorf("the sources were read %d times", pages)
	}
}

// BenchmarkVerification measures the page that verifies an answer of a thousand citations of 250 sources, with the
// results for the sources known.
func BenchmarkVerification(b *testing.B) {
	w := newProofWorld(b, nil)
	const sources, citations = 250, 1000
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "<p>The old mill %s closed its gates in the autumn of 1989, after two centuries of work.<p>%s",
			strings.TrimPrefix(r.URL.Path, "/"), strings.Repeat("The river rises in spring when the snow of the valleys melts. ", 40))
	}))
	b.Cleanup(site.Close)
	call := millCall(0, store.DefaultTenant)
	a := call.Answer
	a.Sources, a.Citations, a.Text, a.Parts = nil, nil, "", nil
	for i := range sources {
		a.Sources = append(a.Sources, ibid.Source{
			ID: fmt.Sprint("s", i), Kind: ibid.Web, Title: fmt.Sprint("Mill ", i), URL: fmt.Sprint(site.URL, "/", i),
		})
	}
	for i := range citations {
		s := ibid.Span{Start: len(a.Text)}
		a.Text += fmt.Sprintf("The old mill %d closed its gates in the autumn of 1989 in place %d.", i%sources, i)
		s.End = len(a.Text)
		a.Text += "\n\n"
		a.Citations = append(a.Citations, ibid.Citation{
			ID: fmt.Sprintf("c-%012x", i), Span: s, Claim: s, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact,
			Origin: ibid.OriginProvider, Refs: []ibid.Ref{{
				Source: fmt.Sprint("s", i%sources),
				Quote:  fmt.Sprintf("The old mill %d closed its gates in the autumn of 1989, after two centuries", i%sources),
			}},
		})
	}
	must(b, w.store.Put(b.Context(), []*store.Call{call}))
	w.token = testenv.Must(w.store.NewToken(b.Context(), &store.Token{
		Tenant: store.DefaultTenant, Name: "t", Scopes: []string{store.ScopeRead, store.ScopeVerify},
	}))(b)
	show := func() {
		for {
			got := w.get(b, "GET", "/ui/answers/"+call.AnswerID+"/verification")
			if got.StatusCode != http.StatusOK {
				b.Fatal(got.StatusCode, got.body)
			}
			if got.Header.Get("Refresh") == "" {
				return
			}
		}
	}
	show()
	began := page.UsedCPU(b)
	for b.Loop() {
		show()
	}
	b.ReportMetric(float64((page.UsedCPU(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op")
}
