package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
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

// answerSchemaID is where the schema of the answer document can be found.
const answerSchemaID = "https://github.com/ibidhq/ibid/blob/main/api/answer.schema.json"

// api/answer.schema.json is generated from the type of the answer document, and holds for the documents of all vectors'
// formats.
func TestOpenAPIAnswerSchema(t *testing.T) {
	root := testenv.Root(t)
	want := testenv.Must(
		openapi.Schema(root, answerSchemaID, "The answer document, version 1", reflect.TypeFor[ibid.Document]()))(t)
	name := filepath.Join(root, "api", "answer.schema.json")
	if *update {
		testenv.OK(t, os.WriteFile(name, want, 0o666))
	} else if !bytes.Equal(api.AnswerSchema(), want) {
		t.Error("api/answer.schema.json is out of date, make generate writes it")
	}
	compiler := jsonschema.NewCompiler()
	testenv.OK(t, compiler.AddResource(answerSchemaID, testenv.Must(jsonschema.UnmarshalJSON(bytes.NewReader(want)))(t)))
	schema := testenv.Must(compiler.Compile(answerSchemaID))(t)
	archives := testenv.Must(filepath.Glob(filepath.Join(root, "testdata", "*", "*.txtar")))(t)
	for _, name := range archives {
		for _, f := range testenv.Must(txtar.ParseFile(name))(t).Files {
			if !strings.HasPrefix(f.Name, "body") && !strings.HasPrefix(f.Name, "stream") {
				continue
			}
			answer, _ := ibid.Decode(f.Data, nil) // a damaged one has a document, too
			document := testenv.Must(answer.Document(nil).JSON())(t)
			value := testenv.Must(jsonschema.UnmarshalJSON(bytes.NewReader(document)))(t)
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %s: %v", name, f.Name, err)
			}
		}
	}
	if len(archives) < 100 {
		t.Errorf("%d archives", len(archives))
	}
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
