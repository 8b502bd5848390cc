package page

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
)

// checkHarmless fails if a page has something that runs, loads, or links where it should not.
func checkHarmless(tb testing.TB, s *shownAnswer) {
	tb.Helper()
	ids := map[string]bool{}
	for n := range s.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "object", "embed", "base", "frame", "img", "video", "audio", "style", "applet", "math", "noscript", "template", "image":
			tb.Errorf("there is a <%s>", n.Data)
		case "script":
			if !strings.HasPrefix(attr(n, "src"), "/ui/assets/") || n.FirstChild != nil {
				tb.Errorf("there is a script: %q", attr(n, "src"))
			}
		case "link":
			if !strings.HasPrefix(attr(n, "href"), "/ui/assets/") {
				tb.Errorf("it loads %q", attr(n, "href"))
			}
		case "iframe":
			if !strings.HasPrefix(attr(n, "sandbox"), "allow-popups") || !strings.HasPrefix(attr(n, "src"), "/ui/answers/") {
				tb.Errorf("there is a frame: %v", n.Attr)
			}
		}
		for _, a := range n.Attr {
			checkAttribute(tb, n, a)
			if a.Key == "id" {
				if ids[a.Val] {
					tb.Errorf("two elements have the id %q", a.Val)
				}
				ids[a.Val] = true
			}
		}
	}
}

func checkAttribute(tb testing.TB, n *html.Node, a html.Attribute) {
	tb.Helper()
	switch {
	case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc", a.Key == "srcset", a.Key == "ping", a.Key == "background", a.Key == "http-equiv":
		tb.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
	case a.Key == "src" || a.Key == "action" || a.Key == "formaction" || a.Key == "poster" || a.Key == "data":
		if !strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "//") {
			tb.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
		}
	case a.Key == "href" || a.Key == "xlink:href":
		local := strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//") || strings.HasPrefix(a.Val, "#")
		lower := strings.ToLower(a.Val)
		web := strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "mailto:")
		if !local && !web || strings.ContainsFunc(a.Val, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
			tb.Errorf("<%s> leads to %q", n.Data, a.Val)
		}
		if web && n.Data == "a" && !strings.Contains(attr(n, "rel"), "noopener") {
			tb.Errorf("the link to %q says who links", a.Val)
		}
	}
}

// hostile returns words that try to be more than text.
func hostile() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</template><script>alert(1)</script>`, `' onmouseover='alert(1)`,
		`</title></style></textarea></select></iframe><svg/onload=alert(1)>`, "`${alert(1)}`", `{{.}}`, `<!--`, `]]>`, `<a href="javascript:alert(1)">x</a>`,
		`javascript:alert(1)`, `JaVaScRiPt:alert(1)`, "java\tscript:alert(1)", " javascript:alert(1)", "\x01javascript:alert(1)", `data:text/html,<script>alert(1)</script>`,
		`vbscript:x`, `blob:https://a.example/1`, `file:///etc/passwd`, `//evil.example/x`, `https:evil.example`, `https://`, `http://[::1`, `https://a.example:99999/`,
		"https://a.example/\u202Egnp.exe", "https://аррӏе.com/", "https://xn--80ak6aa92e.com/", "https://user:secret@a.example/", `https://google.com@evil.example/`,
		"https://a.example/\"onclick=\"alert(1)", "https://a.example/'><script>", "https://a.example/#:~:text=x\"><b>", "https://a.example/%", "https://a\u2028.example/",
		"mailto:a@b.example", "\u202Eevil\u202C\u2066 title \u2069", "\xff\xfe\x00", "\x00<b>", strings.Repeat("wide", 5000), strings.Repeat("字", 3000), "https://" + strings.Repeat("a", 9000) + ".example/",
	}
}

func hostileCall(word, link string) *store.Call {
	text := "Words " + word + " and [more](" + link + ") here.\n\n![x](" + link + ")\n\n" + word
	s := ibid.Span{Start: 0, End: len(text)}
	return &store.Call{
		AnswerID: word, Run: word, Conversation: word, Prompt: []store.Message{{Role: "user", Text: word}},
		Answer: &ibid.Answer{
			Provider: word, Model: word, Text: text, Complete: true, Queries: []string{word}, Display: []ibid.Display{{Kind: word, HTML: word}},
			Error: &ibid.ProviderError{Code: word, Message: word}, Issues: []ibid.Issue{{Code: word, Detail: word}},
			Sources: []ibid.Source{
				{ID: word, Kind: ibid.SourceKind(word), Title: word, URL: link, Site: word, Filename: word, Authors: []string{word}, PublishedAt: word, License: word},
				{ID: "b", URL: link},
				{ID: "c", Site: link, Content: word},
				{ID: "d", Title: word},
			},
			Citations: []ibid.Citation{
				{
					ID: word, Span: s, Claim: s, Covers: ibid.CoversBlock, Anchor: ibid.AnchorUnverified, Origin: ibid.Origin(word),
					Refs:         []ibid.Ref{{Source: word, Quote: word, Locator: &ibid.Locator{Chunk: word, Pages: []int{3, 2}}}, {Source: "b", Quote: link}},
					Verification: &ibid.Verification{Status: word}, Support: &ibid.Support{Label: word, By: word},
				},
				{ID: "c-2", Span: ibid.Span{Start: 0, End: 5}, Claim: ibid.Span{Start: 0, End: 5}, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: "c"}, {Source: "d", Quote: word}}},
				{ID: word, Anchor: ibid.AnchorNone, Refs: []ibid.Ref{{Source: "nowhere" + word, Quote: word}}},
			},
		},
	}
}

func TestAnswerHostile(t *testing.T) {
	p := newViews(t)
	words := hostile()
	for i, word := range words {
		s := showAnswer(t, p, hostileCall(word, words[(i+3)%len(words)]))
		checkHarmless(t, s)
		s = showAnswer(t, p, hostileCall("word", word))
		checkHarmless(t, s)
		for _, n := range slices.Concat(s.all("p", "source-name"), s.all("a", "chip")) {
			if name := said(n); strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }) || len([]rune(name)) > maxShownName+20 {
				t.Errorf("%.40q: a source is called %.300q", word, name)
			}
		}
		if t.Failed() {
			t.Fatalf("the word was %.80q", word)
		}
	}
}

func FuzzAnswerPage(f *testing.F) {
	p := newViews(f)
	for _, word := range hostile() {
		f.Add(word, word)
	}
	f.Fuzz(func(t *testing.T, word, link string) {
		if len(word)+len(link) > 4<<10 {
			t.Skip("long")
		}
		checkHarmless(t, showAnswer(t, p, hostileCall(word, link)))
	})
}

func TestSourceNames(t *testing.T) {
	for _, test := range []struct {
		source              ibid.Source
		title, site, letter string
	}{
		{ibid.Source{}, "untitled", "", "U"},
		{ibid.Source{Title: " A \n title ", URL: "https://www.Nature.com/x"}, "A title", "nature.com", "N"},
		{ibid.Source{Filename: "report.pdf"}, "report.pdf", "report.pdf", "R"},
		{ibid.Source{URL: "https://bücher.example/"}, "bücher.example", "bücher.example", "B"},
		{ibid.Source{URL: "https://аррӏе.com/"}, "xn--80ak6aa92e.com", "xn--80ak6aa92e.com", "X"},
		{ibid.Source{Title: "\u202Eevil", URL: "https://google.com@evil.example/"}, "evil", "evil.example", "E"},
		{ibid.Source{Title: "wikipedia.org", Site: "wikipedia.org", URL: "https://vertexaisearch.cloud.google.com/grounding-api-redirect/x"}, "wikipedia.org", "wikipedia.org", "W"},
		{ibid.Source{URL: "https://a_b.example:8080/"}, "a_b.example", "a_b.example", "A"},
		{ibid.Source{URL: "https://[2001:db8::1]/"}, "2001:db8::1", "2001:db8::1", "2"},
		{ibid.Source{ID: "doc:0", URL: "not an address"}, "not an address", "", "N"},
		{ibid.Source{Title: "手引き", Site: "例え.jp"}, "手引き", "例え.jp", "例"},
	} {
		s := &test.source
		if sourceTitle(s) != test.title || siteOf(s) != test.site || letterOf(s) != test.letter {
			t.Errorf("%+v: title %q, site %q, letter %q; want %q, %q, %q", test.source, sourceTitle(s), siteOf(s), letterOf(s), test.title, test.site, test.letter)
		}
	}
}

func TestPassageURL(t *testing.T) {
	page, long := &ibid.Locator{Page: 7}, "One two three four five six seven eight nine ten eleven twelve thirteen fourteen."
	for _, test := range []struct {
		url, quote string
		at         *ibid.Locator
		want       string
	}{
		{"https://a.example/x", "The tide, it is said, turns - twice.", nil, "https://a.example/x#:~:text=The%20tide%2C%20it%20is%20said%2C%20turns%20%2D%20twice."},
		{"https://a.example/x", long, nil, "https://a.example/x#:~:text=One%20two%20three%20four%20five%20six,nine%20ten%20eleven%20twelve%20thirteen%20fourteen."},
		{"https://a.example/x", "A title\nand its text", nil, "https://a.example/x#:~:text=A%20title,its%20text"},
		{"https://a.example/x", "lost ... the longest piece of it […] end", nil, "https://a.example/x#:~:text=the%20longest%20piece%20of%20it"},
		{"https://a.example/x#part", "tides", nil, "https://a.example/x#part:~:text=tides"},
		{"https://a.example/x#:~:text=other", "tides", nil, "https://a.example/x#:~:text=tides"},
		{"https://a.example/x", "", nil, "https://a.example/x"},
		{"https://a.example/x", " … ", nil, "https://a.example/x"},
		{"https://a.example/x", strings.Repeat("潮", 200), nil, "https://a.example/x#:~:text=" + strings.Repeat("%E6%BD%AE", 24) + "," + strings.Repeat("%E6%BD%AE", 24)},
		{"https://a.example/x.pdf", "tides", page, "https://a.example/x.pdf#page=7"},
		{"https://a.example/x.PDF#top", "tides", page, "https://a.example/x.PDF#page=7"},
		{"https://a.example/x", "tides", page, "https://a.example/x#:~:text=tides"},
		{"https://me:secret@bücher.example:8443/ä", "", nil, "https://xn--bcher-kva.example:8443/%C3%A4"},
		{"javascript:alert(1)", "x", nil, ""},
		{"file:///etc/passwd", "x", page, ""},
		{"//a.example", "x", nil, ""},
		{"", "x", page, ""},
		{"https://" + strings.Repeat("a", maxAddress), "x", nil, ""},
	} {
		got := passageURL(&ibid.Source{URL: test.url}, &ibid.Ref{Quote: test.quote, Locator: test.at})
		if got != test.want {
			t.Errorf("%.60s with %.40q: %s, want %s", test.url, test.quote, got, test.want)
		}
	}
	if got := passageURL(&ibid.Source{URL: "https://a.example/download?id=1", Filename: "x.pdf"}, &ibid.Ref{Locator: page}); got != "https://a.example/download?id=1#page=7" {
		t.Errorf("a PDF by its file name: %s", got)
	}
}
