package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// perProvider is how many recordings of one provider are shown, and perProgram how many of programs of each kind.
const (
	perProvider = 5
	perProgram  = 8
)

// routes are the paths of the APIs below an upstream; bedrock's has the model in it.
var routes = map[string]string{
	"openai-responses": "/v1/responses", "openai-responses-stream": "/v1/responses",
	"openai-chat": "/v1/chat/completions", "openai-chat-stream": "/v1/chat/completions",
	"anthropic-messages": "/v1/messages", "anthropic-messages-stream": "/v1/messages",
	"gemini-generate": "/v1beta/models/gemini:generateContent",
	"gemini-stream":   "/v1beta/models/gemini:streamGenerateContent?alt=sse",
	"cohere-v2":       "/v2/chat", "cohere-v2-stream": "/v2/chat", "cohere-v1": "/v1/chat",
	"bedrock-converse": "/model/anthropic.claude/converse",
}

// readAll returns what is shown: recordings of providers, three of them as one conversation, then programs and agents.
func readAll(dir string) ([]exchange, error) {
	all, err := readCorpus(filepath.Join(dir, "corpus"))
	if err != nil {
		return nil, err
	}
	for i := range min(3, len(all)) {
		all[i].header = map[string]string{"Ibid-Conversation": "three-questions"}
	}
	marks, err := readMarks(filepath.Join(dir, "world", "marks", "cases"))
	if err != nil {
		return nil, err
	}
	agents, err := readAgents(filepath.Join(dir, "world", "agents", "cases"))
	return append(append(all, marks...), agents...), err
}

// readCorpus returns recordings with citations whose request is known, those with the most citations first.
func readCorpus(dir string) ([]exchange, error) {
	table, err := os.ReadFile(filepath.Join(dir, "MANIFEST.tsv"))
	if err != nil {
		return nil, err
	}
	var all []exchange
	seen := map[string]int{}
	for line := range strings.Lines(string(table)) {
		column := strings.Split(line, "\t")
		if len(column) < 8 || column[5] == "0" || seen[column[1]] >= perProvider || len(column[7]) < 3 {
			continue // short answers show little
		}
		path, known := routes[column[2]]
		base := strings.TrimSuffix(column[0], filepath.Ext(column[0]))
		request, err := os.ReadFile(filepath.Join(dir, base+".request.json"))
		if !known || err != nil {
			continue
		}
		response, err := os.ReadFile(filepath.Join(dir, column[0]))
		if err != nil {
			return nil, err
		}
		seen[column[1]]++
		all = append(all, exchange{
			name: column[0], path: "/" + column[1] + path, request: request, response: response,
			mediaType: mediaTypeOf(column[0]),
		})
	}
	return all, nil
}

func mediaTypeOf(name string) string {
	if strings.HasSuffix(name, ".sse") {
		return "text/event-stream"
	}
	return "application/json"
}

// readMarks returns answers that cite passages of their prompt.
func readMarks(dir string) ([]exchange, error) {
	cases, err := filepath.Glob(filepath.Join(dir, "*", "request.json"))
	var all []exchange
	for _, name := range cases {
		request, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, kind := range []string{"response.json", "response.sse"} {
			response, err := os.ReadFile(filepath.Join(filepath.Dir(name), kind))
			if err != nil || len(all) == perProgram || !strings.Contains(string(request), `"messages"`) {
				continue
			}
			path := "/openai/v1/chat/completions"
			if strings.Contains(string(response), `"end_turn"`) {
				path = "/anthropic/v1/messages"
			}
			all = append(all, exchange{
				name: name, path: path, request: request, response: response, mediaType: mediaTypeOf(kind),
			})
		}
	}
	return all, err
}

// readAgents returns runs of agents through the gateway, traced and posted.
func readAgents(dir string) ([]exchange, error) {
	var all []exchange
	for _, kind := range []string{"gateway", "openinference", "genai", "posted"} {
		files, err := filepath.Glob(filepath.Join(dir, kind+"--*.jsonl"))
		if err != nil {
			return nil, err
		}
		for _, file := range files[:min(len(files), perProgram/2)] {
			lines, err := readRun(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, lines...)
		}
	}
	return all, nil
}

func readRun(file string) ([]exchange, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var all []exchange
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var line struct {
			Post, Call              string
			Body, Request, Response json.RawMessage
			Base64                  []byte
			Headers                 map[string]string
			ContentType             string `json:"content_type"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		e := exchange{name: name, path: line.Post, header: line.Headers, request: line.Body}
		if line.Base64 != nil {
			e.request = line.Base64
		}
		if line.Call != "" {
			e.path, e.request, e.mediaType = line.Call, line.Request, line.ContentType
			e.header = map[string]string{"Ibid-Run": name}
			e.response = compact(line.Response)
			var text string
			if json.Unmarshal(line.Response, &text) == nil { // a stream
				e.response = []byte(text)
			}
		}
		all = append(all, e)
	}
	return all, lines.Err()
}
