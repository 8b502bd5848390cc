// Package kinds contains only tests. They check that every kind of citation for which a provider's SDK has a type is
// decoded.
package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// sdkType is a line of types.txt.
type sdkType struct{ Format, Holder, Go, JavaScript, Python string }

// kinds are the kinds of a type, each with the JSON names of its members. The only kind of a type is "".
type kinds map[string][]string

// unread returns the kinds and members that are irrelevant to what an answer rests on, by "format holder.name", with
// the reason.
func unread(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, row := range testenv.Cases(t, "unread.txt", 2) {
		all[row[0]] = row[1]
	}
	return all
}

func TestGo(t *testing.T) {
	check(t, func(s *sdkType) string { return s.Go }, readGo)
}

func TestJavaScript(t *testing.T) {
	node := testenv.Tool(t, "node")
	for _, dir := range []string{"npm", "web"} {
		if _, err := os.Stat(filepath.Join("..", dir, "node_modules")); err != nil {
			absent := t.Skipf
			if slices.Contains(strings.Split(os.Getenv("IBID_REQUIRE"), ","), "tools") {
				absent = t.Fatalf
			}
			absent("the packages of interop/%s are missing: make interop installs them", dir)
		}
	}
	check(t, func(s *sdkType) string { return s.JavaScript }, program(filepath.Join("..", "npm"), node, "kinds.mjs"))
}

func TestPython(t *testing.T) {
	python := testenv.Python(t)
	check(t, func(s *sdkType) string { return s.Python }, program("..", python, filepath.Join("python", "kinds.py")))
}

// program returns a function that reads types by running a program.
func program(dir, name, file string) func(*testing.T, []string) map[string]kinds {
	return func(t *testing.T, types []string) (all map[string]kinds) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, file)
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(testenv.Must(json.Marshal(types))(t))
		var log strings.Builder
		cmd.Stderr = &log
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, &log)
		}
		testenv.OK(t, json.Unmarshal(out, &all))
		return all
	}
}

// check reads the types of an SDK and fails for every kind and member that no vector shows to be decoded.
func check(t *testing.T, column func(*sdkType) string, read func(*testing.T, []string) map[string]kinds) {
	t.Helper()
	rows := testenv.Table[sdkType](t, "types.txt")
	var types []string
	for i := range rows {
		if name := column(&rows[i]); name != "" {
			types = append(types, name)
		}
	}
	found, skipped := read(t, types), unread(t)
	seen := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if column(r) == "" {
			continue
		}
		of := found[column(r)]
		for kind, members := range of {
			names := members
			if kind != "" {
				names = append([]string{""}, members...)
			}
			for _, member := range names {
				if member == "type" || seen[fmt.Sprint(r.Format, r.Holder, kind, member)] {
					continue
				}
				seen[fmt.Sprint(r.Format, r.Holder, kind, member)] = true
				m := mutation{r.Holder, kind, snake(member)}
				name := r.Format + " " + m.String()
				if skipped[name] != "" || skipped[r.Format+" "+kind+".*"] != "" && member != "" {
					continue
				}
				if !vectorsOf(t, r.Format).show(t, &m) {
					t.Errorf("%s: no vector shows that %q is decoded", column(r), name)
				}
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d kinds and members: the types are not read correctly", len(seen))
	}
}

// snake returns a name in snake_case.
func snake(name string) string {
	return strings.ToLower(capital.ReplaceAllString(name, "${1}_$2"))
}

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// mutation renames what a decoder must read: the kind of all objects of a kind, or one of their members.
type mutation struct{ holder, kind, member string }

func (m *mutation) String() string {
	name := m.holder
	if name == "*" || m.kind != "" {
		name = m.kind
	}
	if m.member != "" {
		name += "." + m.member
	}
	return name
}

// apply renames in the value of a member called holder, and reports whether there was anything to rename.
func (m *mutation) apply(v any, holder string) (done bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			done = m.apply(e, holder) || done
		}
	case map[string]any:
		for name, e := range v {
			done = m.apply(e, name) || done
		}
		kind, _ := v["type"].(string)
		if m.kind == "" && snake(holder) != snake(m.holder) || m.kind != "" && kind != m.kind {
			return done
		}
		if m.member == "" {
			v["type"] = "un" + m.kind
			return true
		}
		for _, name := range slices.Collect(maps.Keys(v)) {
			if snake(name) == m.member {
				v["un"+name] = v[name]
				delete(v, name)
				done = true
			}
		}
	}
	return done
}

// input is a body or a stream of a vector.
type input struct {
	name string
	opts ibid.DecodeOptions
	data []byte
}

type inputs []input

// vectorsOf returns the inputs from the vectors of a format.
func vectorsOf(t *testing.T, format string) (all inputs) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", format, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors of %s: %v", format, err)
	}
	for _, file := range files {
		archive := testenv.Must(txtar.ParseFile(file))(t)
		opts := ibid.DecodeOptions{Format: format}
		for _, f := range archive.Files {
			if f.Name == "request.json" {
				opts.Request = f.Data
			}
		}
		for _, f := range archive.Files {
			switch f.Name {
			case "body.json", "stream.sse", "stream.ndjson", "stream.array.json":
				all = append(all, input{f.Name, opts, f.Data})
			}
		}
	}
	return all
}

// show reports whether both a body and a stream decode to a different answer once the mutation has been applied. If
// only bodies or only streams contain a member, they suffice.
func (all inputs) show(t *testing.T, m *mutation) bool {
	t.Helper()
	body, stream := false, false
	for _, in := range all {
		if isBody := in.name == "body.json"; isBody && body || !isBody && stream {
			continue
		}
		changed, ok := in.rewrite(m)
		if !ok {
			continue
		}
		plain, _ := in.rewrite(nil)
		if bytes.Equal(in.document(t, plain), in.document(t, changed)) {
			continue
		}
		body, stream = body || in.name == "body.json", stream || in.name != "body.json"
	}
	if m.member == "" {
		return body && stream
	}
	return body || stream
}

// rewrite applies a mutation to the documents of an input, and reports whether it changed any.
func (in *input) rewrite(m *mutation) (out []byte, done bool) {
	if in.name != "stream.sse" && in.name != "stream.ndjson" {
		return rewriteJSON(in.data, m)
	}
	for line := range bytes.Lines(in.data) {
		begin := bytes.IndexByte(line, '{')
		if begin < 0 || !bytes.HasPrefix(line, []byte("data:")) && begin > 0 {
			out = append(out, line...)
			continue
		}
		document, changed := rewriteJSON(line[begin:], m)
		out, done = append(append(append(out, line[:begin]...), document...), '\n'), done || changed
	}
	return out, done
}

func rewriteJSON(data []byte, m *mutation) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return data, false
	}
	done := m != nil && m.apply(v, "")
	out, err := json.Marshal(v)
	if err != nil {
		return data, false
	}
	return out, done
}

// document returns the decoded document, without the provider's JSON and without issues.
func (in *input) document(t *testing.T, data []byte) []byte {
	t.Helper()
	a, _ := ibid.Decode(data, &in.opts) // some are truncated
	d := a.Document(nil)
	d.Activities = nil // they repeat what the provider sent
	d.Issues = slices.DeleteFunc(d.Issues, func(is ibid.Issue) bool { return is.Code != "source-not-retrieved" })
	return testenv.Must(json.Marshal(d))(t)
}
