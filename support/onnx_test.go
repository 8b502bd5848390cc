//go:build onnx

package support

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid/internal/testenv"
)

var updateONNX = flag.Bool("update-onnx", false, "write testdata/onnx/parity.json anew")

// onnxLibrary returns the path of ONNX Runtime: make onnx fetches it.
func onnxLibrary(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("IBID_ONNXRUNTIME")
	if path == "" {
		path = filepath.Join(testenv.Root(tb), "out", "onnx", "libonnxruntime.so.1")
	}
	if _, err := os.Stat(path); err != nil {
		message := fmt.Sprintf("no ONNX Runtime: %v; make onnx fetches it, IBID_ONNXRUNTIME names another", err)
		if strings.Contains(os.Getenv("IBID_REQUIRE"), testenv.Tools) {
			tb.Fatal(message)
		}
		tb.Skip(message)
	}
	return path
}

// tinyModel is a classifier of random weights: tokens and types are embedded, added up over the mask, and multiplied by a matrix.
type tinyModel struct {
	width, labels       int
	tokens, types, head []float32
}

const (
	tinyTokens = 160
	tinySeed   = 72 // with which the pairs of the parity test have all three labels
)

func newTinyModel(seed uint64, labels int) *tinyModel {
	r := rand.New(rand.NewPCG(seed, 1))
	random := func(n int, scale float64) []float32 {
		all := make([]float32, n)
		for i := range all {
			all[i] = float32(r.NormFloat64() * scale)
		}
		return all
	}
	const width = 8
	return &tinyModel{width, labels, random(tinyTokens*width, 1), random(2*width, 1), random(width*labels, .06)}
}

// logits is the model in Go: what ONNX Runtime must give, too.
func (m *tinyModel) logits(ids, types []int64) []float64 {
	sum := make([]float64, m.width)
	for k := range ids {
		for i := range sum {
			sum[i] += float64(m.tokens[int(ids[k])*m.width+i] + m.types[int(types[k])*m.width+i])
		}
	}
	out := make([]float64, m.labels)
	for i := range sum {
		for l := range out {
			out[l] += sum[i] * float64(m.head[i*m.labels+l])
		}
	}
	return out
}

// onnx is the model as a file: protocol buffers of onnx.proto, IR version 8, operators 13.
func (m *tinyModel) onnx() string {
	var graph protobuf
	node := func(op, output string, attributes []byte, inputs ...string) {
		var n protobuf
		for _, in := range inputs {
			n.bytes(1, in)
		}
		n.bytes(2, output)
		n.bytes(4, op)
		if attributes != nil {
			n.bytes(5, string(attributes))
		}
		graph.bytes(1, n.String())
	}
	number := func(name string, value uint64) []byte {
		var a protobuf
		a.bytes(1, name)
		a.varint(3, value)
		a.varint(20, 2) // INT
		return a.Bytes()
	}
	node("Gather", "words", nil, "tokens", "input_ids")
	node("Gather", "kinds", nil, "types", "token_type_ids")
	node("Add", "both", nil, "words", "kinds")
	node("Cast", "mask", number("to", 1), "attention_mask") // FLOAT
	node("Unsqueeze", "column", nil, "mask", "last")
	node("Mul", "masked", nil, "both", "column")
	node("ReduceSum", "sum", number("keepdims", 0), "masked", "middle")
	node("MatMul", "logits", nil, "sum", "head")
	graph.bytes(2, "tiny")
	tensor := func(name string, kind uint64, raw []byte, dims ...uint64) {
		var t protobuf
		for _, d := range dims {
			t.varint(1, d)
		}
		t.varint(2, kind)
		t.bytes(8, name)
		t.bytes(9, string(raw))
		graph.bytes(5, t.String())
	}
	floats := func(all []float32) []byte {
		var b []byte
		for _, f := range all {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
		return b
	}
	width, labels := uint64(m.width), uint64(m.labels)
	tensor("tokens", 1, floats(m.tokens), tinyTokens, width)
	tensor("types", 1, floats(m.types), 2, width)
	tensor("head", 1, floats(m.head), width, labels)
	tensor("last", 7, binary.LittleEndian.AppendUint64(nil, 2), 1)
	tensor("middle", 7, binary.LittleEndian.AppendUint64(nil, 1), 1)
	value := func(field int, name string, kind uint64, dims ...string) {
		var shape, typ, outer, v protobuf
		for _, d := range dims {
			var dim protobuf
			dim.bytes(2, d)
			shape.bytes(1, dim.String())
		}
		typ.varint(1, kind)
		typ.bytes(2, shape.String())
		outer.bytes(1, typ.String())
		v.bytes(1, name)
		v.bytes(2, outer.String())
		graph.bytes(field, v.String())
	}
	for _, name := range []string{"input_ids", "attention_mask", "token_type_ids"} {
		value(11, name, 7, "batch", "sequence")
	}
	value(12, "logits", 1, "batch", "labels")

	var operators, model protobuf
	operators.varint(2, 13)
	model.varint(1, 8)
	model.bytes(7, graph.String())
	model.bytes(8, operators.String())
	return model.String()
}

// protobuf writes fields of a protocol buffer.
type protobuf struct{ bytes.Buffer }

func (p *protobuf) varint(field int, v uint64) {
	p.Write(binary.AppendUvarint(nil, uint64(field)<<3))
	p.Write(binary.AppendUvarint(nil, v))
}

func (p *protobuf) bytes(field int, v string) {
	p.Write(binary.AppendUvarint(nil, uint64(field)<<3|2))
	p.Write(binary.AppendUvarint(nil, uint64(len(v))))
	p.WriteString(v)
}

func openTiny(tb testing.TB, m *tinyModel, files map[string]string) *ONNX {
	tb.Helper()
	library := onnxLibrary(tb)
	all := map[string]string{"model.onnx": m.onnx(), "config.json": "@config.json", "vocab.txt": "@vocab.txt"}
	maps.Copy(all, files)
	x, err := NewONNX(&ONNXOptions{Model: onnxFiles(tb, all), Library: library, Threads: 1})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := x.Close(); err != nil {
			tb.Error(err)
		}
	})
	return x
}

func tinyPairs() []Pair {
	pair := func(claim string, texts ...string) Pair {
		p := Pair{Claim: claim}
		for _, text := range texts {
			p.Passages = append(p.Passages, Passage{Text: text})
		}
		return p
	}
	return []Pair{
		pair("The bridge was opened in 1932.", "The bridge was opened in 1932. It is 503 metres long."),
		pair("Herons eat fish.", "The bridge carries eight lanes.", "A heron is not a bridge."),
		pair("The bridge is closed.", "In 1932 the bridge of Zürich was the longest.", "Herons walk slowly."),
		pair("Quick talk.", "Eat fish never."),
	}
}

// ONNX Runtime gives what the model is in Go, in batches of any lengths, and what it gave when the fixture was written.
func TestONNXParity(t *testing.T) {
	m := newTinyModel(tinySeed, 3)
	x := openTiny(t, m, nil)
	got, err := x.Check(t.Context(), tinyPairs())
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Claim     string
		Label     Label
		Entailed  float64
		Refuted   float64
		Passage   int
		By        string
		ScoreSame bool
	}
	var rows, reference []row
	for i, p := range tinyPairs() {
		v := got[i]
		rows = append(rows, row{p.Claim, v.Label, v.Signals["entailment"], v.Signals["contradiction"], v.Evidence[0].Passage, v.By, *v.Score == v.Signals["entailment"]})

		want := row{p.Claim, Unsupported, 0, 0, 0, "onnx@1", true}
		refutedBy := 0
		for k, passage := range p.Passages {
			logits := m.logits(x.vocab.pair(x.vocab.pieces(passage.Text), x.vocab.pieces(p.Claim)))
			var sum float64
			for _, l := range logits {
				sum += math.Exp(l)
			}
			if e := math.Exp(logits[1]) / sum; e > want.Entailed || k == 0 { // config.json: 1 is entailment, 0 contradiction
				want.Entailed, want.Passage = e, k
			}
			if c := math.Exp(logits[0]) / sum; c > want.Refuted || k == 0 {
				want.Refuted, refutedBy = c, k
			}
		}
		switch {
		case want.Entailed >= .5 && want.Entailed >= want.Refuted:
			want.Label = Supported
		case want.Refuted >= .5:
			want.Label, want.Passage = Contradicted, refutedBy
		}
		reference = append(reference, want)
	}
	near := cmpopts.EquateApprox(0, 1e-5)
	if diff := cmp.Diff(reference, rows, near); diff != "" {
		t.Errorf("(-Go +ONNX Runtime):\n%s", diff)
	}
	labels := map[Label]bool{}
	for _, r := range rows {
		labels[r.Label] = true
	}
	if len(labels) < 3 {
		t.Errorf("the pairs all come out as %v: they test little", labels)
	}

	name := filepath.Join("testdata", "onnx", "parity.json")
	if *updateONNX {
		data, err := json.MarshalIndent(rows, "", "\t")
		if err == nil {
			err = os.WriteFile(name, append(data, '\n'), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var fixture []row
	if err := json.Unmarshal(data, &fixture); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fixture, rows, near); diff != "" {
		t.Errorf("(-fixture +got):\n%s", diff)
	}
}

// A long passage is read to its end, in windows, and the evidence is the window.
func TestONNXWindows(t *testing.T) {
	x := openTiny(t, newTinyModel(tinySeed, 3), nil)
	filler := strings.Repeat("Zürich is long. ", 60)
	p := Pair{Claim: "Herons eat fish.", Passages: []Passage{{Text: filler + "Herons eat fish." + filler}}}
	got, err := x.Check(t.Context(), []Pair{p})
	if err != nil {
		t.Fatal(err)
	}
	v := got[0]
	pieces := len(x.vocab.pieces(p.Passages[0].Text))
	room := x.vocab.room(len(x.vocab.pieces(p.Claim)), x.options.MaxTokens)
	step := (room + 1) / 2
	if want := 1 + (pieces-room+step-1)/step; int(v.Signals["windows"]) != want {
		t.Errorf("%v windows, want %d", v.Signals["windows"], want)
	}
	// Each window alone scores what it scores there, so that the best is the best.
	evidence := p.Passages[0].Text[v.Evidence[0].Start:v.Evidence[0].End]
	alone, err := x.Check(t.Context(), []Pair{{Claim: p.Claim, Passages: []Passage{{Text: evidence}}}})
	if err != nil {
		t.Fatal(err)
	}
	key := "entailment"
	if v.Label == Contradicted {
		key = "contradiction"
	}
	if diff := cmp.Diff(alone[0].Signals[key], v.Signals[key], cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("the evidence alone (-alone +found):\n%s", diff)
	}

	long := Pair{Claim: strings.Repeat("fish ", 500), Passages: []Passage{{Text: strings.Repeat("bridge ", 20_000)}}}
	got, err = x.Check(t.Context(), []Pair{long})
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, issue := range got[0].Issues {
		codes = append(codes, issue.Code)
	}
	if diff := cmp.Diff([]string{IssueClaimCut, IssuePassageCut}, codes); diff != "" {
		t.Errorf("issues (-want +got):\n%s", diff)
	}
}

func TestONNXOneLabel(t *testing.T) {
	m := newTinyModel(3, 1)
	x := openTiny(t, m, map[string]string{"config.json": `{"id2label":{"0":"LABEL_0"}}`})
	p := tinyPairs()[0]
	got, err := x.Check(t.Context(), []Pair{p})
	if err != nil {
		t.Fatal(err)
	}
	logit := m.logits(x.vocab.pair(x.vocab.pieces(p.Passages[0].Text), x.vocab.pieces(p.Claim)))[0]
	if diff := cmp.Diff(1/(1+math.Exp(-logit)), *got[0].Score, cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestONNXOdd(t *testing.T) {
	x := openTiny(t, newTinyModel(tinySeed, 3), nil)
	got, err := x.Check(t.Context(), []Pair{
		{Claim: " ", Passages: []Passage{{Text: "A."}}},
		{Claim: "A claim."},
		{Claim: "A claim.", Passages: []Passage{{Text: " \n"}}},
		{Claim: "\u200b", Passages: []Passage{{Text: "\xff\xfe the bridge"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, wantErr := range []bool{true, false, false, false} {
		if (got[i].Err != nil) != wantErr || i < 3 && (got[i].Label != Unverified || got[i].Score != nil) {
			t.Errorf("verdict %d: %+v", i, got[i])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Check(ctx, tinyPairs()); err == nil {
		t.Error("an ended context is no error")
	}

	var checks sync.WaitGroup
	for range 4 {
		checks.Go(func() {
			for range 10 {
				if v, err := x.Check(t.Context(), tinyPairs()); err != nil || v[0].Score == nil {
					t.Errorf("%v, %v", v, err)
				}
			}
		})
	}
	checks.Wait()
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Check(t.Context(), tinyPairs()); err == nil {
		t.Error("a closed model answers")
	}
}

func TestONNXErrors(t *testing.T) {
	library := onnxLibrary(t)
	good := func(change map[string]string) fs.FS {
		files := map[string]string{"model.onnx": newTinyModel(1, 3).onnx(), "config.json": "@config.json", "vocab.txt": "@vocab.txt"}
		for name, from := range change {
			files[name] = from
			if from == "" {
				delete(files, name)
			}
		}
		return onnxFiles(t, files)
	}
	openTiny(t, newTinyModel(1, 3), nil) // the library is the first that a process opens
	for _, test := range []struct {
		about string
		files map[string]string
		want  string
	}{
		{"no config", map[string]string{"config.json": ""}, "reading config.json: open config.json: file does not exist"},
		{"no vocabulary", map[string]string{"vocab.txt": ""}, "there is neither vocab.txt nor tokenizer.json"},
		{"no model", map[string]string{"model.onnx": ""}, "reading model.onnx: open model.onnx: file does not exist"},
		{"no ONNX", map[string]string{"model.onnx": "hello"}, "opening model.onnx: "},
		{"other labels", map[string]string{"config.json": `{"id2label":{"0":"LABEL_0","1":"LABEL_1"}}`}, `reading config.json: none of its labels ["LABEL_0" "LABEL_1"] means entailment; the options can name it`},
		{"no JSON", map[string]string{"config.json": "{"}, "reading config.json: unexpected end of JSON input"},
		{"no labels", map[string]string{"config.json": `{}`}, "reading config.json: none of its labels"},
		{"gaps", map[string]string{"config.json": `{"id2label":{"0":"entailment","5":"neutral"}}`}, `reading config.json: id2label: "5" is no number below 2`},
	} {
		t.Run(test.about, func(t *testing.T) {
			_, err := NewONNX(&ONNXOptions{Model: good(test.files), Library: library})
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	t.Run("a model of another shape", func(t *testing.T) {
		x := openTiny(t, newTinyModel(1, 2), nil)
		if _, err := x.Check(t.Context(), tinyPairs()); err == nil || !strings.HasPrefix(err.Error(), "running a model: its output has the shape ") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("named labels", func(t *testing.T) {
		x, err := NewONNX(&ONNXOptions{
			Model: good(map[string]string{"config.json": `{"id2label":{"0":"A","1":"B","2":"C"}}`}), Library: library, Entailment: "C", Contradiction: "A",
		})
		if err != nil || x.head.entailed != 2 || x.head.refuted != 0 {
			t.Fatalf("%+v, %v", x, err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkONNX(b *testing.B) {
	x := openTiny(b, newTinyModel(tinySeed, 3), nil)
	pairs := tinyPairs()
	for b.Loop() {
		if _, err := x.Check(b.Context(), pairs); err != nil {
			b.Fatal(err)
		}
	}
}
