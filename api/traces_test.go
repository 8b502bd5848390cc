package api_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
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

// tracedRun returns the spans of the story's run in OTLP's JSON, the root last, as exporters send spans when they end.
func tracedRun(t *testing.T) []string {
	t.Helper()
	archive := testenv.Must(txtar.ParseFile("testdata/story/traces.txtar"))(t)
	var all []string
	for _, f := range archive.Files[:4] {
		span, _ := strings.CutPrefix(string(f.Data), strings.Split(tracesOf, "%s")[0])
		all = append(all, strings.TrimSuffix(strings.TrimSpace(span), strings.Split(tracesOf, "%s")[1]))
	}
	return all
}

// As protobuf, compressed, in one request.
func TestTracesProtobuf(t *testing.T) {
	n := newNode(t, &gateway.GuardOptions{})
	packed := gzipped(t, tracesProto(t, tracedRun(t)))
	for range 2 {
		res := n.do(t, "POST", "/v1/traces", packed, "Content-Type", "application/x-protobuf", "Content-Encoding", "gzip")
		if res.StatusCode != 200 || res.body != "" || res.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Fatalf("%d %q", res.StatusCode, res.body)
		}
	}
	var summary struct {
		Summary struct {
			Usage map[string][]string `json:"source_usage_by_step"`
		} `json:"source_summary"`
	}
	n.read(t, "/v1/runs/"+traceID+"/summary", &summary)
	testenv.Equal(t, "", map[string][]string{"1": {"mill.txt"}, "2": {"mill.txt"}}, summary.Summary.Usage)
}

func gzipped(t *testing.T, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	testenv.Must(w.Write(data))(t)
	testenv.OK(t, w.Close())
	return b.String()
}

// tracesProto encodes spans from OTLP's JSON as protobuf, with OpenTelemetry's types.
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

// A protobuf span that cannot be stored is counted.
func TestTracesPartial(t *testing.T) {
	n := newNode(t, nil)
	bad := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), nil)
	bad = protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bad)
	bad = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), bad)
	res := n.do(t, "POST", "/v1/traces", string(bad), "Content-Type", "application/x-protobuf")
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

// message1 returns the bytes of a field, and the number in its field 1.
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

// If a trace has more spans than a run may have steps, the first are kept.
func TestTracesMany(t *testing.T) {
	n := newNode(t, nil)
	spans := make([]string, store.MaxSteps+50)
	for i := range spans {
		spans[i] = fmt.Sprintf(`{"traceId":"%s","spanId":"%016x","attributes":[{"key":"openinference.span.kind","value":{"stringValue":"LLM"}}]}`, traceID, i+1)
	}
	res := n.do(t, "POST", "/v1/traces", fmt.Sprintf(tracesOf, strings.Join(spans, ",")), "Content-Type", "application/json")
	if res.StatusCode != 200 || !strings.Contains(res.body, `"rejectedSpans":"50"`) || !strings.Contains(res.body, "the limit is 10000") {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	var run struct {
		Recorded int `json:"recorded_steps"`
	}
	if n.read(t, "/v1/runs/"+traceID, &run); run.Recorded != store.MaxSteps {
		t.Errorf("%d steps", run.Recorded)
	}
}

// Errors are a google.rpc.Status in the encoding of the request, even if the request is too large.
func TestTracesErrors(t *testing.T) {
	n := newNode(t, &gateway.GuardOptions{Bootstrap: "b"})
	reader, writer := n.token(t, store.DefaultTenant, store.ScopeRead), n.token(t, store.DefaultTenant, store.ScopeWrite)
	large := strings.Repeat(" ", 32<<20+1)
	if res := n.do(t, "POST", "/v1/traces", large, "Content-Type", otel.JSON, "Ibid-Token", writer); res.StatusCode != 413 || !strings.HasPrefix(res.body, `{"code":3,`) {
		t.Errorf("too large: %d %s", res.StatusCode, res.body)
	}
	for _, test := range []struct {
		name, token, coding, body string
		status, code              int
		say                       string
	}{
		{"another scope", reader, "identity", "", 403, 7, "write"},
		{"not protobuf", writer, "identity", "\xff", 400, 3, "protobuf"},
		{"a bomb", writer, "gzip", gzipped(t, []byte(large)), 413, 3, "33554432"},
	} {
		res := n.do(t, "POST", "/v1/traces", test.body, "Content-Type", otel.Protobuf, "Content-Encoding", test.coding, "Ibid-Token", test.token)
		message, code := message1(t, []byte(res.body), 2)
		if res.StatusCode != test.status || int(code) != test.code || !strings.Contains(string(message), test.say) || res.Header.Get("Content-Type") != otel.Protobuf {
			t.Errorf("%s: %d, code %d, %s: %q", test.name, res.StatusCode, code, res.Header.Get("Content-Type"), res.body)
		}
	}
}
