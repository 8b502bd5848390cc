package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/ibidhq/ibid/internal/testenv"
)

// TestCompose runs the three programs of packaging/compose.yaml without containers: ibid with the command and
// environment of the file and of the image, PostgreSQL with the user, password and database that the file gives it, and
// NATS. Only addresses and directories are others. The upstream is added.
func TestCompose(t *testing.T) {
	initdb := testenv.Tool(t, "/usr/lib/postgresql/15/bin/initdb")
	ctx, packaging := t.Context(), filepath.Join(testenv.Root(t), "..", "packaging")
	secrets := map[string]string{"IBID_BOOTSTRAP_TOKEN": strings.Repeat("b", 40), "POSTGRES_PASSWORD": "a password"}
	reference := regexp.MustCompile(`\$\{(\w+):\?[^}]*\}`)
	text := reference.ReplaceAllStringFunc(string(testenv.Must(os.ReadFile(filepath.Join(packaging, "compose.yaml")))(t)),
		func(s string) string {
			name := reference.FindStringSubmatch(s)[1]
			if secrets[name] == "" {
				t.Errorf("%s is not among those that the file's comment sets", name)
			}
			return secrets[name]
		})
	var file struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
		}
	}
	testenv.OK(t, yaml.Unmarshal([]byte(text), &file))
	ibid, database := file.Services["ibid"], file.Services["postgres"].Environment

	pg := testenv.Postgres(t)
	_, directory, _ := strings.Cut(pg.DSN, "host=")
	directory, _, _ = strings.Cut(directory, "&")
	sql := func(name, command string) string {
		psql := exec.CommandContext(ctx, filepath.Join(filepath.Dir(initdb), "psql"), //nolint:gosec // our own command
			"-h", directory, "-U", "postgres", "-tAc", command, name)
		said, err := psql.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, said)
		}
		return strings.TrimSpace(string(said))
	}
	// As the image does it: the user owns the database and needs the password.
	sql("postgres", "CREATE ROLE "+database["POSTGRES_USER"]+" LOGIN PASSWORD '"+database["POSTGRES_PASSWORD"]+"'")
	sql("postgres", "DROP DATABASE ibid")
	sql("postgres", "CREATE DATABASE "+database["POSTGRES_DB"]+" OWNER "+database["POSTGRES_USER"])
	access := sql("postgres", "SHOW hba_file")
	rules := testenv.Must(os.ReadFile(access))(t) //nolint:gosec // our server's
	rules = append([]byte("local all "+database["POSTGRES_USER"]+" scram-sha-256\n"), rules...)
	testenv.OK(t, os.WriteFile(access, rules, 0o600))
	sql("postgres", "SELECT pg_reload_conf()")
	relay := testenv.Must(testenv.NewRelay("unix", filepath.Join(directory, ".s.PGSQL.5432")))(t)
	defer relay.Close()

	c := &cluster{dir: t.TempDir(), programs: map[string]string{}, upstream: httptest.NewServer(http.HandlerFunc(provider))}
	defer func() { testenv.OK(t, c.close()) }()
	testenv.OK(t, c.build(ctx, false))
	testenv.OK(t, c.startNATS(ctx))
	listen := testenv.Must(freeAddr(ctx))(t)
	_, port, err := net.SplitHostPort(listen)
	testenv.OK(t, err)
	addresses := strings.NewReplacer("@postgres/", "@"+relay.Addr()+"/", "nats://nats:4222", "nats://"+c.nats[0].addr)
	node := &process{
		name: "ibid", addr: listen, log: filepath.Join(c.dir, "log"),
		argv: []string{c.programs["current"]},
	}
	for _, argument := range ibid.Command {
		node.argv = append(node.argv, addresses.Replace(argument))
	}
	node.argv = append(node.argv, "--upstream", mockName+"="+c.upstream.URL+",provider=openai")
	if all := strings.Join(node.argv, " "); !strings.Contains(all, relay.Addr()) || !strings.Contains(all, c.nats[0].addr) {
		t.Fatalf("the command does not name postgres and nats: %s", all)
	}
	image := string(testenv.Must(os.ReadFile(filepath.Join(packaging, "Containerfile")))(t))
	for _, variables := range regexp.MustCompile(`(?m)^ENV (.+)$`).FindAllStringSubmatch(image, -1) {
		local := strings.NewReplacer("=:8080", "=127.0.0.1:"+port, "=/data", "="+filepath.Join(c.dir, "data"))
		for variable := range strings.FieldsSeq(variables[1]) {
			node.env = append(node.env, local.Replace(variable))
		}
	}
	for name, value := range ibid.Environment {
		node.env = append(node.env, name+"="+value)
	}
	c.nodes = append(c.nodes, node)
	testenv.OK(t, node.start(ctx))
	testenv.OK(t, c.awaitCheck(ctx, http.StatusOK, "store", "ok"))

	request := func(method, path, body string) (*http.Response, string) {
		r := testenv.Must(http.NewRequestWithContext(ctx, method, "http://"+listen+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Ibid-Token", secrets["IBID_BOOTSTRAP_TOKEN"])
		response, err := http.DefaultClient.Do(r)
		testenv.OK(t, err)
		said, err := io.ReadAll(response.Body)
		testenv.OK(t, errors.Join(err, response.Body.Close()))
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %s\n%s", path, response.Status, said, node.logTail())
		}
		return response, string(said)
	}
	answer, said := request(http.MethodPost, callPath, question("compose"))
	testenv.Equal(t, "response", answerBody("compose"), said)
	id := answer.Header.Get("Ibid-Answer")
	if _, said := request(http.MethodGet, "/v1/answers/"+id, ""); !strings.Contains(said, id) {
		t.Errorf("answer: %s", said)
	}
	testenv.Until(t, "the answer is in PostgreSQL", func() bool {
		return sql(database["POSTGRES_DB"], "SELECT count(*) FROM calls WHERE answer_id = '"+id+"'") == "1"
	})
}
