//go:build onnx

package support

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/ibidhq/ibid"
)

// ONNX is a [Checker] that runs a model in this process: a cross-encoder that classifies a passage and a claim, as for
// natural language inference. It is safe for concurrent use. Who opened it calls Close.
//
// A passage that is longer than the model takes is read in windows that overlap by half. The score is the highest
// probability of entailment among all windows of all passages, uncalibrated. [Contradicted] needs a window that
// contradicts the claim more than any supports it. [Pair.Context] is not read.
type ONNX struct {
	options ONNXOptions
	info    Info
	vocab   *vocabulary
	head    onnxHead
	inputs  []string

	mu      sync.RWMutex // held for writing by Close
	session *ort.DynamicAdvancedSession
}

// NewONNX opens a model. It takes as long as ONNX Runtime takes to read it.
func NewONNX(o *ONNXOptions) (*ONNX, error) {
	x := &ONNX{options: *o}
	x.options.Threshold = cmp.Or(o.Threshold, DefaultONNXThreshold)
	var config modelConfig
	data, err := readLimited(o.Model, "config.json", maxVocabulary)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	if x.head, err = config.head(o); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	x.options.MaxTokens = config.maxTokens(o.MaxTokens)
	if x.vocab, err = readVocabulary(o.Model); err != nil {
		return nil, err
	}
	model, err := readLimited(o.Model, "model.onnx", MaxONNXModel)
	if err != nil {
		return nil, err
	}
	if err := openRuntime(o.Library); err != nil {
		return nil, err
	}
	if err := x.open(model); err != nil {
		return nil, fmt.Errorf("opening model.onnx: %w", err)
	}
	x.info = Info{
		ID:      "onnx",
		Version: "1",
		Params:  paramsHash(string(model), fmt.Sprint(x.options.Threshold, x.options.MaxTokens)),
	}
	return x, nil
}

// runtimeOpen is held while ONNX Runtime is opened: there is one in a process.
var runtimeOpen sync.Mutex //nolint:gochecknoglobals // so is what it guards

// openRuntime opens the shared library, if none is open.
func openRuntime(library string) error {
	runtimeOpen.Lock()
	defer runtimeOpen.Unlock()
	if ort.IsInitialized() {
		return nil
	}
	ort.SetSharedLibraryPath(library)
	if err := ort.InitializeEnvironment(ort.WithLogLevelError()); err != nil {
		return fmt.Errorf("opening ONNX Runtime: %w", err)
	}
	return nil
}

// open makes a session of a model. It knows the inputs of BERT's kin, and takes the output logits, or else the first.
func (x *ONNX) open(model []byte) error {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return err
	}
	defer func() { _ = options.Destroy() }()
	if x.options.Threads > 0 {
		if err := options.SetIntraOpNumThreads(x.options.Threads); err != nil {
			return err
		}
	}
	ins, outs, err := ort.GetInputOutputInfoWithONNXData(model)
	if err != nil {
		return err
	}
	for i := range ins {
		switch ins[i].Name {
		case "input_ids", "attention_mask", "token_type_ids":
			x.inputs = append(x.inputs, ins[i].Name)
		default:
			return fmt.Errorf("its input %q is none of input_ids, attention_mask, token_type_ids", ins[i].Name)
		}
	}
	if !slices.Contains(x.inputs, "input_ids") || len(outs) == 0 {
		return errors.New("it has no input input_ids, or no output")
	}
	output := outs[0]
	for i := range outs {
		if outs[i].Name == "logits" {
			output = outs[i]
		}
	}
	if output.DataType != ort.TensorElementDataTypeFloat {
		return fmt.Errorf("its output %q is not float32", output.Name)
	}
	x.session, err = ort.NewDynamicAdvancedSessionWithONNXData(model, x.inputs, []string{output.Name}, options)
	return err
}

// Close gives the model's memory back. Checks that run are waited for; later ones are errors.
func (x *ONNX) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.session == nil {
		return nil
	}
	err := x.session.Destroy()
	x.session = nil
	return err
}

// Info implements [Checker].
func (x *ONNX) Info() Info { return x.info }

// onnxWindow is a piece of a passage before a claim, ready for the model.
type onnxWindow struct {
	pair              int
	at                Span
	ids, types        []int64
	entailed, refuted float64
}

// Check implements [Checker].
func (x *ONNX) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.session == nil {
		return nil, errors.New("running a model: it is closed")
	}
	verdicts := make([]Verdict, len(in))
	var windows []onnxWindow
	for i := range in {
		verdicts[i] = Verdict{Label: Unverified, By: x.info.By(), Threshold: x.options.Threshold}
		if strings.TrimSpace(in[i].Claim) == "" {
			verdicts[i].Err = errors.New("the claim is empty")
			continue
		}
		windows = x.appendWindows(windows, i, &in[i], &verdicts[i])
	}
	// Windows of like length together: a batch is as long as its longest.
	slices.SortStableFunc(windows, func(a, b onnxWindow) int { return cmp.Compare(len(a.ids), len(b.ids)) })
	for batch := range slices.Chunk(windows, ONNXBatch) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("running a model: %w", err)
		}
		if err := x.run(batch); err != nil {
			return nil, fmt.Errorf("running a model: %w", err)
		}
	}
	tallies := make([]onnxTally, len(in))
	for i := range windows {
		tallies[windows[i].pair].add(&windows[i])
	}
	for i := range verdicts {
		verdicts[i].weigh(&in[i], &tallies[i])
	}
	return verdicts, nil
}

// appendWindows makes the windows of a pair.
func (x *ONNX) appendWindows(all []onnxWindow, i int, p *Pair, v *Verdict) []onnxWindow {
	claim := x.vocab.pieces(p.Claim)
	if limit := min(ONNXClaimTokens, x.options.MaxTokens/3); len(claim) > limit {
		claim = claim[:limit]
		v.Issues = append(
			v.Issues,
			ibid.Issue{Code: IssueClaimCut, Detail: fmt.Sprintf("%d tokens of it were read", limit)},
		)
	}
	room := x.vocab.room(len(claim), x.options.MaxTokens)
	for k := range p.Passages {
		pieces := x.vocab.pieces(p.Passages[k].Text)
		for from, n := 0, 0; from < len(pieces); from, n = from+(room+1)/2, n+1 {
			if n == MaxONNXWindows {
				v.Issues = append(
					v.Issues,
					ibid.Issue{
						Code:   IssuePassageCut,
						Detail: fmt.Sprintf("of passage %d, %d tokens were read", k, from),
					},
				)
				break
			}
			part := pieces[from:min(len(pieces), from+room)]
			w := onnxWindow{pair: i, at: Span{k, ibid.Span{Start: part[0].span.Start, End: part[len(part)-1].span.End}}}
			w.at.Span = onCharacters(p.Passages[k].Text, w.at.Span)
			w.ids, w.types = x.vocab.pair(part, claim)
			all = append(all, w)
			if from+room >= len(pieces) {
				break
			}
		}
	}
	return all
}

// onCharacters widens a span to whole characters: a piece may be a byte of one.
func onCharacters(text string, s ibid.Span) ibid.Span {
	for s.Start > 0 && !utf8.RuneStart(text[s.Start]) {
		s.Start--
	}
	for s.End < len(text) && !utf8.RuneStart(text[s.End]) {
		s.End++
	}
	return s
}

// run runs the model on a batch.
func (x *ONNX) run(batch []onnxWindow) error {
	longest := len(batch[len(batch)-1].ids)
	size := len(batch) * longest
	data := map[string][]int64{
		"input_ids": make([]int64, size), "attention_mask": make([]int64, size),
		"token_type_ids": make([]int64, size),
	}
	for i := range batch {
		row := i * longest
		for k := range longest {
			if k >= len(batch[i].ids) {
				data["input_ids"][row+k] = x.vocab.pad
				continue
			}
			data["input_ids"][row+k] = batch[i].ids[k]
			data["attention_mask"][row+k] = 1
			data["token_type_ids"][row+k] = batch[i].types[k]
		}
	}
	inputs := make([]ort.Value, 0, len(x.inputs))
	defer func() {
		for _, v := range inputs {
			_ = v.Destroy()
		}
	}()
	for _, name := range x.inputs {
		tensor, err := ort.NewTensor(ort.NewShape(int64(len(batch)), int64(longest)), data[name])
		if err != nil {
			return err
		}
		inputs = append(inputs, tensor)
	}
	outputs := []ort.Value{nil}
	if err := x.session.Run(inputs, outputs); err != nil {
		return err
	}
	defer func() { _ = outputs[0].Destroy() }()
	logits, ok := outputs[0].(*ort.Tensor[float32])
	if !ok || len(logits.GetData()) != len(batch)*x.head.labels {
		return fmt.Errorf("its output has the shape %v, not %d by %d", outputs[0].GetShape(), len(batch), x.head.labels)
	}
	for i := range batch {
		row := logits.GetData()[i*x.head.labels : (i+1)*x.head.labels]
		batch[i].entailed, batch[i].refuted = x.head.read(row)
		if math.IsNaN(batch[i].entailed + batch[i].refuted) {
			return fmt.Errorf("it gives %v, which are no numbers", row)
		}
	}
	return nil
}

// onnxTally is what the windows of one pair say.
type onnxTally struct {
	best, worst onnxWindow // the most entailed, and the most refuted
	n           int
}

func (t *onnxTally) add(w *onnxWindow) {
	if t.n == 0 || w.entailed > t.best.entailed {
		t.best = *w
	}
	if t.n == 0 || w.refuted > t.worst.refuted {
		t.worst = *w
	}
	t.n++
}

// weigh makes a verdict of what the windows of a pair say.
func (v *Verdict) weigh(p *Pair, t *onnxTally) {
	if t.n == 0 {
		return // no passage with a word in it
	}
	score := t.best.entailed
	v.Score = &score
	v.Signals = map[string]float64{"entailment": score, SignalContradiction: t.worst.refuted, "windows": float64(t.n)}
	switch {
	case score >= v.Threshold && score >= t.worst.refuted:
		v.Label, v.Evidence = Supported, []Span{t.best.at}
		v.compare(p)
	case t.worst.refuted >= v.Threshold:
		v.Label, v.Evidence = Contradicted, []Span{t.worst.at}
	default:
		v.Label, v.Evidence = Unsupported, []Span{t.best.at}
	}
}

// modelConfig is what is read of a config.json.
type modelConfig struct {
	Labels    map[string]string `json:"id2label"`
	Positions int               `json:"max_position_embeddings"`
}

// maxTokens is how many tokens are given to the model. RoBERTa counts its positions from 2.
func (c *modelConfig) maxTokens(asked int) int {
	n := MaxONNXTokens
	if c.Positions > 0 {
		n = min(n, c.Positions-c.Positions%8)
	}
	if asked > 0 {
		n = min(n, asked)
	}
	return max(n, 16)
}

// onnxHead says what the numbers mean that a model gives.
type onnxHead struct {
	labels            int
	entailed, refuted int // which of them; refuted -1: none
}

// head finds the labels. A model with one label gives a score.
func (c *modelConfig) head(o *ONNXOptions) (onnxHead, error) {
	h := onnxHead{labels: len(c.Labels), entailed: -1, refuted: -1}
	if h.labels == 1 {
		h.entailed = 0
		return h, nil
	}
	var names []string
	for key, name := range c.Labels {
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= h.labels {
			return h, fmt.Errorf("id2label: %q is no number below %d", key, h.labels)
		}
		names = append(names, name)
		low := strings.ToLower(name)
		switch {
		case o.Entailment != "" && name == o.Entailment,
			o.Entailment == "" && hasAnyPrefix(low, "entail", "support", "consist"):
			h.entailed = i
		case o.Contradiction != "" && name == o.Contradiction,
			o.Contradiction == "" && hasAnyPrefix(low, "contradict", "refut"):
			h.refuted = i
		}
	}
	if h.entailed < 0 {
		slices.Sort(names)
		return h, fmt.Errorf("none of its labels %q means entailment; the options can name it", names)
	}
	return h, nil
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// read makes probabilities of the model's numbers.
func (h *onnxHead) read(logits []float32) (entailed, refuted float64) {
	if h.labels == 1 {
		return 1 / (1 + math.Exp(-float64(logits[0]))), 0
	}
	top := float64(slices.Max(logits))
	var sum float64
	for _, l := range logits {
		sum += math.Exp(float64(l) - top)
	}
	entailed = math.Exp(float64(logits[h.entailed])-top) / sum
	if h.refuted >= 0 {
		refuted = math.Exp(float64(logits[h.refuted])-top) / sum
	}
	return entailed, refuted
}

// room is how many pieces of the first text fit beside a second text into max tokens.
func (v *vocabulary) room(second, limit int) int { return limit - second - 2 - v.between }

// pair frames two texts: their tokens, and the type of each.
func (v *vocabulary) pair(first, second []piece) (ids, types []int64) {
	add := func(typ int64, all ...int64) {
		for _, id := range all {
			ids, types = append(ids, id), append(types, typ)
		}
	}
	add(0, v.begin)
	for _, p := range first {
		add(0, p.id)
	}
	for range v.between {
		add(0, v.end)
	}
	var typ int64
	if v.typed {
		typ = 1
	}
	for _, p := range second {
		add(typ, p.id)
	}
	add(typ, v.end)
	return ids, types
}
