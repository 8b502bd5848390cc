package interop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
)

// passage is what a RAG program gives its model: the first is [1].
type passage struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

var passages = []passage{
	{"timetable.pdf", "The ferry to Orm Island leaves at 07:40. It returns at dusk."},
	{"harbour.md", "Tickets are sold in the harbour office, next to the crane."},
	{"notice.txt", "In January & February the ferry does not run."},
	{"fares.txt", "A return ticket costs 12 crowns; children travel free."},
}

// mark is a mark of an answer and the passages that it cites.
type mark struct {
	Text     string
	Passages []string
}

// ragAnswers are what models answer, with the numbers that they write in their marks.
var ragAnswers = []struct {
	name, text string
	marks      [][]int
}{
	{
		"in order",
		"The ferry leaves at 07:40 [1]. You get tickets in the harbour office [2]. It sails on most days, but not in winter [1, 3].",
		[][]int{{1}, {2}, {1, 3}},
	},
	{
		"out of order",
		"A return ticket is 12 crowns [4], and you buy it beside the crane [2]. In 2024 [sic] there were no ferries in winter [4, 3].",
		[][]int{{4}, {2}, {4, 3}},
	},
}

// RAG programs put numbered passages into the prompt, each in its own way, and the model cites the numbers. Behind the
// gateway they get the model's words unchanged, and ibid shows the numbers that it wrote, each with its passage.
func TestRAG(t *testing.T) {
	p := startRAG(t)
	for _, way := range []string{"openai", "open-webui", "langchain", "llama-index"} {
		for _, answer := range ragAnswers {
			for _, stream := range []bool{false, true} {
				name := fmt.Sprintf("%s/%s/%s", way, answer.name, map[bool]string{false: "body", true: "stream"}[stream])
				t.Run(name, func(t *testing.T) {
					gateway := servertest.Start(t, &servertest.Setup{
						Upstream: withKey(say(answer.text)), Providers: []string{"openai"},
					})
					testenv.Equal(t, "the program's answer", answer.text, p.ask(t, way, gateway.URL+"/openai", stream))
					w := &world{gateway: gateway.URL}
					d := w.onlyAnswer(t)
					testenv.Equal(t, "the stored text", answer.text, d.Text)
					if len(d.Issues) > 0 {
						t.Errorf("issues: %v", d.Issues)
					}
					wantSources(t, d)
					wantMarks(t, answer.marks, d)
					page := testenv.Must(fetch(t.Context(), w.gateway+"/ui/answers/"+*d.AnswerID))(t)
					wantPage(t, answer.marks, string(page))
				})
			}
		}
	}
}

// onlyAnswer returns the one answer that the gateway has stored.
func (w *world) onlyAnswer(t *testing.T) *ibid.Document {
	t.Helper()
	var list struct{ Answers []ibid.Document }
	w.get(t, "/v1/answers", &list)
	if len(list.Answers) != 1 || list.Answers[0].AnswerID == nil {
		t.Fatalf("the gateway has stored %d answers", len(list.Answers))
	}
	return w.document(t, *list.Answers[0].AnswerID)
}

// wantSources requires every passage, and nothing else, to be a source, with its name.
func wantSources(t *testing.T, d *ibid.Document) {
	t.Helper()
	got := map[string]string{}
	for _, s := range d.Sources {
		name := cmp.Or(s.Filename, s.Title)
		if s.Content == nil || name == nil {
			t.Fatalf("source %d: %+v", s.Index, s)
		}
		got[*s.Content] = *name
	}
	want := map[string]string{}
	for _, p := range passages {
		want[p.Text] = p.Name
	}
	testenv.Equal(t, "sources", want, got)
}

// wantMarks requires the document to have a citation of its own passage for each number that the model wrote, at the
// mark, and no other.
func wantMarks(t *testing.T, marks [][]int, d *ibid.Document) {
	t.Helper()
	var want, got []mark
	for _, numbers := range marks {
		m := mark{Text: strings.ReplaceAll(fmt.Sprint(numbers), " ", ", ")}
		for _, n := range slices.Sorted(slices.Values(numbers)) { // the document has them by number
			m.Passages = append(m.Passages, passages[n-1].Text)
		}
		want = append(want, m)
	}
	content := map[string]string{}
	for _, s := range d.Sources {
		content[s.ID] = *s.Content
	}
	last := -1
	for _, c := range d.Citations {
		if c.TextStart == nil || c.TextEnd == nil {
			t.Fatalf("a citation without a place: %+v", c)
		}
		if c.Group != last {
			got = append(got, mark{Text: d.Text[*c.TextStart:*c.TextEnd]})
			last = c.Group
		}
		got[len(got)-1].Passages = append(got[len(got)-1].Passages, content[c.SourceID])
	}
	testenv.Equal(t, "marks", want, got)
}

var (
	proseChip  = regexp.MustCompile(`<ibid-cite [^>]*data-n="([\d ]+)"`)
	pageSource = regexp.MustCompile(`(?s)<div class="source[^>]* id="s-(\d+)".*?<blockquote[^>]*>(.*?)</blockquote>`)
)

// wantPage requires a page to have the numbers of the marks in their place, in ascending order where a mark has several,
// and below the text each number with its passage.
func wantPage(t *testing.T, marks [][]int, page string) {
	t.Helper()
	var shown []int
	for _, numbers := range marks {
		shown = slices.Concat(shown, slices.Sorted(slices.Values(numbers)))
	}
	_, prose, _ := strings.Cut(page, `<div class="prose"`)
	prose, list, found := strings.Cut(prose, `<div class="rows"`)
	if !found {
		t.Fatalf("no answer with sources:\n%s", page)
	}
	var chips []int
	for _, m := range proseChip.FindAllStringSubmatch(prose, -1) {
		for n := range strings.FieldsSeq(m[1]) {
			chips = append(chips, testenv.Must(strconv.Atoi(n))(t))
		}
	}
	testenv.Equal(t, "the numbers in the page's text", shown, chips)
	if left := regexp.MustCompile(`\[\d[^\]]*\]`).FindString(prose); left != "" {
		t.Errorf("the page's text has %s beside the chips", left)
	}
	sources := map[int]string{}
	for _, m := range pageSource.FindAllStringSubmatch(list, -1) {
		sources[testenv.Must(strconv.Atoi(m[1]))(t)] = html.UnescapeString(m[2])
	}
	for _, n := range shown {
		testenv.Equal(t, fmt.Sprintf("source %d of the page", n), passages[n-1].Text, sources[n])
	}
}

// say answers every chat completion with a text, in deltas that cut its marks if the request wants a stream.
func say(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Stream bool }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/openai/v1/chat/completions" {
			http.Error(w, `{"error":{"message":"not a chat"}}`, http.StatusBadRequest)
			return
		}
		reply := map[string]any{"id": "chatcmpl-orm", "created": 1767225600, "model": "heron-1"}
		if !asked.Stream {
			reply["object"] = "chat.completion"
			reply["choices"] = []any{map[string]any{
				"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": text},
			}}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(reply)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		reply["object"] = "chat.completion.chunk"
		for part := range slices.Chunk([]byte(text), 3) {
			writeEvent(w, reply, map[string]string{"content": string(part)}, nil)
		}
		writeEvent(w, reply, map[string]string{}, "stop")
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
}

// writeEvent writes a chunk of a streamed chat completion.
func writeEvent(w io.Writer, reply map[string]any, delta map[string]string, finish any) {
	reply["choices"] = []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}
	event, err := json.Marshal(reply)
	if err == nil {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
	}
}

// rag is a running python/rag.py.
type rag struct{ *program }

func startRAG(t *testing.T) *rag {
	t.Helper()
	return &rag{startProgram(t, "", testenv.Python(t), "python/rag.py")}
}

// ask makes the program ask in a way of its own, and returns its answer.
func (p *rag) ask(t *testing.T, way, base string, stream bool) string {
	t.Helper()
	err := p.calls.Encode(map[string]any{
		"way": way, "base": base, "key": key, "question": "When does the ferry leave, and what is the fare?",
		"passages": passages, "stream": stream,
	})
	var answer string
	if err == nil {
		err = p.replies.Decode(&answer)
	}
	if err != nil {
		t.Fatalf("rag.py: %v\n%s", err, p.log)
	}
	return answer
}
