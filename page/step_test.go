package page_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// tied is a sentence with what it is tied to.
type tied struct{ Steps, Passages, Text string }

func TestRun(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	res := w.get(t, "/ui/runs/herons")
	if res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	root := sound(t, res.body)
	var sentences []tied
	for _, s := range every(root, "sentence") {
		sentences = append(sentences, tied{attribute(s, "data-steps"), attribute(s, "data-passages"), wordsOf(s)})
	}
	if answer := every(root, "run-answer"); strings.Contains(wordsOf(answer[0]), "#") {
		t.Errorf("the answer is not rendered: %s", wordsOf(answer[0]))
	}
	var ties []string
	for _, n := range every(root, "tie") {
		if attribute(n, "data-choose") != "step" && attribute(n, "data-choose") != "passage" {
			ties = append(ties, wordsOf(n))
		}
	}
	testenv.Equal(t, "what stands behind sentences", []string{
		"Sentence 2 rests on step 2", "Sentence 3 rests on step 3", "Sentence 4 rests on step 3", "Sentence 5 rests on step 4", "no source", "no source", "no source",
		"Sentence 8 rests on step 5",
	}, ties)
	want := []tied{
		{"", "", "Herons"},
		{"2", "1", "Grey herons nest in colonies high up in tall trees, often 25 m above the ground."},
		{"3", "1", "They lay three to five eggs in early spring. [heron_book]"},
		{"3", "1", "Both parents sit on the eggs for about 26 days."},
		{"4", "2", "Young herons can fly when they are 50 days old."},
		{"", "", "Nobody knows what they think of it all, however long one watches them."},
		{"", "", "The oldest colony in the county has stood since 1866."},
		{"5", "", "It is near the mill. [step 5]"},
	}
	testenv.Equal(t, "sentences", want, sentences)
	if got := len(every(root, "timeline")); got != 1 {
		t.Fatalf("%d timelines", got)
	}
	steps := every(root, "step")
	for i, words := range [][]string{
		{"Which questions have to be answered?", "plan", "400 ms", "no source", "No sources used."},
		{"Where do grey herons nest?", "1.2 s", "confidence 0.92", "The Heron Book", "0.93, given by the retriever", "retrieved, not used", "sentence 2"},
		{"How many eggs do grey herons lay", "builds on step 1", "0.88"},
		{"A run of its own: When can young herons fly?", "heron fledging", "Ringing Report 1998", "50 days"},
		{"Failed: the index of maps timed out", "No sources used."},
		{"Put the answer together", "model", "builds on steps 2, 3, 4, 5", "Reasoning"},
	} {
		if i >= len(steps) {
			t.Fatalf("%d steps", len(steps))
		}
		for _, word := range words {
			if got := wordsOf(steps[i]); !strings.Contains(got, word) {
				t.Errorf("step %d lacks %q: %s", i+1, word, got)
			}
		}
	}
	if got := wordsOfAll(every(root, "document-head")); !slices.Equal(got, []string{
		"[1] The Heron Book primary source", "[2] Ringing Report 1998 primary source", "[3] A Garden of Birds", "[4] Cranes of the North",
	}) {
		t.Errorf("documents: %q", got)
	}
	sides := every(root, "conflict-sides")
	if len(sides) != 1 || !strings.Contains(wordsOf(sides[0]), "often 25 m above") {
		t.Errorf("conflicts: %q", wordsOfAll(sides))
	}
	var marked []string
	for n := range sides[0].Descendants() {
		if n.Data == "mark" {
			marked = append(marked, wordsOf(n))
		}
	}
	testenv.Equal(t, "the values that differ", []string{"25 m", "12 m"}, marked)
	var nodes []string
	for _, n := range every(root, "node") {
		nodes = append(nodes, attribute(n, "href"))
	}
	testenv.Equal(t, "the drawing leads to", []string{"#step-1", "#step-2", "#step-3", "#step-4", "#step-5", "#step-6"}, nodes)
}

// Without scripts the links do the same: they mark what belongs to the choice.
func TestRunChosen(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	for _, c := range []struct {
		query, says     string
		chosen, related []string
	}{
		{
			"?sentence=2", "Sentence 2 rests on step 2: Where do grey herons nest?", []string{"sentence-2"}, []string{"passage-1", "step-2"},
		},
		{
			"?step=4", "What rests on step 4 Young herons can fly", []string{"step-4"}, []string{"passage-2", "sentence-5"},
		},
		{
			"?passage=1", "What rests on this passage Grey herons nest", []string{"passage-1"}, []string{"sentence-2", "sentence-3", "sentence-4", "step-2", "step-3"},
		},
		{"?sentence=99", "", nil, nil},
		{"?step=x&passage=-1", "Sentence 2 rests on step 2", nil, []string{"passage-1", "sentence-2", "step-2"}},
	} {
		res := w.get(t, "/ui/runs/herons"+c.query)
		root := sound(t, res.body)
		ids := func(class string) []string {
			var all []string
			for _, n := range every(root, class) {
				if id := attribute(n, "id"); id != "" {
					all = append(all, id)
				}
			}
			slices.Sort(all)
			return all
		}
		testenv.Equal(t, fmt.Sprintf("%s: chosen", c.query), c.chosen, ids("chosen"))
		testenv.Equal(t, fmt.Sprintf("%s: related", c.query), c.related, ids("related"))
		for _, n := range every(root, "node") {
			id, classes := "step-"+attribute(n, "data-node"), strings.Fields(attribute(n, "class"))
			if slices.Contains(classes, "related") != slices.Contains(c.related, id) || slices.Contains(classes, "chosen") != slices.Contains(c.chosen, id) {
				t.Errorf("%s: the drawing marks %s as %v", c.query, id, classes)
			}
		}
		if why := seen(root, "why"); !strings.Contains(why, c.says) {
			t.Errorf("%s: it says %q", c.query, why)
		}
	}
	why := seen(sound(t, w.get(t, "/ui/runs/herons?sentence=2").body), "why")
	for _, word := range []string{"inferred", "The checker lexical@2 finds it close to the sentence: 0.", "is enough", "The Heron Book"} {
		if !strings.Contains(why, word) {
			t.Errorf("why: %q lacks %q", why, word)
		}
	}
	if why := seen(sound(t, w.get(t, "/ui/runs/herons?sentence=3").body), "why"); !strings.Contains(why, "A mark in the text names it.") {
		t.Errorf("why: %q", why)
	}
}

// seen returns the visible text of the element with a class.
func seen(root *html.Node, class string) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		if slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "hidden" }) {
			return
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	for _, n := range every(root, class) {
		walk(n)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestRuns(t *testing.T) {
	w := newWorld(t, nil)
	if res := w.get(t, "/ui/runs"); res.StatusCode != 200 || !strings.Contains(res.body, "No runs are stored here.") {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	w.herons(t)
	w.record(t, "open/run ?", &trail.Trail{Steps: []trail.Step{{Number: 1, Tool: "x"}}}, false)
	for i := range 25 {
		w.record(t, "r"+string(rune('a'+i)), &trail.Trail{Question: "Q", Answer: "Herons nest in trees."}, true)
	}
	first := w.get(t, "/ui/runs")
	root := sound(t, first.body)
	names := every(root, "run-name")
	if len(names) != 25 {
		t.Fatalf("%d runs", len(names))
	}
	at := strings.Index(first.body, `/ui/runs?cursor=`)
	if at < 0 {
		t.Fatal("no second page")
	}
	next, _, _ := strings.Cut(first.body[at:], `"`)
	second := w.get(t, html.UnescapeString(next))
	rest := every(sound(t, second.body), "run-name")
	if diff := cmp.Diff([]string{"Run open/run ?", "How high do grey herons nest, and how many eggs do they lay?"}, wordsOfAll(rest)); diff != "" {
		t.Fatalf("the second page (-want +got):\n%s", diff)
	}
	for _, want := range []string{"6 steps", "3 sources", "43 % of its sentences without a source", "tutor", "not finished"} {
		if !strings.Contains(second.body, want) {
			t.Errorf("the second page lacks %q", want)
		}
	}
	for _, n := range rest {
		if res := w.get(t, attribute(n, "href")); res.StatusCode != 200 {
			t.Errorf("%s: %d", attribute(n, "href"), res.StatusCode)
		}
	}
}

func TestRunLinear(t *testing.T) {
	w := newWorld(t, nil)
	w.record(t, "line", mill(3, 1), true)
	root := sound(t, w.get(t, "/ui/runs/line").body)
	if got := every(root, "graph"); len(got) != 0 {
		t.Errorf("a drawing of steps that follow each other")
	}
	if got := every(root, "step"); len(got) != 3 {
		t.Errorf("%d steps", len(got))
	}
}

// What people and programs say is shown as text everywhere.
func TestRunHostile(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)></title></svg>{{.}}` + "\u202e\x00"
	w := newWorld(t, nil)
	url := "javascript:alert(3)"
	steps := []trail.Step{
		{Number: 1, Tool: evil, Question: evil, Answer: evil, Reasoning: evil, After: []int{}, Sources: []trail.Source{
			{DocumentID: evil, Title: evil, URL: url, Content: "It is 25 m high. " + evil, Used: true}, {DocumentID: "b", URL: "https://a.example/" + evil, Excerpt: evil, Used: true},
		}},
		{Number: 2, Error: evil, After: []int{}, Nested: &trail.Trail{Question: evil, Agent: evil, Answer: evil, Steps: []trail.Step{{Number: 1, Tool: evil, Question: evil, Error: evil}}}},
		{Number: 3, Question: evil, After: []int{1, 2}},
	}
	w.record(t, evil[:40], &trail.Trail{Question: evil, Agent: evil, Strategy: evil, Parent: evil, Answer: evil + " It is 25 m high.", Steps: steps}, false)
	list := sound(t, w.get(t, "/ui/runs").body)
	res := w.get(t, attribute(every(list, "run-name")[0], "href"))
	if res.StatusCode != 200 {
		t.Fatal(res.StatusCode)
	}
	root := sound(t, res.body)
	for n := range root.Descendants() {
		if n.Data == "img" || n.Data == "iframe" {
			t.Errorf("<%s>", n.Data)
		}
	}
	if got := len(every(root, "step")); got != 3 {
		t.Errorf("%d steps", got)
	}
}

// A run of a thousand steps is shown in pages, and says so.
func TestRunHuge(t *testing.T) {
	w := newWorld(t, nil)
	run := mill(1000, 3)
	run.Steps[0] = mill(1, 15).Steps[0]
	w.record(t, "mill", run, true)
	res := w.get(t, "/ui/runs/mill")
	root := sound(t, res.body)
	if got := len(every(root, "step")); got != 50 {
		t.Errorf("%d steps", got)
	}
	for _, want := range []string{"Steps 1 to 50 of 1000", "And 3 more passages.", "more sources are not shown", `?from=51`} {
		if !strings.Contains(res.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if len(res.body) > 1<<20 {
		t.Errorf("%d bytes", len(res.body))
	}
	for _, query := range []string{"?step=900", "?from=880"} {
		res := w.get(t, "/ui/runs/mill"+query)
		if sound(t, res.body); !strings.Contains(res.body, `id="step-900"`) || !strings.Contains(res.body, "Steps 851 to 900 of 1000") {
			t.Errorf("%s does not show step 900", query)
		}
	}
	if res := w.get(t, "/ui/runs/mill?from=99999"); !strings.Contains(res.body, "Steps 951 to 1000 of 1000") {
		t.Error("too high a number is not the last page")
	}
}

// A passage names each sentence that rests on it, even one that rests on more passages than are shown with it.
func TestRunManyPassages(t *testing.T) {
	w := newWorld(t, nil)
	run := mill(1, 15)
	run.Answer = "The answer 1 is 0"
	for i := range 15 {
		run.Answer += fmt.Sprintf(" [doc%d]", i)
	}
	w.record(t, "mill", run, true)
	res := w.get(t, "/ui/runs/mill")
	if !strings.Contains(res.body, "And 3 more passages.") || strings.Contains(res.body, ">no sentence rests on it<") {
		t.Errorf("%d passages name no sentence", strings.Count(res.body, ">no sentence rests on it<"))
	}
}

func TestRunExport(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	for as, want := range map[string]string{"json": `"source_summary"`, "prov": `"wasDerivedFrom"`, "otlp": `"resourceSpans"`} {
		res := w.get(t, "/ui/runs/herons/export?as="+as)
		if res.StatusCode != 200 || !json.Valid([]byte(res.body)) || !strings.Contains(res.body, want) || !strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d %v %.200s", as, res.StatusCode, res.Header, res.body)
		}
	}
	if res := w.get(t, "/ui/runs/herons/export?as=pdf"); res.StatusCode != 400 {
		t.Errorf("pdf: %d", res.StatusCode)
	}
	if res := w.get(t, "/ui/runs/none/export"); res.StatusCode != 404 {
		t.Errorf("none: %d", res.StatusCode)
	}
}

// Nothing of one tenant is found by another.
func TestStepTenants(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	w.book(t)
	token := func(tenant string) string {
		secret := testenv.Must(w.Store.NewToken(t.Context(), &store.Token{Tenant: tenant, Name: tenant, Scopes: []string{store.ScopeRead}}))(t)
		return "Bearer " + secret
	}
	mine, theirs := token(store.DefaultTenant), token("others")
	page := testenv.Must(w.Store.Versions(t.Context(), store.DefaultTenant, heronBook, nil))(t)
	for _, path := range []string{
		"/ui/runs/herons", "/ui/runs/herons/export", "/ui/answers/ans_book/sources/1", "/ui/copies/" + page.Items[0].Hash,
	} {
		if res := w.get(t, path, "Authorization", mine); res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
		if res := w.get(t, path, "Authorization", theirs); res.StatusCode != 404 {
			t.Errorf("%s of another tenant: %d", path, res.StatusCode)
		}
		if res := w.get(t, path); res.StatusCode != 303 {
			t.Errorf("%s without a token: %d", path, res.StatusCode)
		}
		head := w.do(t, "HEAD", path, "", "Authorization", mine)
		if head.StatusCode != 200 || head.body != "" || head.Header.Get("Content-Length") == "0" {
			t.Errorf("HEAD %s: %d %v %q", path, head.StatusCode, head.Header, head.body)
		}
	}
	if res := w.get(t, "/ui/runs", "Authorization", theirs); !strings.Contains(res.body, "No runs are stored here") {
		t.Error("another tenant's runs are listed")
	}
}

func TestPanel(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	w.book(t)
	res := w.get(t, "/ui/answers/ans_book/sources/1")
	root := sound(t, res.body)
	if diff := cmp.Diff([]string{
		"Herons are patient. They nest high up in tall trees, often 25 m above the ground, and both parents sit on the eggs for about 25 days. ",
		"Herons are patient. They nest high up in tall trees, often 25 m above the ground, and both parents sit on the eggs for about 26 days. ",
	}, cutAt(wordsOfAll(every(root, "excerpt")), "Nobody")); diff != "" {
		t.Errorf("excerpts (-want +got):\n%s", diff)
	}
	for i, text := range wordsOfAll(every(root, "excerpt")) {
		if n := len([]rune(text)); n > 300+300+60+60 {
			t.Errorf("excerpt %d has %d characters", i, n)
		}
	}
	var marked []string
	for n := range root.Descendants() {
		if n.Data == "mark" || n.Data == "del" || n.Data == "ins" {
			marked = append(marked, n.Data+" "+wordsOf(n))
		}
	}
	if diff := cmp.Diff([]string{
		"mark high up in tall trees, often 25 m above the ground", "mark 26", "mark 25", "mark both parents sit on the eggs for about 26 days",
	}, marked); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
	text := wordsOf(root)
	for _, want := range []string{
		"From the copy that was read on 1 July 2026.", "From the copy that was read on 3 May 2026.", "The latest copy of the source does not have it.", "changed",
		"has 1 of 2 quotes", "has all 2 quotes", "As sent" + heronBook + "?utm_source=x", "Both parents sit on the eggs for about 26 days.", "used by steps 2, 3 of",
		"All answers that use it",
	} {
		if !strings.Contains(strings.ReplaceAll(text, "As sent ", "As sent"), want) {
			t.Errorf("the panel lacks %q", want)
		}
	}
	// As a fragment it is the same, without the page around it.
	part := w.get(t, "/ui/answers/ans_book/sources/1?fragment=1")
	if !strings.HasPrefix(part.body, `<section class="source-panel"`) || strings.Contains(part.body, "<html") {
		t.Errorf("fragment: %.200s", part.body)
	}
	// Octets are sent unchanged.
	copied := w.get(t, attribute(linkTo(root, "/ui/copies/"), "href"))
	if copied.StatusCode != 200 || copied.Header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(copied.Header.Get("Content-Disposition"), "attachment") ||
		!strings.Contains(copied.body, "25 days") || copied.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("copy: %d %v", copied.StatusCode, copied.Header)
	}
}

// A quote that is not found exactly is not marked, and the panel says so.
func TestPanelNotFound(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	w.book(t)
	root := sound(t, w.get(t, "/ui/answers/ans_book/sources/2").body)
	quotes := every(root, "panel-quote")
	if len(quotes) != 2 {
		t.Fatalf("%d quotes", len(quotes))
	}
	if got := wordsOf(quotes[0]); !strings.Contains(got, "A heron does not sing, it croaks.") || !strings.Contains(got, "From what the provider sent of it, p. 7.") {
		t.Errorf("%q", got)
	}
	if got := wordsOf(quotes[1]); !strings.Contains(got, "These words were not found exactly in what is kept of the source, so nothing is marked.") {
		t.Errorf("%q", got)
	}
	for n := range quotes[1].Descendants() {
		if n.Data == "mark" {
			t.Errorf("marked: %q", wordsOf(n))
		}
	}
	for _, path := range []string{"/ui/answers/ans_book/sources/3", "/ui/answers/ans_book/sources/0", "/ui/answers/ans_book/sources/x", "/ui/answers/ans_none/sources/1", "/ui/copies/sha256:" + strings.Repeat("0", 64), "/ui/copies/x"} {
		if res := w.get(t, path); res.StatusCode != 404 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

// A version whose octets were deleted, and one without readable text, are listed as such.
func TestPanelUnreadable(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	w.book(t)
	w.keep(t, "%PDF-1.7 nothing of it is one\x00\x01\x02", time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC))
	root := sound(t, w.get(t, "/ui/answers/ans_book/sources/1").body)
	if got := wordsOfAll(every(root, "versions")); len(got) != 1 || !strings.Contains(got[0], snapshot.Hash([]byte("%PDF-1.7 nothing of it is one\x00\x01\x02"))[:18]) {
		t.Errorf("versions: %q", got)
	}
	if got := wordsOfAll(every(root, "excerpt")); len(got) != 2 {
		t.Errorf("excerpts: %q", got)
	}
}

// A reader who rates a source returns to its step, and sees the rating.
func TestRate(t *testing.T) {
	w := newWorld(t, nil)
	w.herons(t)
	root := sound(t, w.get(t, "/ui/runs/herons").body)
	form := every(root, "rate-source")[0]
	fields := url.Values{"relevance": {"0.5"}}
	for n := range form.Descendants() {
		if n.Data == "input" {
			fields.Set(attribute(n, "name"), attribute(n, "value"))
		}
	}
	res := w.post(t, "/ui/feedback", fields)
	if res.StatusCode != 303 || res.Header.Get("Location") != "/ui/runs/herons#step-2" {
		t.Fatalf("%d %v %s", res.StatusCode, res.Header, res.body)
	}
	after := every(sound(t, w.get(t, "/ui/runs/herons").body), "step")
	if got := wordsOf(after[1]); !strings.Contains(got, "rated 0.50") {
		t.Errorf("%q", got)
	}
	if got := wordsOf(after[2]); strings.Contains(got, "rated") {
		t.Errorf("another step: %q", got)
	}
}

// The page of an ongoing run learns of additions, including those between its loading and its listening.
func TestRunLive(t *testing.T) {
	w := newWorld(t, nil)
	w.record(t, "open", mill(2, 1), false)
	for _, late := range []bool{false, true} {
		address := attribute(every(sound(t, w.get(t, "/ui/runs/open").body), "run-open")[0], "data-run-live")
		if late {
			w.record(t, "open", mill(4, 1), true)
		}
		asked := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+address, http.NoBody))(t)
		res, err := http.DefaultTransport.RoundTrip(asked)
		testenv.OK(t, err)
		defer res.Body.Close()
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(res.Status, res.Header)
		}
		if !late {
			w.record(t, "open", mill(3, 1), false)
			w.Bus.Wake()
		}
		var got []string
		readEvents(res.Body, func(e sent) bool {
			got = append(got, e.name)
			return true
		})
		testenv.Equal(t, fmt.Sprintf("late %t", late), []string{"changed"}, got)
	}
	if body := w.get(t, "/ui/runs/open").body; strings.Contains(body, "data-run-live") {
		t.Error("a run that has ended is listened to")
	}
}

// cutAt splits texts where a word begins.
func cutAt(texts []string, word string) []string {
	for i, text := range texts {
		texts[i], _, _ = strings.Cut(text, word)
	}
	return texts
}

func linkTo(root *html.Node, prefix string) *html.Node {
	for n := range root.Descendants() {
		if n.Data == "a" && strings.HasPrefix(attribute(n, "href"), prefix) {
			return n
		}
	}
	return &html.Node{}
}

// The results of reading the sources of a recorded run again are shown with its passages, on its page and in its
// summary, and so are the results of checking the citations of a captured answer.
func TestRunChecked(t *testing.T) {
	const said, page = "Grey herons lay three to five eggs in early spring.", "<p>Grey herons lay three to five eggs in early spring.</p>"
	var words atomic.Value
	words.Store(page)
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, words.Load().(string))
	}))
	t.Cleanup(source.Close)
	w := &world{servertest.Start(t, &servertest.Setup{Providers: []string{"openai"}, Configure: func(c *server.Config) {
		c.Publish.Recheck = server.Recheck{Every: time.Second}
		c.Publish.Allow = server.Networks{netip.MustParsePrefix("127.0.0.0/8")}
	}})}
	body := testenv.Must(json.Marshal(map[string]any{
		"run_id": "eggs", "final_answer": said, "reasoning_steps": []any{map[string]any{
			"tool": "search", "source_attributions": []any{map[string]any{"document_id": "book", "url": source.URL + "/eggs", "content": said}},
		}},
	}))(t)
	if res := w.do(t, "POST", "/v1/runs", string(body), "Content-Type", "application/json"); res.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	shows := func(status, badge string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			body := w.get(t, "/v1/runs/eggs/summary").body
			if strings.Contains(body, `"verification":{"status":"`+status+`"`) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("it is not %s: %s", status, body)
			}
		}
		root := sound(t, w.get(t, "/ui/runs/eggs?sentence=1").body)
		for _, where := range []string{"passage", "why"} {
			if words := wordsOf(every(root, where)[0]); !strings.Contains(words, badge) {
				t.Errorf("%s does not say %q: %s", where, badge, words)
			}
		}
	}
	shows("verified", "quote found")
	words.Store(strings.Replace(page, "five", "nine", 1))
	shows("excerpt-altered", "changed")
	incidents := every(sound(t, w.get(t, "/ui/incidents").body), "list")
	if len(incidents) != 1 {
		t.Fatalf("%d lists of incidents", len(incidents))
	}
	links := 0
	for n := range incidents[0].Descendants() {
		if href := attribute(n, "href"); strings.HasPrefix(href, "/ui/incidents/") {
			links++
			one := w.get(t, href).body
			if !strings.Contains(one, `href="/ui/runs/eggs"`) || !strings.Contains(wordsOf(sound(t, one)), "five") {
				t.Errorf("the incident does not link to the run, or lacks its words: %s", one)
			}
		}
	}
	if links != 1 {
		t.Errorf("%d incidents", links)
	}

	captured := newWorld(t, nil)
	captured.herons(t)
	captured.book(t)
	var got []string
	for _, n := range every(sound(t, captured.get(t, "/ui/runs/herons").body), "passage") {
		for _, b := range every(n, "badge") {
			got = append(got, wordsOf(n)[:20]+": "+wordsOf(b))
		}
	}
	// The agent recorded a longer passage, which contains these words.
	testenv.Equal(t, "of captured citations", []string{"Grey herons nest in : changed", "both parents sit on : changed"}, got)
}

// The summary line of a run's answer is above it, as on the answer's own page, and its parts filter for what they
// count.
func TestRunTrust(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "q", "The mill of Tonbo closed in 1967. The island in the lake belongs to the northern parish.", "https://a.example/")
	c.Answer.Citations[0].Refs[0].Quote = "The mill of Tonbo closed in 1962."
	w.put(t, c)
	root := sound(t, w.get(t, "/ui/runs/"+c.Run+"?show=differs").body)
	var parts []string
	for _, n := range every(root, "trust-part") {
		parts = append(parts, wordsOf(n)+" "+attribute(n, "href"))
	}
	testenv.Equal(t, "the line of trust", []string{"1 differs /ui/runs/" + c.Run, "1 sentence without a source /ui/runs/" + c.Run + "?show=no-source"}, parts)
	if shown := every(root, "shown"); len(shown) != 2 || !strings.Contains(attribute(shown[1], "class"), "chip close") {
		t.Errorf("%d elements match the filter: %q", len(shown), wordsOfAll(shown))
	}
	bare := every(sound(t, w.get(t, "/ui/runs/"+c.Run+"?show=no-source").body), "shown")
	if len(bare) != 2 || !strings.HasPrefix(wordsOf(bare[0]), "The island in the lake") {
		t.Errorf("without a source: %q", wordsOfAll(bare))
	}
}
