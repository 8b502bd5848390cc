package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

const frameworkQuestion = "How tall is the Skarn lighthouse, and who keeps it?"

// frameworkAnswer has three sentences; nothing that the agents find says what the last one does.
const frameworkAnswer = "The Skarn lighthouse is 34 metres tall and was built of granite in 1871. " +
	"Ida Brandt has kept the light at Skarn since 2009. Its foghorn was made in Bergen by a watchmaker."

// found is a document that the agents' tool finds, for one of the queries that the model makes.
type found struct {
	Query string `json:"query"`
	Title string `json:"title"`
	URL   string `json:"url"`
	Text  string `json:"text"`
}

var frameworkQueries = []string{"height of the lighthouse", "keeper of the light"}

var frameworkDocuments = []found{
	{
		frameworkQueries[0], "Skarn lighthouse", "https://coast.example/skarn",
		"The Skarn lighthouse is 34 metres tall and was built of granite in 1871.",
	},
	{
		frameworkQueries[0], "Visiting the tower", "https://coast.example/visits",
		"Visitors may climb the tower on Sundays from May to September.",
	},
	{
		frameworkQueries[1], "Keepers of the coast", "https://coast.example/keepers",
		"Since 2009 the light at Skarn has been kept by Ida Brandt, who lives in the old signal house.",
	},
}

// frameworkRun is what ibid must tell of every run of every agent: what it was asked and answered, its steps, with the
// titles of what each used, its sources, and how each sentence of the answer is supported.
const frameworkRun = frameworkQuestion + `
1 model
2 search: Skarn lighthouse; Visiting the tower
3 model: Skarn lighthouse; Visiting the tower
4 search: Keepers of the coast
5 model: Skarn lighthouse; Visiting the tower; Keepers of the coast
source Skarn lighthouse https://coast.example/skarn
source Visiting the tower https://coast.example/visits
source Keepers of the coast https://coast.example/keepers
sentence 1 on Skarn lighthouse
sentence 2 on Keepers of the coast
sentence 3 on nothing
33% of the sentences without sources
page How tall is the Skarn lighthouse, and who keeps it?
`

// framework is an agent of docs/agents.md.
type framework struct {
	name    string // its heading in docs/agents.md
	version string // if it is not the one there
	program func(t *testing.T) *program
	forms   []string // in which its tool returns documents
}

var allForms = []string{"text", "json", "documents"}

func pythonFramework(name string) func(t *testing.T) *program {
	return func(t *testing.T) *program {
		t.Helper()
		python := testenv.Python(t)
		if name == "llama_index" {
			python = testenv.Tool(t, filepath.Join(filepath.Dir(filepath.Dir(python)), "llama-index", "bin", "python"))
		}
		return startProgram(t, "", python, "python/framework_agents.py", name)
	}
}

var frameworks = []framework{
	{name: "LangGraph", program: pythonFramework("langgraph"), forms: allForms},
	{name: "OpenAI Agents SDK", program: pythonFramework("openai_agents"), forms: allForms},
	{name: "pydantic-ai", program: pythonFramework("pydantic_ai"), forms: allForms},
	{name: "LlamaIndex", program: pythonFramework("llama_index"), forms: allForms},
	{name: "AI SDK", program: nodeFramework("7"), forms: allForms},
	{name: "AI SDK", version: "6", program: nodeFramework("6"), forms: allForms},
}

func nodeFramework(version string) func(t *testing.T) *program {
	return func(t *testing.T) *program {
		t.Helper()
		testenv.NodeModules(t, "interop/npm")
		return startProgram(t, "npm", testenv.Tool(t, "node"), "agent.mjs", version)
	}
}

// Agents of five frameworks, with the lines that docs/agents.md prints and no others, are run three ways: through the
// gateway, traced, and both. ibid tells the same of each run.
func TestFrameworks(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("OTEL_SDK_DISABLED", "")
	for _, f := range frameworks {
		t.Run(strings.TrimSpace(f.name+" "+f.version), func(t *testing.T) {
			lines := recipes(t, f.name)
			if f.version == "6" {
				lines.traces = strings.ReplaceAll(lines.traces, "registerTelemetry(new OpenTelemetry())", "")
			}
			w := servertest.Start(t, &servertest.Setup{
				Upstream: withKey(&frameworkModel{}), Providers: []string{"openai"},
				Configure: func(c *server.Config) { c.Prompts = server.Defaults().Prompts },
			})
			a := &agentProgram{program: f.program(t), world: w, runs: map[string]bool{}}
			a.do(t, map[string]any{"documents": frameworkDocuments})
			for _, form := range f.forms {
				a.lines(t, fmt.Sprintf("run = 'of-%s'", form), "")
				a.lines(t, lines.gateway, w.URL)
				a.check(t, f.name+", by the gateway alone, documents as "+form, form)
			}
			direct := strings.ReplaceAll(lines.model, defaultURL, w.Upstream.URL)
			a.lines(t, lines.traces, w.URL)
			for _, form := range f.forms {
				a.lines(t, direct, "")
				a.check(t, f.name+", by traces alone, documents as "+form, form)
			}
			a.lines(t, lines.both, w.URL)
			for _, form := range f.forms {
				a.lines(t, lines.model, w.URL)
				a.check(t, f.name+", by the gateway and traces, documents as "+form, form)
			}
		})
	}
}

// defaultURL is ibid's address in the documentation.
const defaultURL = "http://127.0.0.1:8080"

// recipe are the lines of docs/agents.md for one framework.
type recipe struct{ model, gateway, traces, both string }

var recipeBlock = regexp.MustCompile("(?s)```(?:python|js)\n(.*?)```")

// recipes reads the blocks of code below a framework's heading: for the gateway, for traces and, if something is to be
// added, for both.
func recipes(t *testing.T, name string) recipe {
	t.Helper()
	page := string(testenv.Must(os.ReadFile(filepath.Join("..", "docs", "agents.md")))(t))
	_, section, ok := strings.Cut(page, "\n## "+name+"\n")
	if !ok {
		t.Fatalf("docs/agents.md has no section %q", name)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := recipeBlock.FindAllStringSubmatch(section, -1)
	if len(blocks) != 3 {
		t.Fatalf("docs/agents.md has %d blocks of code on %s, want 3", len(blocks), name)
	}
	r := recipe{gateway: blocks[0][1], traces: blocks[1][1], both: blocks[2][1]}
	if first := recipeBlock.FindStringSubmatch(page); strings.HasPrefix(first[0], "```python") && !strings.Contains(section, "```js") {
		r.traces = first[1] + r.traces
	}
	if n := strings.Count(r.gateway+r.traces+r.both, "\n"); n > 24 {
		t.Errorf("docs/agents.md needs %d lines for %s", n, name)
	}
	r.model = headerPart.ReplaceAllString(r.gateway, "")
	if r.model == r.gateway {
		t.Errorf("docs/agents.md does not name the run of %s", name)
	}
	return r
}

// headerPart is the part of the line for the gateway that names the run, which a trace makes unnecessary.
var headerPart = regexp.MustCompile(`, (?:default_headers=|headers: )\{ ?["']Ibid-Run["']: run ?\}`)

// agentProgram is a running agent.
type agentProgram struct {
	*program

	world *servertest.World
	runs  map[string]bool // that were checked
}

// lines makes the agent run lines of the documentation with ibid at an address.
func (a *agentProgram) lines(t *testing.T, lines, url string) {
	t.Helper()
	a.do(t, map[string]any{"lines": strings.ReplaceAll(lines, defaultURL, url)})
}

// do gives the agent a command, and returns its answer.
func (a *agentProgram) do(t *testing.T, command any) string {
	t.Helper()
	var answer string
	err := a.calls.Encode(command)
	if err == nil {
		err = a.replies.Decode(&answer)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, a.log)
	}
	return answer
}

// check asks the agent, and compares what ibid tells of the only new run with frameworkRun.
func (a *agentProgram) check(t *testing.T, about, form string) {
	t.Helper()
	if got := a.do(t, map[string]any{"ask": form}); got != frameworkAnswer {
		t.Fatalf("%s: the agent answered %q", about, got)
	}
	w := &world{gateway: a.world.URL}
	var list struct {
		Runs []struct{ ID string }
	}
	w.get(t, "/v1/runs?limit=100", &list)
	var fresh []string
	for _, r := range list.Runs {
		if !a.runs[r.ID] {
			fresh = append(fresh, r.ID)
			a.runs[r.ID] = true
		}
	}
	if len(fresh) != 1 {
		t.Errorf("%s: %d runs for one question", about, len(fresh))
		return
	}
	testenv.Equal(t, about, frameworkRun, a.tell(t, w, fresh[0]))
}

// tell returns what ibid tells of a run.
func (a *agentProgram) tell(t *testing.T, w *world, run string) string {
	t.Helper()
	type source struct {
		Title string `json:"document_title"`
		URL   string
	}
	var s struct {
		Question string `json:"original_question"`
		Answer   string `json:"final_answer"`
		Steps    []struct {
			Number  int `json:"step_number"`
			Tool    string
			Sources []source `json:"source_attributions"`
		} `json:"reasoning_steps"`
		Sources struct {
			All    []source `json:"all_sources"`
			Unused []source `json:"unused_sources"`
		} `json:"source_summary"`
		Sentences []struct {
			None     bool `json:"no_sources"`
			Passages []struct {
				Title   string `json:"document_title"`
				Differs string
			}
		}
		Uncited *float64 `json:"uncited_share"`
		Issues  []struct{ Code, Detail string }
	}
	w.get(t, "/v1/runs/"+run+"/summary", &s)
	var b strings.Builder
	fmt.Fprintln(&b, s.Question)
	if s.Answer != frameworkAnswer {
		fmt.Fprintf(&b, "answer %q\n", s.Answer)
	}
	for _, step := range s.Steps {
		name := step.Tool
		if name == "" {
			name = "model"
		}
		var titles []string
		for _, f := range step.Sources {
			titles = append(titles, f.Title)
		}
		fmt.Fprintln(&b, step.Number, strings.TrimSuffix(name+": "+strings.Join(titles, "; "), ": "))
	}
	all := slices.Concat(s.Sources.All, s.Sources.Unused)
	for _, d := range frameworkDocuments { // in one order: sentences have the scores
		if i := slices.Index(all, source{d.Title, d.URL}); i >= 0 {
			fmt.Fprintln(&b, "source", d.Title, d.URL)
			all = slices.Delete(all, i, i+1)
		}
	}
	for _, f := range all {
		fmt.Fprintln(&b, "also a source:", f.Title, f.URL)
	}
	for i, sentence := range s.Sentences {
		on := []string{}
		for _, p := range sentence.Passages {
			if p.Differs == "" && !slices.Contains(on, p.Title) {
				on = append(on, p.Title)
			}
		}
		if sentence.None {
			on = []string{"nothing"}
		}
		fmt.Fprintln(&b, "sentence", i+1, "on", strings.Join(on, "; "))
	}
	if s.Uncited != nil {
		fmt.Fprintf(&b, "%.0f%% of the sentences without sources\n", 100**s.Uncited)
	}
	for _, issue := range s.Issues {
		fmt.Fprintln(&b, "issue", issue.Code, issue.Detail)
	}
	page := string(testenv.Must(fetch(t.Context(), w.gateway+"/ui/runs/"+run))(t))
	title := ""
	if m := pageHeading.FindStringSubmatch(page); m != nil {
		title = strings.TrimSpace(tag.ReplaceAllString(m[1], ""))
	}
	fmt.Fprintln(&b, "page", title)
	return b.String()
}

var (
	pageHeading = regexp.MustCompile(`(?s)<h1[^>]*>(.*?)</h1>`)
	tag         = regexp.MustCompile(`<[^>]*>`)
)

// frameworkModel is a model behind OpenAI's two interfaces: it calls the tool search for each of frameworkQueries, one
// after the other, and then answers.
type frameworkModel struct{ ids atomic.Int64 }

func (m *frameworkModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Stream   bool
		Messages []struct{ Role string }
		Input    json.RawMessage
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil {
		http.Error(w, `{"error":{"message":"not JSON"}}`, http.StatusBadRequest)
		return
	}
	isChat := strings.HasSuffix(r.URL.Path, "/chat/completions")
	done := 0
	for _, message := range asked.Messages {
		if message.Role == "tool" {
			done++
		}
	}
	if !isChat {
		var items []struct{ Type string }
		_ = json.Unmarshal(asked.Input, &items) // it may be a text
		for _, item := range items {
			if item.Type == "function_call_output" {
				done++
			}
		}
	}
	id, query := m.ids.Add(1), ""
	if done < len(frameworkQueries) {
		query = fmt.Sprintf(`{"query":%q}`, frameworkQueries[done])
	}
	events := responsesEvents(id, query)
	if isChat {
		events = chatEvents(id, query)
	}
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(events[0])
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events[1:] {
		data, _ := json.Marshal(event) // of maps and strings
		if kind, ok := event["type"]; ok {
			_, _ = fmt.Fprintf(w, "event: %s\n", kind)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
	if isChat {
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
}

type object = map[string]any

// chatEvents returns a chat completion, and then its stream: a call of the tool with arguments or, without these, the
// answer.
func chatEvents(id int64, arguments string) []object {
	message, finish := object{"role": "assistant", "content": frameworkAnswer}, "stop"
	if arguments != "" {
		finish = "tool_calls"
		message = object{"role": "assistant", "content": nil, "tool_calls": []object{{
			"index": 0, "id": fmt.Sprintf("call_%dx", id), "type": "function",
			"function": object{"name": "search", "arguments": arguments},
		}}}
	}
	reply := func(kind string, choice object) object {
		choice["index"] = 0
		return object{
			"id": fmt.Sprintf("chatcmpl-%dx", id), "object": kind, "created": 1767225600, "model": "gpt-5",
			"choices": []object{choice},
			"usage":   object{"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
		}
	}
	return []object{
		reply("chat.completion", object{"message": message, "finish_reason": finish}),
		reply("chat.completion.chunk", object{"delta": message, "finish_reason": nil}),
		reply("chat.completion.chunk", object{"delta": object{}, "finish_reason": finish}),
	}
}

// responsesEvents returns the same as a response.
func responsesEvents(id int64, arguments string) []object {
	itemID := fmt.Sprintf("item_%dx", id)
	item := object{
		"id": itemID, "type": "function_call", "call_id": fmt.Sprintf("call_%dx", id), "name": "search",
		"arguments": arguments, "status": "completed",
	}
	part := object{"type": "output_text", "text": frameworkAnswer, "annotations": []any{}}
	if arguments == "" {
		item = object{
			"id": itemID, "type": "message", "role": "assistant", "status": "completed", "content": []object{part},
		}
	}
	response := func(status string, output ...object) object {
		return object{
			"id": fmt.Sprintf("resp_%dx", id), "object": "response", "created_at": 1767225600, "model": "gpt-5",
			"status": status, "output": append([]object{}, output...), "parallel_tool_calls": true,
			"tool_choice": "auto", "tools": []any{},
			"usage": object{
				"input_tokens": 9, "output_tokens": 9, "total_tokens": 18,
				"input_tokens_details":  object{"cached_tokens": 0},
				"output_tokens_details": object{"reasoning_tokens": 0},
			},
		}
	}
	begun := object{}
	for name, v := range item {
		begun[name] = v
	}
	begun["status"] = "in_progress"
	events := []object{
		response("completed", item),
		{"type": "response.created", "response": response("in_progress")},
		{"type": "response.output_item.added", "output_index": 0, "item": begun},
	}
	of := func(kind string, more object) {
		more["type"], more["output_index"], more["item_id"] = kind, 0, itemID
		events = append(events, more)
	}
	if arguments == "" {
		begun["content"] = []any{}
		empty := object{"type": "output_text", "text": "", "annotations": []any{}}
		of("response.content_part.added", object{"content_index": 0, "part": empty})
		of("response.output_text.delta", object{"content_index": 0, "delta": frameworkAnswer, "logprobs": []any{}})
		of("response.output_text.done", object{"content_index": 0, "text": frameworkAnswer, "logprobs": []any{}})
		of("response.content_part.done", object{"content_index": 0, "part": part})
	} else {
		begun["arguments"] = ""
		of("response.function_call_arguments.delta", object{"delta": arguments})
		of("response.function_call_arguments.done", object{"arguments": arguments, "name": "search"})
	}
	events = append(
		events, object{"type": "response.output_item.done", "output_index": 0, "item": item},
		object{"type": "response.completed", "response": response("completed", item)},
	)
	for i, event := range events[1:] {
		event["sequence_number"] = i
	}
	return events
}
