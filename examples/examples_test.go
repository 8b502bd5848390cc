package examples

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestExamples(t *testing.T) {
	p := build(t)
	t.Run("agent", p.testAgent)
	t.Run("gosdk", p.testGoSDK)
	t.Run("publish", p.testPublish)
	t.Run("rag", p.testRAG)
	t.Run("rag with a model", p.testRAGModel)
	t.Run("python", p.testPython)
	t.Run("frameworks", p.testFrameworks)
	t.Run("browser", p.testBrowser)
	t.Run("usechat", p.testUseChat)
	t.Run("README", p.testReadme)
}

const herons = "How many herons nest at Lake Tonbo?"

// Each SDK, unchanged, and the answer that its program also gets.
func (p programs) testGoSDK(t *testing.T) {
	at := upstream(t, nil)
	for _, provider := range []string{"openai", "gemini", "anthropic", "cohere"} {
		t.Run(provider, func(t *testing.T) {
			got := p.run(t, "gosdk", "-provider", provider, "-base", at, "-question", herons)
			if provider == "gemini" { // its titles are host names
				compare(t, got, heronsCited+`

Sources:

[1] birds.example — https://birds.example/tonbo/census
[2] lake.example — https://lake.example/history
[3] water.example — https://water.example/levels?station=7
`)
				return
			}
			compare(t, got, heronsCited+`

Sources:

[1] Heron census at Lake Tonbo — birds.example — https://birds.example/tonbo/census
[2] The lake and its birds — lake.example — https://lake.example/history
[3] Water levels, station 7 — water.example — https://water.example/levels?station=7
`)
		})
	}
}

const heronsCited = "The colony at Lake Tonbo has 41 nests this year.[1] It began with a single pair in 1968, after the mill had closed.[2] " +
	"When the water is low, the birds fish on the northern shore.[1][3] Nobody knows why they avoid the island."

// compare reports, line by line, how a program's output differs from the expected one.
func compare(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A chat over a folder, without a model: text, PDF, and a question that no document answers. Source numbers continue
// from one answer to the next.
func (p programs) testRAG(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), filepath.Join(string(p), "rag"))
	cmd.Stdin = strings.NewReader("May I use flash?\nWhat was the lowest water level?\nWhen does the ferry leave in winter?\nWho is the president of France?\n\n")
	compare(t, output(t, cmd), `4 documents, 8 passages. Ask; an empty line ends it.

> Readers may photograph for private use; flash is forbidden.[1]

Sources:

[1] library.txt
    “Readers may photograph for private use; flash is forbidden.”

> The lowest level of the decade was 1.9 metres, measured in August.[2]

Sources:

[2] Water levels, station 7 — water-levels.pdf, p. 1
    “The lowest level of the decade was 1.9 metres, measured in August.”

> The ferry stays in the harbour when the wind is above 60 kilometres an hour, or the water below 1.9 metres.[3] `+
		`In winter only the boat at 12:10 sails.[3]

Sources:

[3] Ferry timetable — ferry.html
    “The ferry stays in the harbour when the wind is above 60 kilometres an hour, or the water below 1.9 metres.”
    “In winter only the boat at 12:10 sails.”

> The documents do not say anything about that.

> `)
}

// With a model that cites nothing but has seen the documents, sentences that rest on one of them are cited, and the
// others are listed.
func (p programs) testRAGModel(t *testing.T) {
	api := upstream(t, nil) + "/mistral/v1"
	compare(t, p.run(t, "rag", "-api", api, "-question", herons), `The colony at Lake Tonbo has 41 nests this year.[1] `+
		`It began with a single pair in 1968, after the mill had closed.[1] When the water is low, the birds fish on the northern shore.[1] `+
		`Nobody knows why they avoid the island.[1]

Sources:

[1] The herons of Lake Tonbo — herons.md
    “Volunteers counted 41 nests in the alders on 12 April, four more than the year before. The colony is the largest on the coast.”
    “The first pair was seen in 1968, a year after the mill closed.”
    “When the water is low the birds fish on the northern shore, where frogs gather in the reeds.”
    “Nobody knows why the birds avoid the island.”
`)
	compare(t, p.run(t, "rag", "-api", api, "-question", "When does the ferry leave?"),
		"⛴️ Good news 🎉! The ferry 🚢 leaves at 7:40, 12:10 and 17:30.[1] Families 👩\u200d👩\u200d👧\u200d👦 pay for the grown-ups only. "+
			"On Sundays 🇯🇵 time does not matter: it sails when it is full 😀.\n"+`
Sources:

[1] Ferry timetable — ferry.html
    “From April to October the ferry leaves the village at 7:40, 12:10 and 17:30.”

No document supports: ⛴️ Good news 🎉!

No document supports: Families `+"👩\u200d👩\u200d👧\u200d👦"+` pay for the grown-ups only.

No document supports: On Sundays 🇯🇵 time does not matter: it sails when it is full 😀.
`)
}

// A provider's response in other programs' formats: the Go program's output equals the gateway's except for the id, and
// Python reads it without their packages.
func (p programs) testFrameworks(t *testing.T) {
	gateway := p.gateway(t)
	res := post(t, gateway+"/openai/v1/responses", `{"model":"gpt-5","input":"`+herons+`","tools":[{"type":"web_search"}]}`)
	cmd := exec.CommandContext(t.Context(), filepath.Join(string(p), "frameworks"))
	cmd.Stdin = strings.NewReader(res.body)
	written := strings.Split(strings.TrimSpace(output(t, cmd)), "\n")
	for i, shape := range []string{"openai", "langchain", "llamaindex"} {
		served := get(t, gateway+"/v1/answers/"+res.header.Get("Ibid-Answer")+"?as="+shape)
		if i >= len(written) || anonymous(written[i]) != anonymous(served) {
			t.Errorf("%s: the program writes\n%s\nthe gateway serves\n%s", shape, written, served)
		}
	}
	python := exec.CommandContext(t.Context(), testenv.Tool(t, "python3"), "frameworks/frameworks.py", res.header.Get("Ibid-Answer"))
	python.Env = append(os.Environ(), "IBID_URL="+gateway)
	compare(t, output(t, python), `LangChain:
  'The colony at Lake Tonbo has 41 nests this year.' <- Heron census at Lake Tonbo
  'It began with a single pair in 1968, after the mill had closed.' <- The lake and its birds
  'When the water is low, the birds fish on the northern shore.' <- Heron census at Lake Tonbo
  'When the water is low, the birds fish on the northern shore.' <- Water levels, station 7
LlamaIndex:
  `+heronsCited+`
  [1] Heron census at Lake Tonbo
  [2] The lake and its birds
  [3] Water levels, station 7
`)
}

// anonymous removes ids and white space: the provider's id is in the program's output, and ibid's in the gateway's.
func anonymous(shape string) string {
	return strings.TrimSpace(regexp.MustCompile(`"(resp|ans)_[0-9a-f-]*"`).ReplaceAllString(shape, `"…"`))
}

// reply is a response whose body was read.
type reply struct {
	header http.Header
	body   string
	status int
}

func post(t *testing.T, url, body string) *reply {
	t.Helper()
	return do(t, http.MethodPost, url, body)
}

func get(t *testing.T, url string) string {
	t.Helper()
	res := do(t, http.MethodGet, url, "")
	if res.status != http.StatusOK {
		t.Fatalf("%s: %d: %s", url, res.status, res.body)
	}
	return res.body
}

func do(t *testing.T, method, url, body string) *reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &reply{res.Header, string(data), res.StatusCode}
}
