package otel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
)

// rich reads a trail with one of everything that goes through a trace.
func rich(tb testing.TB) *trail.Trail {
	tb.Helper()
	b := testenv.Must(os.ReadFile("../testdata/rich.json"))(tb)
	return testenv.Must(trail.Read(b))(tb)
}

// What Write writes, Read reads back.
func TestTracesRoundTrip(t *testing.T) {
	for _, contentType := range []string{otel.JSON, otel.Protobuf} {
		for _, id := range []string{"run_1", "0af7651916cd43dd8448eb211c80319c"} {
			want := rich(t)
			want.ID = id
			b := testenv.Must(otel.Write(want, contentType, nil))(t)
			got := testenv.Must(otel.Read(contentType, b, nil))(t)
			if diff := cmp.Diff([]*trail.Trail{want}, got); diff != "" {
				t.Errorf("%s %s (-written +read):\n%s", contentType, id, diff)
			}
			again, err := otel.Write(want, contentType, nil)
			if err != nil || string(again) != string(b) {
				t.Errorf("%s %s: written again it differs: %v", contentType, id, err)
			}
		}
	}
}

// OpenTelemetry's own types read what Write writes, both forms are equal, and have no unknown fields.
func TestTracesConform(t *testing.T) {
	written := rich(t)
	b := testenv.Must(otel.Write(written, otel.Protobuf, nil))(t)
	var fromProto, fromJSON tracepb.TracesData
	testenv.OK(t, proto.Unmarshal(b, &fromProto))
	if j, err := otel.Write(written, otel.JSON, nil); err != nil {
		t.Fatal(err)
	} else if err := protojson.Unmarshal(convertIDs(t, j, hexToBase64), &fromJSON); err != nil {
		t.Fatalf("%v in %s", err, j)
	}
	if !proto.Equal(&fromProto, &fromJSON) {
		t.Errorf("JSON and protobuf differ:\n%s", cmp.Diff(protojson.Format(&fromProto), protojson.Format(&fromJSON)))
	}
	spans := fromProto.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()
	if len(spans) != 11 {
		t.Errorf("%d spans", len(spans))
	}
	ids := map[string]bool{}
	for _, s := range spans {
		if len(s.GetTraceId()) != 16 || len(s.GetSpanId()) != 8 || ids[string(s.GetSpanId())] || s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() || len(s.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("a bad span: %v", s)
		}
		ids[string(s.GetSpanId())] = true
		for _, link := range s.GetLinks() {
			if string(link.GetSpanId()) == string(s.GetSpanId()) || len(link.GetSpanId()) != 8 {
				t.Errorf("a bad link: %v", link)
			}
		}
	}
}

// Without content, texts are not written, but sources and scores are.
func TestTracesNoContent(t *testing.T) {
	want := rich(t)
	for _, contentType := range []string{otel.JSON, otel.Protobuf} {
		b := testenv.Must(otel.Write(want, contentType, &otel.WriteOptions{NoContent: true}))(t)
		for _, secret := range []string{"When was", "1820", "Rain", "looked", "Only this", "passage", "inner", `"q"`, "\\\"q", "id:x"} {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s: %q leaked", contentType, secret)
			}
		}
		got := testenv.Must(otel.Read(contentType, b, nil))(t)
		step := got[0].Steps[0]
		if !strings.HasPrefix(step.InputsDigest, "sha256:") || len(step.Sources) != 3 || *step.Sources[0].Relevance != 0.92 || step.Sources[1].Rank != 3 {
			t.Errorf("%s: %+v", contentType, step)
		}
	}
	if _, err := otel.Write(want, "text/plain", nil); !errors.Is(err, otel.ErrMediaType) {
		t.Errorf("another media type: %v", err)
	}
}

// OTLP's JSON has ids in hex, numbers as strings or numbers, enums by number or name, and unknown members. Texts that
// were cut inside a character have half a surrogate pair.
func TestReadTracesJSON(t *testing.T) {
	ar := testenv.Must(txtar.ParseFile("testdata/otlp.txtar"))(t)
	trails := testenv.Must(otel.Read("application/json", file(ar, "request.json"), nil))(t)
	testenv.Equal(t, "", string(file(ar, "runs")), outline(trails))
}

// Impossible times are unknown, in either form, and so is an end before the start.
func TestSpanTimes(t *testing.T) {
	for times, want := range map[[2]uint64]string{
		{1 << 63, 1<<63 + 5}:                       "- +0s",
		{1<<64 - 1, 1}:                             "- +0s",
		{0, 1773478800000000000}:                   "- +0s",
		{1773478800000000000, 0}:                   "0s +0s",
		{1773478800000000000, 1 << 63}:             "0s +0s",
		{1773478800000000000, 5}:                   "0s +0s",
		{1773478800000000000, 1773478800000000007}: "0s +7ns",
	} {
		request := traces([]vectorSpan{{ID: "1", Attributes: map[string]any{"openinference.span.kind": "TOOL"}}})
		span := request.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0]
		span.StartTimeUnixNano, span.EndTimeUnixNano = times[0], times[1]
		for contentType, body := range map[string][]byte{otel.JSON: otlpJSON(t, request), otel.Protobuf: protobufOf(t, request)} {
			trails, err := otel.Read(contentType, body, nil)
			if err != nil || len(trails) != 1 || !strings.Contains(outline(trails), "step 1 after [] "+want+"\n") {
				t.Errorf("%v as %s: %v %s", times, contentType, err, outline(trails))
			}
		}
	}
}

// An invalid span is left out and counted; an invalid body is an error.
func TestReadSpansRejects(t *testing.T) {
	const tool = `"attributes":[{"key":"openinference.span.kind","value":{"stringValue":"TOOL"}}`
	span := func(members string) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b175",` + tool + `]},` + members + `]}]}]}`
	}
	deep := strings.Repeat(`{"arrayValue":{"values":[`, otel.MaxSpanDepth) + `{"boolValue":true}` + strings.Repeat(`]}}`, otel.MaxSpanDepth)
	many := strings.TrimSuffix(strings.Repeat(`{"stringValue":""},`, otel.MaxSpanValues), ",")
	for name, bad := range map[string]string{
		"no ids":          `{"name":"x"}`,
		"zeros":           `{"traceId":"00000000000000000000000000000000","spanId":"eee19b7ec3c1b176"}`,
		"short":           `{"traceId":"5b8e","spanId":"eee19b7ec3c1b176"}`,
		"base64":          `{"traceId":"W47/95gDgQPSabYzgT/GDA==","spanId":"7uGbfsPBsXQ="}`,
		"parent":          `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b176","parentSpanId":"zz"}`,
		"type":            `{"traceId":7}`,
		"time":            `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b176","startTimeUnixNano":"soon"}`,
		"too deep":        `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b176",` + tool + `,{"key":"a","value":` + deep + `}]}`,
		"too large":       `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b176",` + tool + `,{"key":"a","value":{"stringValue":"` + strings.Repeat("x", otel.MaxSpanBytes) + `"}}]}`,
		"too many values": `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b176",` + tool + `,{"key":"a","value":{"arrayValue":{"values":[` + many + `]}}}]}`,
	} {
		set, err := otel.ReadSpans(otel.JSON, []byte(span(bad)), nil)
		if err != nil || set.Rejected != 1 || set.Reason == "" || len(set.Runs) != 1 || len(set.Runs[0].Steps) != 1 {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
	if trails, err := otel.Read(otel.JSON, []byte(span(`{}`)), nil); err != nil || len(trails[0].Issues) != 1 || trails[0].Issues[0].Code != "spans-rejected" {
		t.Errorf("the trail does not report it: %v", err)
	}
	for name, body := range map[string][2]string{
		"not JSON":      {otel.JSON, "resourceSpans"},
		"null":          {otel.JSON, "null"},
		"empty":         {otel.JSON, ""},
		"a list":        {otel.JSON, `[]`},
		"no lists":      {otel.JSON, `{"resourceSpans":{}}`},
		"no scopes":     {otel.JSON, `{"resourceSpans":[{"scopeSpans":"x"}]}`},
		"resource":      {otel.JSON, `{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":{"intValue":"x"}}]}}]}`},
		"not protobuf":  {otel.Protobuf, "\x0a\xff"},
		"text":          {"text/plain", "{}"},
		"no media type": {"", "{}"},
		"a bad one":     {";", "{}"},
	} {
		if set, err := otel.ReadSpans(body[0], []byte(body[1]), nil); err == nil {
			t.Errorf("%s: %+v", name, set)
		}
	}
	for _, contentType := range []string{otel.Protobuf, "Application/X-Protobuf"} {
		if set, err := otel.ReadSpans(contentType, nil, nil); err != nil || len(set.Runs) != 0 {
			t.Errorf("%s: an empty request: %v", contentType, err)
		}
	}
}

// Exceeding a limit causes no panic and loses no other span, and is reported.
func TestSpanLimits(t *testing.T) {
	long := strings.Repeat("ü", otel.MaxSpanText)
	attributes := map[string]any{"openinference.span.kind": "RETRIEVER", "input.value": long}
	for i := range otel.MaxSpanDocuments + 1 {
		attributes[fmt.Sprintf("retrieval.documents.%d.document.content", i)] = long[:4000] + fmt.Sprint(i)
	}
	run := []vectorSpan{{ID: "1", Attributes: attributes}, {ID: "2", Attributes: map[string]any{
		"openinference.span.kind": "LLM", "llm.input_messages.0.message.content": long, "llm.output_messages.0.message.content": long, "input.value": long,
	}}}
	for i := range 20 {
		run[1].Attributes[fmt.Sprintf("llm.input_messages.%d.message.content", i)] = long[:100_000]
	}
	set, err := otel.ReadSpans(otel.Protobuf, protobufOf(t, traces(run)), nil)
	if err != nil || set.Rejected != 0 {
		t.Fatal(set, err)
	}
	for _, s := range set.Runs[0].Steps {
		b, err := json.Marshal(s)
		if err != nil || len(b) > otel.MaxSpanStep+1<<13 || len(s.Issues) == 0 || len(s.Question) > otel.MaxSpanText || len(s.Sources) > otel.MaxSpanDocuments {
			t.Errorf("%d bytes, %d sources, issues %v: %v", len(b), len(s.Sources), s.Issues, err)
		}
	}
	if s := set.Runs[0].Steps[1]; s.Inputs != nil || !strings.HasPrefix(s.InputsDigest, "sha256:") {
		t.Errorf("the input: %d bytes, digest %q", len(s.Inputs), s.InputsDigest)
	}
	many := make([]vectorSpan, otel.MaxSpans+3)
	for i := range many {
		many[i] = vectorSpan{ID: fmt.Sprintf("%x", i+1), Parent: fmt.Sprintf("%x", i), Name: "n", At: [2]int64{int64(i), int64(i)}, Attributes: map[string]any{"openinference.span.kind": "TOOL"}}
	}
	trails, err := otel.Read(otel.Protobuf, protobufOf(t, traces(many)), nil)
	if err != nil || len(trails) != 1 || len(trails[0].Steps) != otel.MaxSpans || len(trails[0].Issues) != 1 {
		t.Errorf("%d trails: %v", len(trails), err)
	}
}

// Ten thousand steps, and agents nested deeper than runs may be, are arranged quickly.
func TestArrangeLarge(t *testing.T) {
	const n = 10_000
	wide := []vectorSpan{{ID: "ffffff", At: [2]int64{0, 10 * n}, Attributes: map[string]any{"openinference.span.kind": "AGENT"}}}
	for i := range n { // half at the same time, then half at the same time
		begin := int64(1 + n*(i/(n/2)))
		wide = append(wide, vectorSpan{
			ID: fmt.Sprintf("%x", i+1), Parent: "ffffff", Name: "w", At: [2]int64{begin, begin + n - 2}, Attributes: map[string]any{"openinference.span.kind": "TOOL", "output.value": "done"},
		})
	}
	nested := make([]vectorSpan, 200)
	for i := range nested {
		nested[i] = vectorSpan{ID: fmt.Sprintf("%x", i+1), Parent: fmt.Sprintf("%x", i), Name: "n", At: [2]int64{int64(i), 1000 - int64(i)}, Attributes: map[string]any{"openinference.span.kind": "AGENT"}}
	}
	for name, spans := range map[string][]vectorSpan{"wide": wide, "nested": nested} {
		trails, err := otel.Read(otel.Protobuf, protobufOf(t, traces(spans)), nil)
		if err != nil || len(trails) != 1 {
			t.Fatal(name, err)
		}
		if issues := trails[0].Check(); len(issues) > 0 {
			t.Errorf("%s: %v", name, issues[0])
		}
		b := testenv.Must(json.Marshal(trails[0]))(t)
		if _, err := trail.Read(b); err != nil {
			t.Errorf("%s: it cannot be read again: %v", name, err)
		}
	}
}

// Two spans with the same number but different contents are two steps, which is reported.
func TestArrangeSameNumber(t *testing.T) {
	llm := func(id, answer string, at int64) vectorSpan {
		return vectorSpan{ID: id, At: [2]int64{at, at + 5}, Attributes: map[string]any{"openinference.span.kind": "LLM", "ibid.step": 1.0, "output.value": answer}}
	}
	set := testenv.Must(otel.ReadSpans(otel.Protobuf, protobufOf(t, traces([]vectorSpan{llm("1", "one", 10), llm("2", "two", 20), llm("3", "two", 30)})), nil))(t)
	run := &trail.Trail{Steps: append([]trail.Step{{Number: 1, Question: "recorded"}}, set.Runs[0].Steps...)}
	otel.Arrange(run)
	if len(run.Steps) != 2 || run.Steps[0].Question != "recorded" || run.Steps[0].Answer != "one" || run.Steps[1].Answer != "two" {
		t.Errorf("%+v", run.Steps)
	}
	if issues := run.Check(); len(issues) != 1 || issues[0].Code != "duplicate-step" {
		t.Errorf("%v", issues)
	}
}

// A run that is written as a trace and read back where it came from is the same run.
func TestArrangeWrittenAgain(t *testing.T) {
	spans := []vectorSpan{
		{ID: "1", At: [2]int64{0, 100}, Attributes: map[string]any{"openinference.span.kind": "AGENT", "input.value": "q", "output.value": "a"}},
		{ID: "2", Parent: "1", At: [2]int64{10, 20}, Attributes: map[string]any{"openinference.span.kind": "TOOL", "tool.name": "find", "output.value": "x"}},
		{ID: "3", Parent: "1", At: [2]int64{30, 40}, Attributes: map[string]any{"openinference.span.kind": "LLM", "output.value": "a"}},
	}
	recorded := trail.Step{Number: 7, ID: "mine", Answer: "seven"}
	read := func(contentType string, b []byte) []trail.Step {
		set, err := otel.ReadSpans(contentType, b, nil)
		if err != nil || len(set.Runs) != 1 {
			t.Fatal(set, err)
		}
		return set.Runs[0].Steps
	}
	first := read(otel.Protobuf, protobufOf(t, traces(spans)))
	for name, before := range map[string][]trail.Step{"traced": first, "recorded": {recorded}, "both": append([]trail.Step{recorded}, first...)} {
		run := &trail.Trail{ID: "run", Question: "q", Answer: "a", Steps: slices.Clone(before)}
		otel.Arrange(run)
		want := outline([]*trail.Trail{run})
		b := testenv.Must(otel.Write(run, otel.JSON, nil))(t)
		written := read(otel.JSON, b)
		isWritten := func(s trail.Step) bool { // by its id
			return slices.ContainsFunc(written, func(w trail.Step) bool { return w.ID == s.ID })
		}
		again := &trail.Trail{ID: "run", Question: "q", Answer: "a", Steps: append(slices.DeleteFunc(slices.Clone(before), isWritten), written...)}
		otel.Arrange(again)
		if name == "traced" && len(again.Steps) != 2 || len(again.Steps) != len(run.Steps) {
			t.Errorf("%s: (-want +got):\n%s", name, cmp.Diff(want, outline([]*trail.Trail{again})))
		}
	}
}

// A trace may belong to a run with recorded steps: its steps come after these, and one with the number of a recorded
// step joins that.
func TestArrangeBesideRecorded(t *testing.T) {
	set := testenv.Must(otel.ReadSpans(otel.Protobuf, protobufOf(t, traces([]vectorSpan{
		{ID: "1", At: [2]int64{0, 10}, Attributes: map[string]any{"openinference.span.kind": "TOOL", "tool.name": "first"}}, // without what it returned
		{ID: "2", At: [2]int64{20, 30}, Attributes: map[string]any{"openinference.span.kind": "LLM", "ibid.step": 2.0, "input.value": "q", "output.value": "spoken"}},
	})), nil))(t)
	run := &trail.Trail{Question: "given", Steps: append([]trail.Step{{Number: 4, Answer: "four"}, {Number: 2, Tool: "call", Answer: "captured"}}, set.Runs[0].Steps...)}
	otel.Arrange(run)
	const want = `run  0s -
  question: given
  answer: spoken
  step 2 after [] tool="call" 20ms +10ms
    question: q
    answer: captured
  step 4 after [] - +0s
    answer: four
  step 5 after [] tool="first" 0s +10ms
    issue: result-unread: the trace has not recorded what first returned
`
	got := outline([]*trail.Trail{run})
	testenv.Equal(t, "", want, got)
	if otel.Arrange(run); outline([]*trail.Trail{run}) != got {
		t.Error("arranged again it differs")
	}
}

// A captured call joins the span that has a call of a tool in common with it, whatever their times; one without these
// joins the span that it was within, although another began nearer to it.
func TestArrangeJoinsCalls(t *testing.T) {
	asked := func(id string, from, to int64, call string) vectorSpan {
		attributes := map[string]any{"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"}
		if call != "" {
			attributes["llm.output_messages.0.message.tool_calls.0.tool_call.id"] = call
		}
		return vectorSpan{ID: id, At: [2]int64{from, to}, Attributes: attributes}
	}
	for _, test := range []struct {
		name    string
		ids     [2]string   // in the spans
		answers [2][]string // in the captured calls
	}{
		{"by the ids of tools' calls", [2]string{"c1", "c2"}, [2][]string{{"c1"}, {"c2"}}},
		{"by time", [2]string{"", ""}, [2][]string{nil, nil}},
	} {
		set := testenv.Must(otel.ReadSpans(otel.Protobuf, protobufOf(t, traces([]vectorSpan{
			asked("1", 0, 500, test.ids[0]), asked("2", 510, 900, test.ids[1]),
		})), nil))(t)
		run := &trail.Trail{Steps: set.Runs[0].Steps}
		for i, calls := range test.answers {
			a := &ibid.Answer{Complete: true}
			for _, id := range calls {
				a.ToolCalls = append(a.ToolCalls, ibid.ToolCall{ID: id, Name: "find"})
			}
			started := vectorEpoch.Add(time.Duration([]int{400, 520}[i]) * time.Millisecond)
			run.Steps = append(run.Steps, trail.Step{
				Number: i + 1, Started: started, Duration: 50 * time.Millisecond,
				Answers: []trail.StepAnswer{{ID: fmt.Sprint("answer-", i+1), Answer: a}},
			})
		}
		otel.Arrange(run)
		var got []string
		for _, s := range run.Steps {
			for _, a := range s.Answers {
				got = append(got, s.ID+" is "+a.ID)
			}
		}
		slices.Sort(got)
		if len(run.Steps) != 2 || len(got) != 2 || !strings.HasSuffix(got[0], "answer-1") || !strings.HasSuffix(got[1], "answer-2") {
			t.Errorf("%s: %d steps, %q", test.name, len(run.Steps), got)
		}
	}
}

// No input causes a panic, and what is read can be written and read.
func FuzzReadTraces(f *testing.F) {
	for _, contentType := range []string{otel.JSON, otel.Protobuf} {
		b := testenv.Must(otel.Write(rich(f), contentType, nil))(f)
		f.Add(contentType == otel.JSON, b)
	}
	f.Add(true, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b175","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.input.messages","value":{"stringValue":"[[{\"role\":\"user\",\"content\":[{}]}]]"}},{"key":"gen_ai.output.messages","value":{"arrayValue":{}}},{"key":"ibid.after","value":{"stringValue":"[1,-1]"}}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, isJSON bool, b []byte) {
		contentType := otel.Protobuf
		if isJSON {
			contentType = otel.JSON
		}
		trails, err := otel.Read(contentType, b, nil)
		if err != nil {
			return
		}
		for _, run := range trails {
			out, err := json.Marshal(run)
			testenv.OK(t, err)
			if _, err := trail.Read(out); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			if out, err = otel.Write(run, contentType, nil); err != nil {
				t.Fatal(err)
			}
			if again, err := otel.Read(contentType, out, nil); err != nil || len(again) != 1 || len(again[0].Issues) > 1 {
				t.Fatalf("%d runs: %v", len(again), err)
			}
			testenv.Must(run.PROV(&trail.PROVOptions{Content: true}))(t)
		}
	})
}

// Any protobuf that OpenTelemetry's own types accept is read the same as protobuf and as JSON.
func FuzzTracesProtobuf(f *testing.F) {
	b := testenv.Must(otel.Write(rich(f), otel.Protobuf, nil))(f)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var data tracepb.TracesData
		if proto.Unmarshal(b, &data) != nil {
			return
		}
		clean, err := proto.Marshal(&data)
		if err != nil {
			return
		}
		want := testenv.Must(otel.Read(otel.Protobuf, clean, nil))(t)
		got := testenv.Must(otel.Read(otel.JSON, otlpJSON(t, &data), nil))(t)
		if diff := cmp.Diff(outline(want), outline(got)); diff != "" {
			t.Errorf("(-protobuf +json):\n%s", diff)
		}
	})
}

func BenchmarkReadTraces(b *testing.B) {
	spans := []vectorSpan{{ID: "ffffff", At: [2]int64{0, 1000}, Attributes: map[string]any{"openinference.span.kind": "AGENT", "input.value": "q", "output.value": "a"}}}
	text := strings.Repeat("The mill has stood by the river since 1820, and herons nest in it. ", 10)
	for i := range 100 {
		attributes := map[string]any{"openinference.span.kind": "RETRIEVER", "input.value": "q"}
		if i%2 == 1 {
			attributes = map[string]any{"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": strings.Repeat(text, 10), "llm.output_messages.0.message.content": "a"}
		}
		for k := range 10 * (1 - i%2) {
			prefix := fmt.Sprintf("retrieval.documents.%d.document.", k)
			attributes[prefix+"id"], attributes[prefix+"content"], attributes[prefix+"score"] = fmt.Sprintf("d%d_%d", i, k), fmt.Sprint(i, k, text), 0.5+float64(k)/100
		}
		spans = append(spans, vectorSpan{ID: fmt.Sprintf("%x", i+1), Parent: "ffffff", At: [2]int64{int64(i * 10), int64(i*10 + 9)}, Attributes: attributes})
	}
	body := testenv.Must(proto.Marshal(traces(spans)))(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		testenv.Must(otel.Read(otel.Protobuf, body, nil))(b)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(spans)), "µs/span")
}
