package api_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// Long conversations and runs are paged from their end. Messages that clients repeat with every call appear once, even
// across pages.
func TestThreadPages(t *testing.T) {
	n := newNode(t, nil)
	prompt := []store.Message{{Role: "system", Text: "Be brief."}}
	for i := range 105 {
		c := call(fmt.Sprintf("ans_%03d", i), herons("https://heron.example/"))
		c.Run, c.Conversation, c.Step, c.Started = "r1", "c1", store.Step{}, started.Add(time.Duration(i)*time.Second)
		c.Prompt = append(prompt[:1:1], store.Message{Role: "user", Text: fmt.Sprint("Question ", i)})
		n.put(t, c)
	}
	var talk struct {
		Messages []struct {
			Role, Text string
			AnswerID   string `json:"answer_id"`
		}
		NextCursor *string `json:"next_cursor"`
	}
	n.read(t, "/v1/conversations/c1", &talk)
	if len(talk.Messages) != 200 || talk.NextCursor == nil {
		t.Fatalf("%d messages, cursor %v", len(talk.Messages), talk.NextCursor)
	}
	if first, second, last := talk.Messages[0], talk.Messages[1], talk.Messages[199]; first.Text != "Question 5" || second.AnswerID != "ans_005" || last.AnswerID != "ans_104" {
		t.Errorf("%+v, %+v … %+v", first, second, last)
	}
	n.read(t, query("/v1/conversations/c1", "limit", "3", "cursor", *talk.NextCursor), &talk)
	var said []string
	for _, m := range talk.Messages {
		said = append(said, m.Text+m.AnswerID)
	}
	testenv.Equal(t, "the page before", []string{"Question 2", "ans_002", "Question 3", "ans_003", "Question 4", "ans_004"}, said)
	n.read(t, query("/v1/conversations/c1", "cursor", *talk.NextCursor), &talk)
	if len(talk.Messages) != 5 || talk.Messages[0].Text != "Be brief." || talk.NextCursor != nil {
		t.Errorf("the first page: %+v", talk)
	}
	var run struct {
		Answers int
		Steps   []struct {
			Number   int
			After    []int
			AnswerID string `json:"answer_id"`
		}
		NextCursor *string `json:"next_cursor"`
	}
	n.read(t, "/v1/runs/r1", &run)
	if run.Answers != 105 || len(run.Steps) != 100 || run.Steps[0].Number != 6 || run.Steps[99].AnswerID != "ans_104" || run.NextCursor == nil {
		t.Fatalf("%+v", run)
	}
	n.read(t, query("/v1/runs/r1", "cursor", *run.NextCursor), &run)
	if len(run.Steps) != 5 || run.Steps[4].Number != 5 || run.Steps[4].After[0] != 4 || run.NextCursor != nil {
		t.Errorf("the first page: %+v", run)
	}
	for _, path := range []string{"/v1/runs/r1?limit=101", "/v1/runs/r1?cursor=x", "/v1/conversations/c1?limit=0", "/v1/conversations/c1?cursor=x"} {
		wantProblem(t, n.get(t, path), 400)
	}
}

// A damaged index is not reported as temporary.
func TestDamagedIndex(t *testing.T) {
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	db := testenv.Must(sql.Open("sqlite", filepath.Join(n.dir, "ibid.db")))(t)
	defer db.Close()
	testenv.Must(db.Exec("DELETE FROM words_data"))(t)
	wantProblem(t, n.get(t, "/v1/answers?q=herons"), 500)
}
