package api_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail/otel"
)

const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	tracesOf = `{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}`
)

// tracedRun has the spans of a run in OTLP's JSON, the root last, as an exporter sends what ends last.
func tracedRun() []string {
	const text = "The old mill has stood empty since 1951, and herons nest in it."
	span := func(id, parent, name string, begin, end int, attributes ...string) string {
		list := []string{}
		for i := 0; i+1 < len(attributes); i += 2 {
			list = append(list, fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, attributes[i], attributes[i+1]))
		}
		return fmt.Sprintf(`{"traceId":%q,"spanId":%q,"parentSpanId":%q,"name":%q,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}`,
			traceID, id, parent, name, 1773478800000000000+begin, 1773478800000000000+end, strings.Join(list, ","))
	}
	return []string{
		span("00000000000000a2", "00000000000000a1", "find", 10, 20, "openinference.span.kind", "RETRIEVER", "input.value", "herons",
			"retrieval.documents.0.document.id", "mill.txt", "retrieval.documents.0.document.content", text,
			"retrieval.documents.1.document.id", "bridge.txt", "retrieval.documents.1.document.content", "The bridge was rebuilt after the flood."),
		span("00000000000000a4", "00000000000000a3", "GET /mill", 31, 32, "http.request.method", "GET"),
		span("00000000000000a3", "00000000000000a1", "chat", 30, 40, "gen_ai.operation.name", "chat",
			"gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"`+text+` Where do herons nest?"}]}]`,
			"gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"In the old mill [mill.txt]."}]}]`),
		span("00000000000000a1", "", "agent", 0, 50, "openinference.span.kind", "AGENT", "agent.name", "guide",
			"input.value", "Where do herons nest?", "output.value", "In the old mill [mill.txt]."),
	}
}

func (n *node) wantTraced(t *testing.T) {
	t.Helper()
	var summary struct {
		Original string `json:"original_question"`
		Final    string `json:"final_answer"`
		Steps    []struct {
			Number  int   `json:"step_number"`
			After   []int `json:"after"`
			Sources []struct {
				ID                     string `json:"document_id"`
				Retrieved, Used, Cited bool
			} `json:"source_attributions"`
		} `json:"reasoning_steps"`
		Summary struct {
			Usage map[string][]string `json:"source_usage_by_step"`
		} `json:"source_summary"`
	}
	n.read(t, "/v1/runs/"+traceID+"/summary", &summary)
	if summary.Original != "Where do herons nest?" || summary.Final != "In the old mill [mill.txt]." || len(summary.Steps) != 2 {
		t.Fatalf("%+v", summary)
	}
	testenv.Equal(t, "", map[string][]string{"1": {"mill.txt"}, "2": {"mill.txt"}}, summary.Summary.Usage)
	find, chat := summary.Steps[0], summary.Steps[1]
	if len(find.Sources) != 2 || find.Sources[1].Used || !slices.Equal(chat.After, []int{find.Number}) || !chat.Sources[0].Cited {
		t.Errorf("%+v", summary.Steps)
	}
	var runs struct {
		Runs []struct {
			ID, Agent string
			Question  string `json:"original_question"`
		}
	}
	n.read(t, "/v1/runs", &runs)
	if len(runs.Runs) != 1 || runs.Runs[0].ID != traceID || runs.Runs[0].Agent != "guide" || runs.Runs[0].Question != "Where do herons nest?" {
		t.Errorf("the list of runs: %+v", runs)
	}
}

// The spans of a run come in any order, each in a request of its own, some of them again.
func TestTracesPiecemeal(t *testing.T) {
	n := newNode(t, nil)
	spans := tracedRun()
	for _, i := range []int{3, 1, 0, 3, 2, 0} {
		res := n.do(t, "POST", "/v1/traces", fmt.Sprintf(tracesOf, spans[i]), "Content-Type", "application/json")
		if res.StatusCode != 200 || res.body != "{}" || res.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("%d %s", res.StatusCode, res.body)
		}
	}
	n.wantTraced(t)
}

// In protobuf, packed, all at once.
func TestTracesProtobuf(t *testing.T) {
	n := newNode(t, &gateway.GuardOptions{})
	packed := gzipped(t, tracesProto(t, tracedRun()))
	for range 2 {
		res := n.do(t, "POST", "/v1/traces", packed, "Content-Type", "application/x-protobuf", "Content-Encoding", "gzip")
		if res.StatusCode != 200 || res.body != "" || res.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Fatalf("%d %q", res.StatusCode, res.body)
		}
	}
	n.wantTraced(t)
}

func gzipped(t *testing.T, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	testenv.OK(t, w.Close())
	return b.String()
}

// tracesProto makes protobuf of spans in OTLP's JSON, with OpenTelemetry's types.
func tracesProto(t *testing.T, spans []string) []byte {
	t.Helper()
	data := &tracepb.TracesData{}
	trails, err := otel.ReadSpans(otel.JSON, fmt.Appendf(nil, tracesOf, strings.Join(spans, ",")), nil)
	if err != nil || trails.Rejected > 0 {
		t.Fatal(err, trails)
	}
	body := fmt.Sprintf(tracesOf, strings.Join(spans, ","))
	// protojson has ids in base64.
	for hexID, id := range map[string]string{
		traceID: "CvdlGRbNQ92ESOshHIAxnA==", "00000000000000a1": "AAAAAAAAAKE=", "00000000000000a2": "AAAAAAAAAKI=", "00000000000000a3": "AAAAAAAAAKM=",
		"00000000000000a4": "AAAAAAAAAKQ=",
	} {
		body = strings.ReplaceAll(body, `"`+hexID+`"`, `"`+id+`"`)
	}
	testenv.OK(t, protojson.Unmarshal([]byte(body), data))
	return testenv.Must(proto.Marshal(data))(t)
}

// What cannot be kept is counted, and what can is kept.
func TestTracesPartial(t *testing.T) {
	n := newNode(t, nil)
	named := strings.Replace(tracedRun()[3], `"attributes":[`, `"attributes":[{"key":"ibid.run","value":{"stringValue":"a run/with a slash"}},`, 1)
	named = strings.ReplaceAll(named, traceID, "1af7651916cd43dd8448eb211c80319c")
	body := fmt.Sprintf(tracesOf, strings.Join(append(tracedRun(), named, `{"traceId":"short"}`), ","))
	res := n.do(t, "POST", "/v1/traces", body, "Content-Type", "application/json; charset=utf-8")
	const want = `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"span 6: its trace id or its span id is missing or has another form than OTLP's"}}`
	if res.StatusCode != 200 || res.body != want {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	n.wantTraced(t)
	bad := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), nil)
	bad = protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bad)
	bad = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), bad)
	res = n.do(t, "POST", "/v1/traces", string(bad), "Content-Type", "application/x-protobuf")
	rejected, message := partialSuccess(t, res.body)
	if res.StatusCode != 200 || rejected != 1 || !strings.HasPrefix(message, "span 1: ") {
		t.Errorf("%d: %d rejected, %q", res.StatusCode, rejected, message)
	}
}

// partialSuccess reads an ExportTraceServiceResponse.
func partialSuccess(t *testing.T, body string) (rejected uint64, message string) {
	t.Helper()
	inner, _ := message1(t, []byte(body), 1)
	message2, rest := message1(t, inner, 2)
	return rest, string(message2)
}

// message1 returns the bytes of a field, and the number in field 1.
func message1(t *testing.T, b []byte, want protowire.Number) (found []byte, first uint64) {
	t.Helper()
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			t.Fatalf("no protobuf: %q", b)
		}
		b = b[size:]
		switch kind {
		case protowire.VarintType:
			var n uint64
			if n, size = protowire.ConsumeVarint(b); number == 1 {
				first = n
			}
		case protowire.BytesType:
			var v []byte
			if v, size = protowire.ConsumeBytes(b); number == want {
				found = v
			}
		default:
			t.Fatalf("a field of the type %d", kind)
		}
		if size < 0 {
			t.Fatalf("no protobuf: %q", b)
		}
		b = b[size:]
	}
	return found, first
}

// Of more spans than a run may have steps the first are kept.
func TestTracesMany(t *testing.T) {
	n := newNode(t, nil)
	spans := make([]string, store.MaxSteps+50)
	for i := range spans {
		spans[i] = fmt.Sprintf(`{"traceId":"%s","spanId":"%016x","attributes":[{"key":"openinference.span.kind","value":{"stringValue":"LLM"}}]}`, traceID, i+1)
	}
	res := n.do(t, "POST", "/v1/traces", fmt.Sprintf(tracesOf, strings.Join(spans, ",")), "Content-Type", "application/json")
	if res.StatusCode != 200 || !strings.Contains(res.body, `"rejectedSpans":"50"`) || !strings.Contains(res.body, "may have 10000") {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	var run struct {
		Recorded int `json:"recorded_steps"`
	}
	if n.read(t, "/v1/runs/"+traceID, &run); run.Recorded != store.MaxSteps {
		t.Errorf("%d steps", run.Recorded)
	}
}

// Errors are a google.rpc.Status in the encoding of the request.
func TestTracesErrors(t *testing.T) {
	n := newNode(t, &gateway.GuardOptions{Bootstrap: "b"})
	reader, writer := n.token(t, store.DefaultTenant, store.ScopeRead), n.token(t, store.DefaultTenant, store.ScopeWrite)
	large := strings.Repeat(" ", 32<<20+1)
	bomb := gzipped(t, []byte(large))
	for _, test := range []struct {
		name, method, token, contentType, coding, body string
		status, code                                   int
		say                                            string
	}{
		{"no token", "POST", "", "application/json", "", "{}", 401, 16, "token"},
		{"another scope", "POST", reader, "application/x-protobuf", "", "", 403, 7, "write"},
		{"method", "GET", writer, "application/json", "", "", 405, 12, "POST"},
		{"media type", "POST", writer, "application/grpc", "", "{}", 415, 3, "x-protobuf"},
		{"no media type", "POST", writer, "", "", "{}", 415, 3, "application/json"},
		{"coding", "POST", writer, "application/json", "snappy", "{}", 415, 3, "gzip"},
		{"not gzip", "POST", writer, "application/json", "gzip", "{}", 400, 3, "cannot be read"},
		{"not JSON", "POST", writer, "application/json", "", "resourceSpans", 400, 3, "JSON"},
		{"another JSON", "POST", writer, "application/json", "", "[]", 400, 3, "all of it: a JSON array"},
		{"not protobuf", "POST", writer, "application/x-protobuf", "", "\xff", 400, 3, "protobuf"},
		{"too large", "POST", writer, "application/json", "", large, 413, 3, "33554432"},
		{"a bomb", "POST", writer, "application/x-protobuf", "gzip", bomb, 413, 3, "33554432"},
		{"a parameter", "POST", writer, "application/json", "", "{}", 400, 3, "q"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fields, path := []string{}, "/v1/traces"
			if test.name == "a parameter" {
				path += "?q=1"
			}
			for name, value := range map[string]string{"Content-Type": test.contentType, "Content-Encoding": test.coding} {
				if value != "" {
					fields = append(fields, name, value)
				}
			}
			if test.token != "" {
				fields = append(fields, bearer(test.token)...)
			}
			res := n.do(t, test.method, path, test.body, fields...)
			wantType := "application/json"
			var code int
			var message string
			if test.contentType == otel.Protobuf {
				wantType = otel.Protobuf
				b, first := message1(t, []byte(res.body), 2)
				code, message = int(first), string(b)
			} else if _, err := fmt.Sscanf(res.body, `{"code":%d`, &code); err == nil {
				message = res.body
			}
			if res.StatusCode != test.status || code != test.code || !strings.Contains(message, test.say) || res.Header.Get("Content-Type") != wantType {
				t.Errorf("%d, code %d, %s: %q", res.StatusCode, code, res.Header.Get("Content-Type"), res.body)
			}
			if test.status == http.StatusUnauthorized && res.Header.Get("WWW-Authenticate") == "" {
				t.Error("it does not say how to log in")
			}
		})
	}
	if res := n.do(t, "POST", "/v1/traces", "", "Content-Type", "application/x-protobuf", "Authorization", "Bearer "+writer); res.StatusCode != 200 || res.body != "" {
		t.Errorf("an empty request: %d %q", res.StatusCode, res.body)
	}
}

// A store that is away is told so that exporters try again.
func TestTracesStoreAway(t *testing.T) {
	n := newNode(t, nil)
	testenv.OK(t, n.store.Close())
	res := n.do(t, "POST", "/v1/traces", fmt.Sprintf(tracesOf, tracedRun()[3]), "Content-Type", "application/json")
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !strings.HasPrefix(res.body, `{"code":14,`) {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, res.body)
	}
}

// Each tenant has its own runs, even with the same trace.
func TestTracesTenants(t *testing.T) {
	n := newNode(t, &gateway.GuardOptions{Bootstrap: "b"})
	one, two := n.token(t, "one", store.ScopeWrite), n.token(t, "two", store.ScopeRead)
	if res := n.do(t, "POST", "/v1/traces", fmt.Sprintf(tracesOf, tracedRun()[3]), "Content-Type", "application/json", "Ibid-Token", one); res.StatusCode != 200 {
		t.Fatal(res.StatusCode, res.body)
	}
	if res := n.get(t, "/v1/runs/"+traceID+"/summary", "Ibid-Token", two); res.StatusCode != 404 {
		t.Errorf("another tenant gets %d %s", res.StatusCode, res.body)
	}
}
