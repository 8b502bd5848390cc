package verify_test

import (
	"bytes"
	entities "html"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

// What pages of sites have before, between and after the words that are quoted from them.
const (
	furniture = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>TITLE | Daily Round</title>
<link rel="stylesheet" href="/s.css"><script>window.dataLayer=[]</script></head><body>
<a class="skip-link" href="#main">Skip to content</a><header><nav><ul><li><a href="/">Home</a></li><li><a href="/world">World</a></li>
<li><a href="/login">Log in</a></li><li><a href="/subscribe">Subscribe</a></li></ul></nav></header>
<div id="cookie-banner" role="dialog"><p>We and our 214 partners use cookies.</p><button>Accept all</button></div>
<main id="main"><article><h1>TITLE</h1><p class="byline">By the staff · 3 min read</p><div class="share"><button>Share</button></div>`
	advertisement = `<aside class="ad"><p>Advertisement</p><p>Shoes from 49.90</p></aside>`
	aTable        = `<table><caption>At a glance</caption><tr><th>Kind</th><th>Count</th></tr><tr><td>Read</td><td>1,204</td></tr></table>`
	footer        = `</article><aside class="related"><h2>Related</h2><ul><li><a href="/a">Ten walks for spring</a></li></ul></aside></main>
<footer><p>© Daily Round. <a href="/privacy">Privacy</a> <a href="/terms">Terms of use</a></p></footer></body></html>`
)

// sitePageOf returns a page with paragraphs and with what a site puts around them.
func sitePageOf(title string, paragraphs []string) string {
	const filler = "The staff went through what was sent to the desk in the morning, and in the afternoon through the rest of it. " +
		"Nobody kept count of the letters, and most of them were answered by hand within the week."
	var b strings.Builder
	paragraphs = append([]string{filler}, paragraphs...)
	b.WriteString(strings.ReplaceAll(furniture, "TITLE", entities.EscapeString(title)))
	for i, p := range paragraphs {
		b.WriteString("<p>" + strings.ReplaceAll(entities.EscapeString(p), "\n\n", "</p><p>") + "</p>")
		switch i % 3 {
		case 0:
			b.WriteString(advertisement)
		case 1:
			b.WriteString(aTable)
		}
	}
	b.WriteString(footer)
	return b.String()
}

// pdfOf returns a PDF of one page with these lines.
func pdfOf(lines []string) string {
	var text strings.Builder
	text.WriteString("BT /F1 11 Tf 14 TL 40 800 Td\n")
	escape := strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`, "‘", `\221`, "’", `\222`, "“", `\223`, "”", `\224`, "–", `\226`, "—", `\227`)
	for _, line := range lines {
		for words := strings.Fields(line); len(words) > 0; {
			n := min(len(words), 12)
			text.WriteString("(" + escape.Replace(strings.Join(words[:n], " ")) + ") Tj T*\n")
			words = words[n:]
		}
	}
	text.WriteString("ET")
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, object := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		"<< /Length " + strconv.Itoa(text.Len()) + " >>\nstream\n" + text.String() + "\nendstream",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
	} {
		at = append(at, b.Len())
		b.WriteString(strconv.Itoa(i+1) + " 0 obj\n" + object + "\nendobj\n")
	}
	from := b.Len()
	b.WriteString("xref\n0 6\n0000000000 65535 f \n")
	for _, n := range at {
		b.WriteString(strings.Repeat("0", 10-len(strconv.Itoa(n))) + strconv.Itoa(n) + " 00000 n \n")
	}
	b.WriteString("trailer << /Size 6 /Root 1 0 R >>\nstartxref\n" + strconv.Itoa(from) + "\n%%EOF\n")
	return b.String()
}

// The words of a page that a recorded quote of it shows: without ellipses, and with what it was cut in completed.
func wordsOfQuote(quote string) string {
	quote = entities.UnescapeString(strings.TrimSpace(quote))
	if _, after := snapshot.CutShort(quote); after {
		quote = strings.TrimRight(quote, ". …") + "s of it all."
	}
	quote = strings.NewReplacer("**", "", " ... ", "\n\n", " … ", "\n\n", " · ", "\n\n").Replace(quote)
	return strings.TrimLeft(quote, ". …")
}

// Recorded answers of each provider whose claims are what their sources say pass if their sources are pages of sites
// with the recorded passages: no claim is accused and no source fails, in a document as in a published manifest.
//
// Providers that record no passage cite pages that have the claim's own words.
func TestHonestAnswers(t *testing.T) {
	w := newWorld(t)
	w.advance(time.Since(w.now)) // its pages are read now
	for _, row := range testenv.Cases(t, "testdata/honest.txt", 1) {
		name := row[0]
		path := filepath.Join(testenv.Shared(t), "corpus", filepath.FromSlash(name))
		body := testenv.Must(os.ReadFile(path))(t)
		request, _ := os.ReadFile(strings.TrimSuffix(path, filepath.Ext(path)) + ".request.json") // if there is one
		a, err := ibid.Decode(body, &ibid.DecodeOptions{Request: request})
		testenv.OK(t, err)
		dir := "/" + strings.NewReplacer("/", "-", ".", "-").Replace(name)
		for i := range a.Sources {
			s := &a.Sources[i]
			var paragraphs []string
			for _, c := range a.Citations {
				for _, r := range c.Refs {
					switch span := c.Claim; {
					case r.Source != s.ID:
					case r.Quote != "":
						paragraphs = append(paragraphs, wordsOfQuote(r.Quote))
					case s.Content == "":
						claim := &ibid.Answer{Text: a.Text[span.Start:span.End]}
						paragraphs = append(paragraphs, claim.Render(&ibid.RenderOptions{Style: ibid.StylePlain}))
					}
				}
			}
			if s.Content != "" {
				paragraphs = append(paragraphs, wordsOfQuote(s.Content))
			}
			s.URL = w.origin + dir + "-" + strconv.Itoa(i)
			page, mediaType := sitePageOf(s.Title, paragraphs), "text/html; charset=utf-8"
			if len(row) > 1 && i == 0 {
				page, mediaType = pdfOf(paragraphs), "application/pdf"
			}
			w.page(strings.TrimPrefix(s.URL, w.origin), mediaType, page)
		}
		check := func(how string, r *verify.Report) {
			t.Helper()
			if r.State != verify.Valid && r.State != verify.Trusted {
				t.Errorf("%s, %s: %s, %d claims\n%s", name, how, r.State, len(r.Claims), text(r))
			}
			for i := range r.Claims {
				if c := &r.Claims[i]; c.Status.DeniesClaim() {
					t.Errorf("%s, %s: %q is accused: %s", name, how, c.Text, c.Detail)
				}
			}
			n := r.Findings.Claims
			t.Logf("%s, %s: %d supported, %d unjudged, %d unchecked", name, how, n.Supported, n.Unjudged, n.Unchecked)
		}
		check("document", testenv.Must((&verify.Verifier{Fetcher: w.fetch}).Answer(t.Context(), a))(t))

		builder := manifest.Builder{
			Self: w.origin + "/runs" + dir + "/cite", RunID: "r1", AgentID: w.host() + "/v1", Now: w.clock,
			Read: w.read, Excerpts: manifest.ExcerptsAll,
		}
		m := testenv.Must(builder.Build(t.Context(), a, nil))(t)
		s := testenv.Must(w.pub.Publish(t.Context(), "/runs"+dir+"/cite", m))(t)
		sum := s.Digest()
		w.handle(dir, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
			manifest.SetHeader(rw.Header(), manifest.Link, manifest.Announcement{
				URL: m.Sources[0].URL, Manifest: s.TargetURI, Digest: sum[:],
			})
			_, _ = rw.Write([]byte(a.Text))
		})
		check("published", testenv.Must(w.verifier().URL(t.Context(), w.origin+dir))(t))
	}
}
