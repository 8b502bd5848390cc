package support

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"
)

// evalSet is a file of human judgements. Files of one fold share claims.
type evalSet struct {
	name, fold string
	share      float64 // the weight of each class in fitting
}

// evalSets are the sets that the model is fitted to. In the last two the label depends on inference, which words hardly
// show.
var evalSets = []evalSet{
	{"attribench", "attribench", 1},
	{"wice", "wice*", 1},
	{"wice_oracle", "wice*", 1},
	{"fever_symmetric", "fever_symmetric", 1},
	{"healthver", "healthver", .3},
	{"climate_fever", "climate_fever", .3},
}

// example is a labelled pair with its features.
type example struct {
	features  [featureCount]float64
	positive  bool
	weight    float64
	set       *evalSet
	row       *evalRow
	document  string
	untouched bool // in the fifth that no choice was based on
}

// examples computes the features of all sets' pairs.
func examples(tb testing.TB) []example {
	tb.Helper()
	var all []example
	for i := range evalSets {
		set := &evalSets[i]
		rows := evalRows(tb, set.name)
		documents := documentsOf(set, rows)
		var s scorer
		for k := range rows {
			p := rows[k].pair()
			e := example{positive: rows[k].supported(), set: set, row: &rows[k], document: documents[k]}
			e.untouched = mixed("held "+set.fold+e.document)%5 == 0
			if s.compare(parseClaim(questionOf(&p), p.Claim, english().weight), rows[k].indexes()) {
				e.features = s.features
			}
			all = append(all, e)
		}
	}
	return all
}

// documentsOf returns the document that each row is from: rows that share a passage, a question, a group or (WiCE,
// whose passages are sentences) a claim are from the same one.
func documentsOf(set *evalSet, rows []evalRow) []string {
	parents := map[string]string{}
	find := func(x string) string {
		for parents[x] != "" {
			x = parents[x]
		}
		return x
	}
	keys := make([]string, len(rows))
	for i := range rows {
		r := &rows[i]
		same := []string{"p:" + r.text()}
		if set.fold == "wice*" {
			same = append(same, "id:"+r.ID)
		} else {
			for _, p := range r.Passages {
				same = append(same, "p:"+p)
			}
		}
		if r.Question != "" {
			same = append(same, "q:"+r.Question)
		}
		if r.Group != "" {
			same = append(same, "g:"+r.Group)
		}
		if set.name == "fever_symmetric" {
			same = append(same, "c:"+r.Claim)
		}
		keys[i] = same[0]
		for _, other := range same {
			if a, b := find(keys[i]), find(other); a != b {
				parents[max(a, b)] = min(a, b)
			}
		}
	}
	for i := range keys {
		const most, kept = 200, 150
		if keys[i] = find(keys[i]); len(keys[i]) > most {
			h := fnv.New64a()
			_, _ = h.Write([]byte(keys[i]))
			n := h.Sum64()
			keys[i] = string([]rune(keys[i][:kept])) // four letters identify the rest
			for range 4 {
				keys[i] += string(rune('a' + n%26))
				n /= 26
			}
		}
	}
	return keys
}

// mixed is a hash with well mixed low digits.
func mixed(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	return x ^ x>>33
}

// linear is a model, calibrated or not.
type linear struct {
	bias    float64
	weights [featureCount]float64
}

func (m *linear) margin(f *[featureCount]float64) float64 {
	z := m.bias
	for i, w := range m.weights {
		z += w * f[i]
	}
	return z
}

// direction is 1 for a feature that can only raise the score, -1 for one that can only lower it.
func direction(feature int) float64 {
	if feature == featWindow || feature == featPairs {
		return 1
	}
	return -1
}

// ridge pulls the weights of the standardised features towards zero. It is strong, so that similar features share their
// weight: that carries over best to other sets.
const ridge = 300

// logistic fits a model by Newton's method. Each class of each set counts as 500 examples times its share. No weight
// has the wrong sign: the worst that would is fixed at zero, and the others are fitted again.
func logistic(data []example) *linear {
	data = slices.Clone(data)
	weigh(data)
	mean, scale := standards(data)
	var w [featureCount + 1]float64
	var zero [featureCount]bool
	for worst := 0; worst >= 0; {
		for range 15 {
			newton(data, &w, ridge, func(d *example, i int) float64 {
				if zero[i] {
					return 0
				}
				return (d.features[i] - mean[i]) / scale[i]
			})
		}
		worst = -1
		against := 0.0
		for i := range featureCount {
			if x := w[i+1] * direction(i); x < against {
				worst, against = i, x
			}
		}
		if worst >= 0 {
			zero[worst], w[worst+1] = true, 0
		}
	}
	m := &linear{bias: w[0]}
	for i := range featureCount {
		m.weights[i] = w[i+1] / scale[i]
		m.bias -= m.weights[i] * mean[i]
	}
	return m
}

func weigh(data []example) {
	type class struct {
		set      *evalSet
		positive bool
	}
	count := map[class]float64{}
	for i := range data {
		count[class{data[i].set, data[i].positive}]++
	}
	for i := range data {
		d := &data[i]
		d.weight = 500 * d.set.share / count[class{d.set, d.positive}]
	}
}

// newton improves the weights by one step. Features that are zero everywhere keep theirs.
func newton(data []example, w *[featureCount + 1]float64, ridge float64, feature func(*example, int) float64) {
	const n = featureCount + 1
	var x, gradient [n]float64
	var hessian [n][n]float64
	hessian[0][0] = 1e-6
	for i := 1; i < n; i++ {
		hessian[i][i], gradient[i] = ridge, -ridge*w[i]
	}
	for k := range data {
		d := &data[k]
		x[0] = 1
		z := w[0]
		for i := range featureCount {
			x[i+1] = feature(d, i)
			z += w[i+1] * x[i+1]
		}
		p, y := 1/(1+math.Exp(-z)), 0.0
		if d.positive {
			y = 1
		}
		for i := range n {
			gradient[i] += d.weight * (y - p) * x[i]
			for j := range n {
				hessian[i][j] += d.weight * p * (1 - p) * x[i] * x[j]
			}
		}
	}
	for i, step := range solve(hessian, gradient) {
		w[i] += step
	}
}

func standards(data []example) (mean, scale [featureCount]float64) {
	all := 0.0
	for k := range data {
		all += data[k].weight
	}
	for i := range featureCount {
		for k := range data {
			mean[i] += data[k].weight * data[k].features[i] / all
		}
		for k := range data {
			d := data[k].features[i] - mean[i]
			scale[i] += data[k].weight * d * d / all
		}
		scale[i] = max(math.Sqrt(scale[i]), 1e-6)
	}
	return mean, scale
}

// solve solves a·x = b for a symmetric, positive definite a, by Gaussian elimination.
func solve(a [featureCount + 1][featureCount + 1]float64, x [featureCount + 1]float64) [featureCount + 1]float64 {
	for i := range a {
		for k := i + 1; k < len(a); k++ {
			f := a[k][i] / a[i][i]
			for j := i; j < len(a); j++ {
				a[k][j] -= f * a[i][j]
			}
			x[k] -= f * x[i]
		}
	}
	for i := len(a) - 1; i >= 0; i-- {
		for k := i + 1; k < len(a); k++ {
			x[i] -= a[i][k] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x
}

// chosen returns the examples that choices may be based on.
func chosen(all []example) []example {
	return slices.DeleteFunc(slices.Clone(all), func(e example) bool { return e.untouched })
}

// crossValidated returns the margin of each example by a model that was fitted without its part.
func crossValidated(data []example, part func(*example) string) []float64 {
	models := map[string]*linear{}
	margins := make([]float64, len(data))
	for i := range data {
		name := part(&data[i])
		if models[name] == nil {
			models[name] = logistic(slices.DeleteFunc(slices.Clone(data), func(e example) bool { return part(&e) == name }))
		}
		margins[i] = models[name].margin(&data[i].features)
	}
	return margins
}

// byFold splits into five by document, bySet into the sets that share no claims.
func byFold(e *example) string { return fmt.Sprint(mixed("cv "+e.set.fold+e.document) % 5) }
func bySet(e *example) string  { return e.set.fold }

// calibratedBy is the set that scores are calibrated on: claims of answers with the passages cited for them.
const calibratedBy = "attribench"

// fitted is the whole procedure: a model of all but the untouched fifth, calibrated on margins of models that were
// fitted without the pair's document, as if half of all claims were supported.
func fitted(all []example) *linear {
	data := chosen(all)
	m := logistic(data)
	margins := crossValidated(data, byFold)
	var pairs []example
	for i, e := range data {
		if e.set.name == calibratedBy {
			e.features = [featureCount]float64{margins[i]}
			pairs = append(pairs, e)
		}
	}
	weigh(pairs)
	w := [featureCount + 1]float64{0, 1}
	for range 20 {
		newton(pairs, &w, 1e-6, func(d *example, i int) float64 { return d.features[i] })
	}
	m.bias = m.bias*w[1] + w[0]
	for i := range m.weights {
		m.weights[i] *= w[1]
	}
	return m
}

var fit = flag.Bool("fit", false, "print the numbers of the model (needs $IBID_SHARED/eval)")

// The numbers of the model are what fitting the data gives; -fit prints them.
func TestFit(t *testing.T) {
	if *evalPart != "dev" {
		t.Skip("the model was fitted to another part of the data")
	}
	all := examples(t)
	m := fitted(all)
	if *fit {
		t.Logf("bias %.4f, weights %.4f", m.bias, m.weights)
	}
	var s scorer
	for i := range all { // the last digits depend on the processor
		s.features = all[i].features
		if got, want := s.score(), 1/(1+math.Exp(-m.margin(&s.features))); math.Abs(got-want) > .002 {
			t.Fatalf("pair %d scores %g; newly fitted it would be %g: go test ./support -run TestFit -fit -v", i, got, want)
		}
	}
}
