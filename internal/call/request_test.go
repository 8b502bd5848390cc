package call

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestReadRequest(t *testing.T) {
	for _, test := range testenv.Table[struct {
		Name, Format, Body string
		Want               Request
	}](t, "testdata/tables/read-request.txt") {
		body := []byte(test.Body)
		got, err := ReadRequest(test.Format, body)
		clear(body) // no reference to it is retained
		if err != nil {
			t.Errorf("%s: %v", test.Name, err)
			continue
		}
		testenv.Equal(t, test.Name, &test.Want, got)
	}
}

func TestReadRequestRefuses(t *testing.T) {
	for _, body := range []string{"", " ", "null", "[]", `"x"`, "x", "\xef\xbb\xbf{}"} {
		if r, err := ReadRequest("", []byte(body)); err == nil {
			t.Errorf("%q gives %+v, want an error", body, r)
		}
	}
}

func TestLastUser(t *testing.T) {
	r, err := ReadRequest("", []byte(`{"messages":[{"role":"user","content":"first"},{"role":"user","content":"last"},{"role":"assistant","content":"A"},
		{"role":"user","content":[{"type":"tool_result","content":"R"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := r.LastUser(); !ok || m.Text != "last" {
		t.Errorf("LastUser = %v, %t, want the last words of the user", m, ok)
	}
	if m, ok := (&Request{Messages: []Message{{RoleSystem, "S"}}}).LastUser(); ok {
		t.Errorf("LastUser of a request without one = %v", m)
	}
}

// A body with more messages or tools than the limits loses the oldest messages and the last tools.
func TestReadRequestLimits(t *testing.T) {
	body := `{"messages":[` + strings.Repeat(`"old",`, 3*maxMessages) + `"new"],"tools":[{"name":"first"}` + strings.Repeat(`,{"name":"more"}`, maxTools) + `]}`
	r := testenv.Must(ReadRequest("", []byte(body)))(t)
	if n := len(r.Messages); n != maxMessages || r.Messages[n-1].Text != "new" || cap(r.Messages) > 4*maxMessages {
		t.Errorf("%d messages of room for %d, the last %v, want %d ending with the newest", n, cap(r.Messages), r.Messages[n-1], maxMessages)
	}
	if len(r.Tools) != maxTools || r.Tools[0] != "first" {
		t.Errorf("%d tools from %q, want %d from the first", len(r.Tools), r.Tools[0], maxTools)
	}
}

// Every recorded request has a user message, and is grounded if its answer had provider citations.
func TestReadRecordedRequests(t *testing.T) {
	dir := filepath.Join(testenv.Shared(t), "corpus")
	f := testenv.Must(os.Open(filepath.Join(dir, "MANIFEST.tsv")))(t)
	defer f.Close()
	read := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		column := strings.Split(lines.Text(), "\t")
		name := strings.TrimSuffix(column[0], filepath.Ext(column[0])) + ".request.json"
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue // none was recorded
		}
		r, err := ReadRequest(column[2], body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		read++
		if m, ok := r.LastUser(); !ok || m.Text == "" {
			t.Errorf("%s: no words of the user in %+v", name, r)
		}
		// Not requested: files written by code, which are cited, and recitations by a Gemini model.
		unasked := slices.Equal(r.Tools, []string{"code_interpreter"}) || column[1] == "gemini" && r.Tools == nil
		if cited := column[5] != "0"; cited && !r.Grounded && !unasked {
			t.Errorf("%s: not grounded, with %s citations", name, column[5])
		}
	}
	if read < 100 {
		t.Errorf("%d recorded requests, want more than 100", read)
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(`{"model":"m","input":[{"type":"user_input","content":[{"text":"\ud83d"}]}],"tools":[{"toolSpec":{"name":"f"}}]}`)
	f.Add(`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"text":"x`)
	f.Add(`{"contents":{"parts":[[{"functionResponse":{}}]]},"message":{},"system":[[]]}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := ReadRequest("", []byte(body))
		if err != nil {
			if strings.HasPrefix(body, "{") {
				t.Errorf("an object is refused: %v", err)
			}
			return
		}
		for _, m := range r.Messages {
			if !utf8.ValidString(m.Text) || m.Text == "" && m.Role != RoleUser {
				t.Errorf("message %+q", m)
			}
		}
		if len(r.Messages) > maxMessages || len(r.Tools) > maxTools {
			t.Errorf("%d messages, %d tools", len(r.Messages), len(r.Tools))
		}
		for _, tool := range r.Tools {
			if tool == "" || !utf8.ValidString(tool) {
				t.Errorf("tool %+q", tool)
			}
		}
	})
}

func BenchmarkReadRequest(b *testing.B) {
	for _, bench := range []struct {
		name         string
		turns, bytes int // before the question
	}{{"question", 0, 0}, {"2KB", 9, 180}, {"100KB", 9, 10_000}} {
		turn := `{"role":"user","content":"` + strings.Repeat("words ", bench.bytes/6) + `"},`
		body := []byte(`{"model":"gpt-5.2","stream":true,"messages":[` + strings.Repeat(turn, bench.turns) + `{"role":"user","content":"?"}]}`)
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ReadRequest("openai-chat", body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
