package servertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ibidhq/ibid/gateway"
)

// Story is a script that talks to servers in the test's process, which its commands start and keep in World.
type Story[W any] struct {
	*testscript.TestScript

	TB    testing.TB
	World *W
}

type script = Story[struct{}]

// Serve sets the server that subsequent requests go to.
func (s *Story[W]) Serve(url string) {
	s.Setenv("URL", url)
	s.Setenv("HOST", strings.TrimPrefix(url, "http://"))
}

// Stories runs the scripts of testdata/story with additional variables. In addition to the commands of testscript and
// those of the test they have
//
//	http [FLAG…] METHOD PATH [BODY | @FILE]  makes a request to $URL. The response body becomes standard output, its
//	                                         header standard error. The status must be below 300, or the body a
//	                                         complete problem.
//	  -s STATUS[/CODE]                       requires this status, and a problem with this code
//	  -as TOKEN                              sends the access token $TOKEN
//	  -H 'FIELD: VALUE'                      sends a header field, also Host
//	  -until TEXT                            reads a stream up to TEXT
//	  -plain                                 the body of an error is not a problem
//	json PATH VALUE…                         checks values of the last body: .a.0.b; .a.*.b for all elements, .a.len
//	                                         for their number
//	keep VARIABLE PATH                       sets a variable to such a value
//	field NAME VARIABLE [PATTERN]            sets a variable to a field of the last header, or to the group of a
//	                                         regular expression in it
func Stories[W any](t *testing.T, vars map[string]string, commands map[string]func(s *Story[W], args []string)) {
	t.Helper()
	type values struct {
		tb    testing.TB
		world *W
	}
	cmds := map[string]func(*testscript.TestScript, bool, []string){}
	add := func(name string, run func(*testscript.TestScript, values, []string)) {
		cmds[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg {
				ts.Fatalf("%s cannot be negated", name)
			}
			run(ts, ts.Value(values{}).(values), args)
		}
	}
	for name, run := range commands {
		add(name, func(ts *testscript.TestScript, v values, args []string) { run(&Story[W]{ts, v.tb, v.world}, args) })
	}
	for name, run := range map[string]func(*script, []string){
		"http": request, "json": wantJSON, "keep": keep, "field": field,
	} {
		add(name, func(ts *testscript.TestScript, v values, args []string) { run(&script{ts, v.tb, nil}, args) })
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/story", Cmds: cmds, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			for name, value := range vars {
				env.Setenv(name, value)
			}
			env.Values[values{}] = values{env.T().(testing.TB), new(W)}
			return nil
		},
	})
}

// codes maps statuses to the codes of problems.
var codes = map[int]string{
	400: gateway.CodeBadRequest, 401: gateway.CodeToken, 403: gateway.CodeScope, 404: gateway.CodeNotFound,
	405: gateway.CodeMethod, 409: gateway.CodeConflict, 413: gateway.CodeTooLarge, 415: gateway.CodeMediaType,
	422: gateway.CodeUnreadable, 429: gateway.CodeTooMany, 500: gateway.CodeInternal, 502: gateway.CodeUpstream,
	503: gateway.CodeUnavailable,
}

func request(s *script, args []string) {
	status, code, until, plain, header := 0, "", "", false, http.Header{}
	for len(args) > 1 && strings.HasPrefix(args[0], "-") {
		flag, value := args[0], args[1]
		args = args[2:]
		switch flag {
		case "-s":
			number, other, _ := strings.Cut(value, "/")
			var err error
			status, err = strconv.Atoi(number)
			s.Check(err)
			code = cmp.Or(other, codes[status])
		case "-as":
			header.Set("Authorization", "Bearer "+s.Getenv(value))
		case "-H":
			name, content, _ := strings.Cut(value, ":")
			header.Add(name, strings.TrimSpace(content))
		case "-until":
			until = value
		case "-plain":
			plain, args = true, append([]string{value}, args...)
		default:
			s.Fatalf("http has no flag %s", flag)
		}
	}
	if len(args) < 2 || len(args) > 3 {
		s.Fatalf("usage: http [FLAG…] METHOD PATH [BODY]")
	}
	r, err := http.NewRequestWithContext(s.TB.Context(), args[0], s.Getenv("URL"), strings.NewReader(s.text(args[2:])))
	s.Check(err)
	r.URL.Opaque, r.Header, r.Host = args[1], header, header.Get("Host") // hostile paths must be sent unchanged
	res, err := http.DefaultTransport.RoundTrip(r)
	s.Check(err)
	defer func() { _ = res.Body.Close() }()
	body := s.body(res.Body, until)
	_, err = io.WriteString(s.Stdout(), body)
	s.Check(err)
	var fields strings.Builder
	s.Check(res.Header.Write(&fields))
	_, err = io.WriteString(s.Stderr(), strings.ReplaceAll(fields.String(), "\r", ""))
	s.Check(err)
	if status != res.StatusCode && (status != 0 || res.StatusCode >= 300) {
		s.Fatalf("status %d: %.2000s", res.StatusCode, body)
	}
	if status >= 400 && !plain && args[0] != http.MethodHead {
		wantProblem(s, res, body, code)
	}
}

// text returns the body of a request: a word, or the content of the file after @.
func (s *Story[W]) text(args []string) string {
	body := strings.Join(args, "")
	if name, ok := strings.CutPrefix(body, "@"); ok {
		return s.ReadFile(name)
	}
	return body
}

// body reads a body, up to until unless it is empty.
func (s *Story[W]) body(r io.Reader, until string) string {
	var b strings.Builder
	buffer := make([]byte, 4<<10)
	for {
		n, err := r.Read(buffer)
		b.Write(buffer[:n])
		switch {
		case until != "" && strings.Contains(b.String(), until):
			return b.String()
		case err == io.EOF && until == "":
			return b.String()
		case err != nil:
			s.Fatalf("%v, after %s", err, b.String())
		}
	}
}

func wantProblem(s *script, res *http.Response, body, code string) {
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	err := json.Unmarshal([]byte(body), &p)
	_, got, _ := strings.Cut(p.Type, "#")
	if err != nil || res.Header.Get("Content-Type") != "application/problem+json" || p.Status != res.StatusCode ||
		got != code || p.Title == "" || p.Detail == "" || len(body) > 4000 {
		s.Fatalf("no problem with the code %s: %v %s", code, err, body)
	}
}

func wantJSON(s *script, args []string) {
	if len(args) == 0 || len(args)%2 != 0 {
		s.Fatalf("usage: json PATH VALUE…")
	}
	for pair := range slices.Chunk(args, 2) {
		if got := s.value(pair[0]); got != pair[1] {
			s.Fatalf("%s is %s, want %s, in %s", pair[0], got, pair[1], s.ReadFile("stdout"))
		}
	}
}

func keep(s *script, args []string) {
	if len(args) != 2 {
		s.Fatalf("usage: keep VARIABLE PATH")
	}
	s.Setenv(args[0], s.value(args[1]))
}

func field(s *script, args []string) {
	for line := range strings.Lines(s.ReadFile("stderr")) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); strings.EqualFold(name, args[0]) {
			if len(args) > 2 {
				group := regexp.MustCompile(args[2]).FindStringSubmatch(value)
				if len(group) < 2 {
					s.Fatalf("%s does not match %s", value, args[2])
				}
				value = group[1]
			}
			s.Setenv(args[1], value)
			return
		}
	}
	s.Fatalf("no field %s", args[0])
}

// value returns the values at a path of the last body, separated by spaces: strings as they are, others as JSON.
func (s *Story[W]) value(path string) string {
	var body any
	s.Check(json.Unmarshal([]byte(s.ReadFile("stdout")), &body))
	found := []any{body}
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		var next []any
		for _, v := range found {
			next = append(next, members(v, name)...)
		}
		found = next
	}
	words := make([]string, len(found))
	for i, v := range found {
		if text, ok := v.(string); ok {
			words[i] = text
			continue
		}
		b, err := json.Marshal(v)
		s.Check(err)
		words[i] = string(b)
	}
	return strings.Join(words, " ")
}

// members returns the members of a value called name.
func members(v any, name string) []any {
	switch v := v.(type) {
	case map[string]any:
		switch member, ok := v[name]; {
		case name == "len":
			return []any{len(v)}
		case ok:
			return []any{member}
		case name == "*":
			var all []any
			for _, key := range slices.Sorted(maps.Keys(v)) {
				all = append(all, v[key])
			}
			return all
		}
	case []any:
		at, err := strconv.Atoi(name)
		switch {
		case name == "len":
			return []any{len(v)}
		case name == "*":
			return v
		case err == nil && at < 0:
			at += len(v)
		}
		if err == nil && at >= 0 && at < len(v) {
			return []any{v[at]}
		}
	}
	return []any{fmt.Sprintf("(no %s)", name)}
}
