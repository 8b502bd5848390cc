package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/internal/testenv"
)

// linesMain is a program for the stories: it prints the id, label and error code of each line of a file of verdicts.
func linesMain() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(data)) {
		var v struct {
			ID       json.RawMessage
			Label    string
			Missing  []string
			Evidence []any
			Error    *struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Missing == nil || v.Evidence == nil {
			panic(fmt.Sprint(err, line))
		}
		code := "-"
		if v.Error != nil {
			code = v.Error.Code
		}
		fmt.Printf("%s %s %s\n", v.ID, v.Label, code)
	}
}

// checked runs ibid check --batch - on an input, and returns its exit code and its lines.
func checked(t *testing.T, in string) (code int, lines []string) {
	t.Helper()
	var out, words bytes.Buffer
	w := world{in: strings.NewReader(in), out: &out, err: &words, env: func(string) (string, bool) { return "", false }}
	code = run(t.Context(), []string{"check", "--batch", "-"}, w)
	for line := range strings.Lines(out.String()) {
		lines = append(lines, line)
	}
	return code, lines
}

// The content of a line that is too long is discarded, and its neighbours are checked.
func TestCheckLongLine(t *testing.T) {
	good := `{"id":1,"claim":"Herons eat fish.","passages":["Herons eat fish."]}` + "\n"
	long := `{"id":2,"claim":"` + strings.Repeat("x", maxLine) + `","passages":["y"]}`
	for _, in := range []string{good + long + "\n" + good, good + good + long} {
		code, lines := checked(t, in)
		if code != exitUnknown || len(lines) != 3 {
			t.Fatalf("exit code %d, %d lines", code, len(lines))
		}
		failed := 0
		for _, line := range lines {
			if strings.Contains(line, `"error":{"code":"too-large","message":"the line is longer than 8 MiB"}`) {
				failed++
			} else if !strings.Contains(line, `"label":"supported"`) {
				t.Errorf("a good line: %s", line)
			}
		}
		if failed != 1 {
			t.Errorf("%d lines are too long", failed)
		}
	}
}

// Claims of any length, and passages in any script, get a verdict.
func TestCheckOddClaims(t *testing.T) {
	var in bytes.Buffer
	e := json.NewEncoder(&in)
	for _, claim := range []string{"x", "", " ", strings.Repeat("The bridge was opened in 1932. ", 33_000), "橋は1932年に開通した。", "\u202eabc", "\x00"} {
		testenv.OK(t, e.Encode(map[string]any{"claim": claim, "passages": []string{"The bridge was opened in 1932.", "橋は1932年に開通した。Мост открыт."}}))
	}
	_, lines := checked(t, in.String())
	if len(lines) != 7 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		if !json.Valid([]byte(line)) || strings.Contains(line, `"label":""`) {
			t.Errorf("line %d: %.200s", i, line)
		}
	}
}

// Lines that have been read are checked before more is waited for.
func TestCheckLive(t *testing.T) {
	questions := make(chan string, 1)
	answers := make(chan string, 10)
	w := world{
		in: readerFunc(func(p []byte) (int, error) {
			q, ok := <-questions
			if !ok {
				return 0, os.ErrClosed
			}
			return copy(p, q), nil
		}),
		out: writerFunc(func(p []byte) (int, error) { answers <- string(p); return len(p), nil }),
		err: &bytes.Buffer{}, env: func(string) (string, bool) { return "", false },
	}
	done := make(chan int)
	go func() { done <- run(t.Context(), []string{"check", "--batch", "-"}, w) }()
	for i := range 3 {
		questions <- fmt.Sprintf(`{"id":%d,"claim":"Herons eat fish.","passages":["Herons eat fish."]}`+"\n", i)
		if answer := <-answers; !strings.HasPrefix(answer, fmt.Sprintf(`{"id":%d,"line":%d,"label":"supported"`, i, i+1)) {
			t.Errorf("answer %d: %s", i, answer)
		}
	}
	close(questions)
	if code := <-done; code != exitUnknown { // reading failed
		t.Errorf("exit code %d", code)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// modelMain is a program for the stories: model FILE. It serves chat completions for the key sk-story at the address
// that it writes to the file, and without one. Its verdict is supported for claims about people, contradicted with an invented quote for those with the word never, and unsupported for the rest.
func modelMain() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = file.Replace(os.Args[1], []byte("http://"+l.Addr().String()+"\n"), 0o644)
	}
	if err == nil {
		err = http.Serve(l, http.HandlerFunc(serveModel))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func serveModel(w http.ResponseWriter, r *http.Request) {
	var chat struct{ Messages []struct{ Content string } }
	switch {
	case !slices.Contains([]string{"", "Bearer sk-story"}, r.Header.Get("Authorization")):
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"wrong key: %s","code":"invalid_api_key"}}`, r.Header.Get("Authorization"))
		return
	case r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&chat) != nil:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, claims, _ := strings.Cut(chat.Messages[len(chat.Messages)-1].Content, "Claims, one JSON object a line:\n")
	type element struct {
		ID      string   `json:"id"`
		Quotes  []string `json:"quotes"`
		Verdict string   `json:"verdict"`
	}
	var verdicts []element
	for line := range strings.Lines(claims) {
		var c struct{ ID, Claim string }
		_ = json.Unmarshal([]byte(line), &c)
		switch {
		case strings.Contains(c.Claim, "people"):
			verdicts = append(verdicts, element{c.ID, []string{"It is 503 metres long"}, "supported"})
		case strings.Contains(c.Claim, "never"):
			verdicts = append(verdicts, element{c.ID, []string{"I made this up"}, "contradicted"})
		default:
			verdicts = append(verdicts, element{c.ID, []string{}, "unsupported"})
		}
	}
	text, _ := json.Marshal(map[string]any{"verdicts": verdicts})
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "c1", "object": "chat.completion", "created": 1, "model": "story",
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": string(text)}}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 10},
	})
}
