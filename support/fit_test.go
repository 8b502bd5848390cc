package support

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// example is a labelled pair as features.
type example struct {
	features [featureCount]float64
	alone    *[featureCount]float64 // see scorer.score
	positive bool
	weight   float64
	subset   string
	group    string // never on both sides of a cut
}

// examples reads pairs into features.
func examples(rows []evalRow) []example {
	var s scorer
	list := make([]example, len(rows))
	for i := range rows {
		row := &rows[i]
		p := row.pair()
		compared := s.compare(parseClaim(asked(&p), row.Claim, english().weight), row.indexes())
		group := row.Question
		if group == "" {
			group = row.Claim
		}
		list[i] = example{s.features, nil, row.supported(), 1, row.Subset, group}
		if compared && s.compareAlone() {
			list[i].alone = new(s.alone.features)
		}
		s.features = [featureCount]float64{}
	}
	return list
}

// The model: monotone trees of depth two, one after the other, each fitted to what the ones before leave (Friedman 2001).
const (
	treeCount    = 150
	treeRate     = 0.1 // how much of each tree counts
	treeRidge    = 5   // pulls leaves to zero
	treeLeast    = 8   // the least weight (of second derivatives) of a leaf
	treeRows     = 0.7 // the share of examples, and of features, that each tree sees
	treeFeatures = 0.5
	treeBins     = 32
)

// forest is what fitting needs.
type forest struct {
	data     []example
	cuts     [featureCount][]float64 // the thresholds to choose from
	bins     [featureCount][]uint8   // of each example: its value is at most cuts[bin]
	gradient []float64
	hessian  []float64
	features []int // that the tree at hand sees
	random   *rand.Rand
}

// trees fits a model without calibration.
func trees(data []example, seed uint64) *model {
	f := &forest{data: data, gradient: make([]float64, len(data)), hessian: make([]float64, len(data)), random: rand.New(rand.NewPCG(seed, 1))}
	f.cut()
	var positive, all float64
	for i := range data {
		all += data[i].weight
		if data[i].positive {
			positive += data[i].weight
		}
	}
	bias := math.Log(positive / (all - positive))
	margins := make([]float64, len(data))
	for i := range margins {
		margins[i] = bias
	}
	m := &model{slope: 1}
	for range treeCount {
		t := f.grow(margins)
		one := model{trees: []tree{t}}
		for i := range margins {
			margins[i] += one.margin(&data[i].features) / treeShare
		}
		m.trees = append(m.trees, t)
	}
	linear, weights := logistic(data)
	m.bias, m.weights = treeShare*bias+(1-treeShare)*linear, weights
	return m
}

// ridge pulls the weights of the standardised features to zero.
const ridge = 5

// logistic fits the linear part by Newton's method. No weight goes against its feature's direction: of those that would, the
// worst is held at zero and the others are fitted anew.
func logistic(data []example) (bias float64, weights [featureCount]float64) {
	mean, scale := standards(data)
	var w [featureCount + 1]float64
	var zero [featureCount]bool
	for worst := 0; worst >= 0; {
		for range 12 {
			newton(data, &w, func(d *example, i int) float64 {
				if zero[i] {
					return 0
				}
				return (d.features[i] - mean[i]) / scale[i]
			})
		}
		worst = -1
		against := 0.0
		for i, direction := range featureDirections() {
			if x := w[i+1] * float64(direction); x < against {
				worst, against = i, x
			}
		}
		if worst >= 0 {
			zero[worst], w[worst+1] = true, 0
		}
	}
	bias = w[0]
	for i := range featureCount {
		weights[i] = w[i+1] / scale[i]
		bias -= weights[i] * mean[i]
	}
	return bias, weights
}

// newton improves weights by one step.
func newton(data []example, w *[featureCount + 1]float64, feature func(*example, int) float64) {
	const n = featureCount + 1
	var x [n]float64
	gradient, hessian := make([]float64, n), make([][]float64, n)
	for i := range hessian {
		hessian[i] = make([]float64, n)
		if i > 0 {
			hessian[i][i], gradient[i] = ridge, -ridge*w[i]
		}
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
			for j := range i + 1 {
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

// solve solves a·x = b for a symmetric, positive definite a, of which the lower half is given, by Cholesky's method.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	x := slices.Clone(b)
	for i := range n {
		for j := range i + 1 {
			sum := a[i][j]
			for k := range j {
				sum -= a[i][k] * a[j][k]
			}
			if i == j {
				a[i][i] = math.Sqrt(max(sum, 1e-12))
			} else {
				a[i][j] = sum / a[j][j]
			}
		}
	}
	for i := range n {
		for k := range i {
			x[i] -= a[i][k] * x[k]
		}
		x[i] /= a[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= a[k][i] * x[k]
		}
		x[i] /= a[i][i]
	}
	return x
}

func (f *forest) cut() {
	for j := range featureCount {
		values := make([]float64, len(f.data))
		for i := range f.data {
			values[i] = f.data[i].features[j]
		}
		sorted := slices.Clone(values)
		slices.Sort(sorted)
		for k := 1; k < treeBins; k++ {
			at := sorted[k*len(sorted)/treeBins]
			if i, _ := slices.BinarySearch(sorted, at); i > 0 {
				at = (at + sorted[i-1]) / 2
				if n := len(f.cuts[j]); n == 0 || at > f.cuts[j][n-1] {
					f.cuts[j] = append(f.cuts[j], at)
				}
			}
		}
		f.bins[j] = make([]uint8, len(values))
		for i, x := range values {
			n, _ := slices.BinarySearch(f.cuts[j], x)
			f.bins[j][i] = uint8(n)
		}
	}
}

// grow fits one tree to the gradients at the margins so far.
func (f *forest) grow(margins []float64) tree {
	var rows []int
	for i, z := range margins {
		p, y := 1/(1+math.Exp(-z)), 0.0
		if f.data[i].positive {
			y = 1
		}
		f.gradient[i], f.hessian[i] = f.data[i].weight*(y-p), f.data[i].weight*p*(1-p)
		if f.random.Float64() < treeRows {
			rows = append(rows, i)
		}
	}
	f.features = f.features[:0]
	for j := range featureCount {
		if f.random.Float64() < treeFeatures {
			f.features = append(f.features, j)
		}
	}
	root := f.split(rows, math.Inf(-1), math.Inf(1))
	t := tree{leaf: [4]float64{root.value, root.value, root.value, root.value}}
	if root.feature >= 0 {
		t.feature[0], t.at[0] = uint8(root.feature), root.at
		for side := range 2 {
			child := f.split(root.rows[side], root.low[side], root.high[side])
			t.leaf[2*side], t.leaf[2*side+1] = child.value, child.value
			if child.feature >= 0 {
				t.feature[1+side], t.at[1+side] = uint8(child.feature), child.at
				for leaf := range 2 {
					t.leaf[2*side+leaf] = f.value(child.rows[leaf], child.low[leaf], child.high[leaf])
				}
			}
		}
	}
	for i := range t.leaf {
		t.leaf[i] *= treeRate
	}
	return t
}

// value returns what a leaf with these rows says, between two bounds.
func (f *forest) value(rows []int, low, high float64) float64 {
	var g, h float64
	for _, i := range rows {
		g += f.gradient[i]
		h += f.hessian[i]
	}
	return max(low, min(high, g/(h+treeRidge)))
}

// branch is a set of rows and the best cut through it. Where there is none feature is -1.
type branch struct {
	value     float64
	feature   int
	at        float64
	rows      [2][]int
	low, high [2]float64
}

func (f *forest) split(rows []int, low, high float64) branch {
	b := branch{value: f.value(rows, low, high), feature: -1}
	var g, h float64
	for _, i := range rows {
		g += f.gradient[i]
		h += f.hessian[i]
	}
	bestGain, bestBin, middle := 1e-6, 0, 0.0
	for _, j := range f.features {
		var binG, binH [treeBins]float64
		for _, i := range rows {
			binG[f.bins[j][i]] += f.gradient[i]
			binH[f.bins[j][i]] += f.hessian[i]
		}
		var leftG, leftH float64
		for k := range f.cuts[j] {
			leftG += binG[k]
			leftH += binH[k]
			if leftH < treeLeast || h-leftH < treeLeast {
				continue
			}
			left, right := leftG/(leftH+treeRidge), (g-leftG)/(h-leftH+treeRidge)
			if float64(featureDirections()[j])*(right-left) < 0 {
				continue
			}
			gain := leftG*left + (g-leftG)*right - g*g/(h+treeRidge)
			if gain > bestGain {
				bestGain, b.feature, bestBin, middle = gain, j, k, (left+right)/2
			}
		}
	}
	if b.feature < 0 {
		return b
	}
	b.at = f.cuts[b.feature][bestBin]
	for _, i := range rows {
		side := 0
		if int(f.bins[b.feature][i]) > bestBin {
			side = 1
		}
		b.rows[side] = append(b.rows[side], i)
	}
	middle = max(low, min(high, middle))
	b.low, b.high = [2]float64{low, low}, [2]float64{high, high}
	switch featureDirections()[b.feature] {
	case 1:
		b.high[0], b.low[1] = middle, middle
	case -1:
		b.low[0], b.high[1] = middle, middle
	}
	return b
}

// calibrate fits the line that turns margins into log odds, by Newton's method.
func (m *model) calibrate(margins []float64, positive []bool) {
	a, b := 1.0, 0.0
	for range 20 {
		var ga, gb, haa, hab, hbb float64
		for i, z := range margins {
			p, y := 1/(1+math.Exp(-(a*z+b))), 0.0
			if positive[i] {
				y = 1
			}
			h := p * (1 - p)
			ga, gb = ga+(y-p)*z, gb+(y-p)
			haa, hab, hbb = haa+h*z*z, hab+h*z, hbb+h
		}
		d := haa*hbb - hab*hab
		a, b = a+(hbb*ga-hab*gb)/d, b+(haa*gb-hab*ga)/d
	}
	m.slope, m.offset = a, b
}

// training puts the two sets together. WiCE counts less, and its classes as if they were as frequent as in the other.
func training(bench, wice []example) []example {
	const share = 0.6
	a, w := positives(bench), positives(wice)
	data := slices.Clone(bench)
	for _, e := range wice {
		e.weight = share * (1 - a) / (1 - w)
		if e.positive {
			e.weight = share * a / w
		}
		data = append(data, e)
	}
	return data
}

func positives(data []example) float64 {
	n := 0.0
	for i := range data {
		if data[i].positive {
			n++
		}
	}
	return n / float64(len(data))
}

// fitted is the whole procedure: trees on all of both sets, calibrated by margins of bench from models that have not seen them.
func fitted(bench, wice []example) *model {
	m := trees(training(bench, wice), 1)
	var margins []float64
	var positive []bool
	for way := range evalWays {
		ofBench, _ := crossed(bench, wice, fiveFold(way), uint64(way))
		margins, positive = append(margins, ofBench...), append(positive, labels(bench)...)
	}
	m.calibrate(margins, positive)
	return m
}

// crossed returns the margins of both sets from models that have not seen the example's fold, in either.
func crossed(bench, wice []example, fold func(*example) string, seed uint64) (ofBench, ofWice []float64) {
	models := map[string]*model{}
	margin := func(e *example) float64 {
		name := fold(e)
		m := models[name]
		if m == nil {
			other := func(e example) bool { return fold(&e) == name }
			m = trees(training(slices.DeleteFunc(slices.Clone(bench), other), slices.DeleteFunc(slices.Clone(wice), other)), seed)
			models[name] = m
		}
		if e.alone != nil {
			return max(m.margin(&e.features), m.margin(e.alone))
		}
		return m.margin(&e.features)
	}
	for i := range bench {
		ofBench = append(ofBench, margin(&bench[i]))
	}
	for i := range wice {
		ofWice = append(ofWice, margin(&wice[i]))
	}
	return ofBench, ofWice
}

// fiveFold cuts by question, in one of many ways.
func fiveFold(way int) func(*example) string {
	return func(e *example) string {
		return string(rune('0' + hashString(fmt.Sprint(way, e.group))/2%5))
	}
}

func bySubset(e *example) string { return e.subset }

func labels(data []example) []bool {
	l := make([]bool, len(data))
	for i := range data {
		l[i] = data[i].positive
	}
	return l
}

// macro returns the mean over subsets of their AUROC.
func macro(data []example, scores []float64) float64 {
	type set struct {
		scores []float64
		labels []bool
	}
	sets := map[string]*set{}
	for i := range data {
		s := sets[data[i].subset]
		if s == nil {
			s = &set{}
			sets[data[i].subset] = s
		}
		s.scores, s.labels = append(s.scores, scores[i]), append(s.labels, data[i].positive)
	}
	sum := 0.0
	for _, s := range sets {
		sum += auroc(s.scores, s.labels) / float64(len(sets))
	}
	return sum
}

var fit = flag.Bool("fit", false, "write weights.txt anew (needs $IBID_SHARED/eval)")

// The default checker's model is fitted to human judgements: AttributionBench and WiCE, their dev halves.
const (
	fitBench = "attribench"
	fitWice  = "wice_oracle"
)

// weights.txt is what fitting makes of the data; -fit writes it.
func TestFit(t *testing.T) {
	bench, wice := examples(evalRows(t, fitBench)), examples(evalRows(t, fitWice))
	sum := sha256.Sum256(append(evalFile(t, fitBench), evalFile(t, fitWice)...))
	m := fitted(bench, wice)
	if *fit {
		if err := os.WriteFile("weights.txt", weightsFile(m, hex.EncodeToString(sum[:])), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if *evalPart != "dev" {
		t.Skip("weights.txt was fitted to another part of the data")
	}
	// Not byte for byte: the last digits are the processor's.
	for i := range bench {
		if got, want := lexicalModel().score(&bench[i].features), m.score(&bench[i].features); math.Abs(got-want) > .01 {
			t.Fatalf("pair %d scores %g; newly fitted it would be %g: go test ./support -run TestFit -fit", i, got, want)
		}
	}
}

// weightsFile returns the content of weights.txt.
func weightsFile(m *model, sum string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The model of the default checker. Code generated by go test ./support -run TestFit -fit; DO NOT EDIT.\n"+
		"# Fitted to %s.%s.jsonl and %s.%s.jsonl, SHA-256 of both\n# %s.\n", fitBench, *evalPart, fitWice, *evalPart, sum)
	b.WriteString("# Bias, slope and offset; the weights of the features; then trees: three features, their thresholds, four leaves.\n")
	fmt.Fprintf(&b, "%.5g %.5g %.5g\n", m.bias, m.slope, m.offset)
	for _, w := range m.weights {
		fmt.Fprintf(&b, "%.4g ", w)
	}
	for i := range m.trees {
		t := &m.trees[i]
		fmt.Fprintf(&b, "\n%d %d %d %.5g %.5g %.5g %.4g %.4g %.4g %.4g",
			t.feature[0], t.feature[1], t.feature[2], t.at[0], t.at[1], t.at[2], t.leaf[0], t.leaf[1], t.leaf[2], t.leaf[3])
	}
	b.WriteString("\n")
	return b.Bytes()
}
