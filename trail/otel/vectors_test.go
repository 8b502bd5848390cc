package otel_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
)

var update = flag.Bool("update", false, "rewrite the expectations of the vectors")

// vectorSpan is a span in a vector: ids are short, times are milliseconds after a fixed time.
type vectorSpan struct {
	Trace      string         `json:"trace"` // "1" if left out
	ID         string         `json:"id"`
	Parent     string         `json:"parent"`
	Name       string         `json:"name"`
	At         [2]int64       `json:"at"`
	Error      *string        `json:"error"`
	Resource   map[string]any `json:"resource"`
	Attributes map[string]any `json:"attributes"`
	Events     []vectorEvent  `json:"events"`
}

type vectorEvent struct {
	Name       string         `json:"name"`
	Attributes map[string]any `json:"attributes"`
}

// vectorEpoch is time 0 of the vectors.
var vectorEpoch = time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)

// TestTraceVectors runs the cases of testdata/traces/*.txtar:
//
//	prose              what the case shows
//	-- spans.json --   the spans of the traces, see vectorSpan
//	-- options.json -- the options
//	-- runs --         the resulting runs
//
// The spans are read as JSON and as protobuf, in one request and in one request each, in random order and some of them
// twice.
func TestTraceVectors(t *testing.T) {
	names, err := filepath.Glob("testdata/traces/*.txtar")
	if err != nil || len(names) < 8 {
		t.Fatalf("%d vectors: %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			ar := testenv.Must(txtar.ParseFile(name))(t)
			if len(bytes.TrimSpace(ar.Comment)) == 0 {
				t.Error("no prose")
			}
			var spans []vectorSpan
			testenv.OK(t, json.Unmarshal(file(ar, "spans.json"), &spans))
			options := &otel.Options{}
			if raw := file(ar, "options.json"); raw != nil {
				testenv.OK(t, json.Unmarshal(raw, options))
			}
			request := traces(spans)
			trails, err := otel.Read(otel.Protobuf, protobufOf(t, request), options)
			testenv.OK(t, err)
			got := outline(trails)
			if *update {
				ar.Files = slices.DeleteFunc(ar.Files, func(f txtar.File) bool { return f.Name == "runs" })
				ar.Files = append(ar.Files, txtar.File{Name: "runs", Data: []byte(got)})
				testenv.OK(t, os.WriteFile(name, txtar.Format(ar), 0o666))
				return
			}
			testenv.Equal(t, "as protobuf", string(file(ar, "runs")), got)
			trails, err = otel.Read(otel.JSON+"; charset=utf-8", otlpJSON(t, request), options)
			testenv.OK(t, err)
			if diff := cmp.Diff(got, outline(trails)); diff != "" {
				t.Errorf("as JSON (-protobuf +json):\n%s", diff)
			}
			for range 5 {
				if diff := cmp.Diff(got, outline(piecemeal(t, spans, options))); diff != "" {
					t.Fatalf("span by span (-together +apart):\n%s", diff)
				}
			}
		})
	}
}

// piecemeal reads each span in a request of its own, in random order, some of them twice, and combines what a store
// would have kept.
func piecemeal(t *testing.T, spans []vectorSpan, o *otel.Options) []*trail.Trail {
	t.Helper()
	order := rand.Perm(len(spans))
	order = append(order, order[:len(order)/2]...)
	runs := map[string]*trail.Trail{}
	for _, i := range order {
		set := testenv.Must(otel.ReadSpans(otel.Protobuf, protobufOf(t, traces(spans[i:i+1])), o))(t)
		for _, run := range set.Runs {
			b := testenv.Must(json.Marshal(run))(t)
			kept, err := trail.Read(b)
			if err != nil {
				t.Fatalf("%v in %s", err, b)
			}
			if runs[run.ID] == nil {
				runs[run.ID] = &trail.Trail{ID: run.ID}
			}
			runs[run.ID].Steps = append(runs[run.ID].Steps, kept.Steps...)
		}
	}
	list := make([]*trail.Trail, 0, len(runs))
	for _, run := range runs {
		for i := range run.Steps {
			run.Steps[i].Issues = slices.DeleteFunc(run.Steps[i].Issues, func(i ibid.Issue) bool { return i.Code == "step-without-number" })
		}
		otel.Arrange(run)
		list = append(list, run)
	}
	slices.SortFunc(list, func(a, b *trail.Trail) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// traces makes a request from spans, with OpenTelemetry's own types.
func traces(spans []vectorSpan) *tracepb.TracesData {
	out := &tracepb.TracesData{}
	for i := range spans {
		s := &spans[i]
		trace := s.Trace
		if trace == "" {
			trace = "1"
		}
		span := &tracepb.Span{
			TraceId: idBytes(trace, 16), SpanId: idBytes(s.ID, 8), Name: s.Name, Kind: tracepb.Span_SPAN_KIND_INTERNAL,
			Attributes: keyValues(s.Attributes), StartTimeUnixNano: vectorTime(s.At[0]), EndTimeUnixNano: vectorTime(s.At[1]),
		}
		if s.Parent != "" {
			span.ParentSpanId = idBytes(s.Parent, 8)
		}
		if s.Error != nil {
			span.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: *s.Error}
		}
		for _, event := range s.Events {
			span.Events = append(span.Events, &tracepb.Span_Event{Name: event.Name, Attributes: keyValues(event.Attributes), TimeUnixNano: vectorTime(s.At[0])})
		}
		out.ResourceSpans = append(out.ResourceSpans, &tracepb.ResourceSpans{
			Resource:   &resourcepb.Resource{Attributes: keyValues(s.Resource)},
			ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "vector"}, Spans: []*tracepb.Span{span}}},
		})
	}
	return out
}

func vectorTime(ms int64) uint64 {
	if ms < 0 {
		return 0
	}
	return uint64(vectorEpoch.Add(time.Duration(ms) * time.Millisecond).UnixNano())
}

func idBytes(short string, size int) []byte {
	b, err := hex.DecodeString(strings.Repeat("0", 2*size-len(short)) + short)
	if err != nil {
		panic(err)
	}
	return b
}

func keyValues(of map[string]any) []*commonpb.KeyValue {
	var list []*commonpb.KeyValue
	for key, value := range of {
		list = append(list, &commonpb.KeyValue{Key: key, Value: anyValue(value)})
	}
	return list
}

func anyValue(v any) *commonpb.AnyValue {
	switch v := v.(type) {
	case string:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
	case float64:
		if v == float64(int64(v)) {
			return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(v)}}
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}
	case []any:
		list := &commonpb.ArrayValue{}
		for _, item := range v {
			list.Values = append(list.Values, anyValue(item))
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}
	case map[string]any:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: keyValues(v)}}}
	}
	return &commonpb.AnyValue{}
}

func protobufOf(t *testing.T, m proto.Message) []byte {
	t.Helper()
	return testenv.Must(proto.Marshal(m))(t)
}

// otlpJSON returns OTLP's JSON: protojson's, with hex ids and numeric enums.
func otlpJSON(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b := testenv.Must(protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(m))(t)
	return convertIDs(t, b, base64ToHex)
}

func base64ToHex(id string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(id)
	return hex.EncodeToString(b), err
}

func hexToBase64(id string) (string, error) {
	b, err := hex.DecodeString(id)
	return base64.StdEncoding.EncodeToString(b), err
}

// convertIDs converts the ids of spans, which are hex in OTLP's JSON and base64 in protojson.
func convertIDs(t *testing.T, b []byte, convert func(string) (string, error)) []byte {
	t.Helper()
	var document any
	testenv.OK(t, json.Unmarshal(b, &document))
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for name, item := range v {
				id, ok := item.(string)
				if ok && (name == "traceId" || name == "spanId" || name == "parentSpanId") {
					var err error
					if v[name], err = convert(id); err != nil {
						t.Fatal(err)
					}
				}
				walk(item)
			}
		}
	}
	walk(document)
	return testenv.Must(json.Marshal(document))(t)
}

// outline shows the relevant parts of runs.
func outline(trails []*trail.Trail) string {
	var b strings.Builder
	for _, t := range trails {
		outlineRun(&b, t, "")
	}
	return b.String()
}

func outlineRun(b *strings.Builder, t *trail.Trail, indent string) {
	fmt.Fprintf(b, "%srun %s", indent, short(t.ID))
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, " %s=%s", name, value)
		}
	}
	field("agent", t.Agent)
	field("parent", short(t.Parent))
	field("strategy", t.Strategy)
	fmt.Fprintf(b, " %s %s\n", at(t.Started), at(t.Finished))
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "%s  %s: %s\n", indent, name, strings.ReplaceAll(value, "\n", `\n`))
		}
	}
	line("question", t.Question)
	line("answer", t.Answer)
	for _, i := range t.Issues {
		line("issue", i.Code+": "+i.Detail)
	}
	for i := range t.Steps {
		outlineStep(b, &t.Steps[i], indent+"  ")
	}
}

func outlineStep(b *strings.Builder, s *trail.Step, indent string) {
	fmt.Fprintf(b, "%sstep %d after %v", indent, s.Number, s.After)
	if s.Tool != "" {
		fmt.Fprintf(b, " tool=%q", s.Tool)
	}
	fmt.Fprintf(b, " %s +%v\n", at(s.Started), s.Duration)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "%s  %s: %s\n", indent, name, strings.ReplaceAll(value, "\n", `\n`))
		}
	}
	line("question", s.Question)
	line("reasoning", s.Reasoning)
	line("answer", s.Answer)
	line("error", s.Error)
	line("inputs", string(s.Inputs)+s.InputsDigest)
	line("outputs", string(s.Outputs)+s.OutputsDigest)
	if s.NoSources {
		line("sources", "none, it says")
	}
	for name, raw := range s.Extra {
		line(name, string(raw))
	}
	for i := range s.Sources {
		line("source", outlineSource(&s.Sources[i]))
	}
	for _, i := range s.Issues {
		line("issue", i.Code+": "+i.Detail)
	}
	if s.Nested != nil {
		outlineRun(b, s.Nested, indent+"  ")
	}
}

func outlineSource(s *trail.Source) string {
	parts := []string{s.DocumentID}
	for _, role := range []struct {
		name string
		is   bool
	}{{"retrieved", s.Retrieved}, {"used", s.Used}, {"cited", s.Cited}} {
		if role.is {
			parts = append(parts, role.name)
		}
	}
	if s.Relevance != nil {
		parts = append(parts, fmt.Sprintf("%v(%s)", *s.Relevance, s.Origin))
	}
	if s.Rank > 0 {
		parts = append(parts, fmt.Sprintf("#%d", s.Rank))
	}
	if s.ChunkIndex != nil {
		parts = append(parts, fmt.Sprintf("chunk=%d", *s.ChunkIndex))
	}
	if s.Locator != nil {
		parts = append(parts, fmt.Sprintf("page=%d at=%s", s.Locator.Page, s.Locator.Chunk))
	}
	for _, text := range []string{s.Title, s.URL, s.Excerpt} {
		if text != "" {
			parts = append(parts, fmt.Sprintf("%q", text))
		}
	}
	return strings.Join(parts, " ")
}

func short(id string) string {
	if cut := strings.TrimLeft(id, "0"); len(id) == 32 || len(id) == 16 {
		return cut
	}
	return id
}

func at(when time.Time) string {
	if when.IsZero() {
		return "-"
	}
	return fmt.Sprint(when.Sub(vectorEpoch))
}

func file(ar *txtar.Archive, name string) []byte {
	for _, f := range ar.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}
