package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/openapi"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
)

var update = flag.Bool("update", false, "rewrite the description of the API")

// answered are responses from the API's own tests by operation, for the examples in the description.
var answered = map[string]string{
	"getAnswers": "answers.json", "getAnswersById": "answer.json", "getConversations": "conversations.json",
	"getConversationsById": "conversation.json", "getSources": "sources.json", "getRuns": "runs.json",
	"getRunsById": "run.json", "getFeedback": "feedback.json", "postRunsByIdSteps": "recorded.json",
	"getSourcesVersions": "versions.json", "getReadyz": "readyz.json",
}

// api/openapi.json is generated from the route tables, their types and the comments of these.
func TestOpenAPI(t *testing.T) {
	root := testenv.Root(t)
	examples := map[string]json.RawMessage{}
	for operation, file := range answered {
		examples[operation] = testenv.Must(os.ReadFile(filepath.Join(root, "api", "testdata", file)))(t)
	}
	want := testenv.Must(openapi.Write(&openapi.Options{Root: root, Routes: server.Routes(), Examples: examples}))(t)
	name := filepath.Join(root, "api", "openapi.json")
	if *update {
		testenv.OK(t, os.WriteFile(name, want, 0o666))
		return
	}
	is := testenv.Must(os.ReadFile(name))(t)
	if !bytes.Equal(is, want) {
		t.Errorf("api/openapi.json is out of date, make generate writes it (-is +should be):\n%s",
			cmp.Diff(string(is), string(want)))
	}
}
