package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/width"

	"github.com/ibidhq/ibid/trail"
)

const (
	// maxDrawn is the maximum number of steps that are drawn. Later ones are only in the list.
	maxDrawn = 120
	// maxRouted is how many places edges take in layers that they only pass through. Further edges are straight.
	maxRouted = 600
	// maxSweeps is how often the layers are reordered.
	maxSweeps = 4
	// maxNodeLabel is how many characters of a step's question a node has; wide ones count twice. Its tool is set in
	// larger type, and is followed by a note if the step failed.
	maxNodeLabel, maxNodeTool, maxFailedTool = 15, 14, 7
)

// The dimensions of a drawing, in its own units.
const (
	nodeWidth  = 156
	nodeHeight = 46
	passHeight = 14 // of an edge that passes through a layer
	gapAcross  = 56 // between layers
	gapDown    = 16
	margin     = 10
)

// graph is a drawing of a run's steps and what they build on, from left to right.
type graph struct {
	Width, Height int
	Nodes         []graphNode
	Edges         []graphEdge
	Desc          string // in words
	Left          int    // number of steps that are not drawn
	Waited        string // duration of the critical path; empty if it is not known
}

// graphNode is a step in the drawing.
type graphNode struct {
	N                   int
	URL                 string
	X, Y, Width, Height int
	NumberX, TextX      int
	UpperY, LowerY      int
	Upper, Lower        string // its tool, and the beginning of its question
	Title               string
	Failed, Waited      bool
	Chosen, Related     bool // it was chosen, or belongs to the chosen step
}

// graphEdge is a line from a step to one that builds on it.
type graphEdge struct {
	Path   string
	Waited bool
}

// spot is a place in a layer: a step, or an edge that passes through.
type spot struct {
	step   int // index of the step; -1 for an edge that passes through
	before []*spot
	behind []*spot
	layer  int
	weight float64
	y      int // its middle
}

func (s *spot) height() int {
	if s.step < 0 {
		return passHeight
	}
	return nodeHeight
}

// drawGraph draws the steps of a run; nil if each simply follows the one before.
func drawGraph(t *trail.Trail, address func(number int) string) *graph {
	before := make([][]int, min(len(t.Steps), maxDrawn))
	branches := false
	for i := range before {
		for _, k := range t.Before(i) {
			if k < len(before) && k != i {
				before[i] = append(before[i], k)
			}
		}
		simple := i == 0 && len(before[i]) == 0 || len(before[i]) == 1 && before[i][0] == i-1
		branches = branches || !simple
	}
	if !branches || len(before) < 2 {
		return nil
	}
	layers, edges := layersOf(before, layerNumbers(t, before))
	arrange(layers)
	g := &graph{Left: len(t.Steps) - len(before)}
	g.place(layers)
	var waited map[int]bool
	waited, g.Waited = waitedFor(t)
	for i, s := range spotsOf(layers, len(before)) {
		if s != nil {
			g.Nodes = append(g.Nodes, drawNode(&t.Steps[i], s, address, waited[i]))
		}
	}
	for _, e := range edges {
		from, to := e[0], e[len(e)-1]
		g.Edges = append(g.Edges, graphEdge{curve(e), waited[from.step] && waited[to.step]})
	}
	g.Desc = describe(t, before)
	return g
}

// waitedFor returns the steps of the critical path and their total duration; nothing if it is unknown or exceeds that
// of the run, since the recorded times cannot be right then.
func waitedFor(t *trail.Trail) (steps map[int]bool, d string) {
	path, sum := t.CriticalPath()
	if run := runTime(t); len(path) < 2 || sum <= 0 || run > 0 && sum > run {
		return nil, ""
	}
	steps = map[int]bool{}
	for _, i := range path {
		steps[i] = true
	}
	return steps, took(sum)
}

// layerNumbers returns the layer of each step: one after the last of those that it builds on. Steps in a cycle get the
// layer that a single pass gives them.
func layerNumbers(t *trail.Trail, before [][]int) []int {
	layer := make([]int, len(before))
	for _, i := range t.Order() {
		if i >= len(before) {
			continue
		}
		for _, k := range before[i] {
			layer[i] = max(layer[i], layer[k]+1)
		}
	}
	return layer
}

// layersOf puts the steps in layers, and gives edges that pass through layers a place in each. An edge is the list of
// spots that it touches.
func layersOf(before [][]int, layer []int) (layers [][]*spot, edges [][]*spot) {
	spots := make([]*spot, len(before))
	layers = make([][]*spot, slices.Max(layer)+1)
	for i := range before {
		spots[i] = &spot{step: i, layer: layer[i]}
		layers[layer[i]] = append(layers[layer[i]], spots[i])
	}
	routed := 0
	for i := range before {
		for _, k := range before[i] {
			from, to := spots[k], spots[i]
			if from.layer >= to.layer { // part of a cycle
				continue
			}
			edge, last := []*spot{from}, from
			for at := from.layer + 1; at < to.layer && routed < maxRouted; at++ {
				routed++
				pass := &spot{step: -1, layer: at, before: []*spot{last}}
				last.behind = append(last.behind, pass)
				layers[at] = append(layers[at], pass)
				edge, last = append(edge, pass), pass
			}
			last.behind, to.before = append(last.behind, to), append(to.before, last)
			edges = append(edges, append(edge, to))
		}
	}
	return layers, edges
}

// arrange orders each layer by the mean position of the spots it is joined with, from left to right and back, so that
// few edges cross.
func arrange(layers [][]*spot) {
	for _, layer := range layers {
		for i, s := range layer {
			s.y = i
		}
	}
	for range maxSweeps {
		for _, layer := range layers {
			order(layer, func(s *spot) []*spot { return s.before })
		}
		for _, layer := range slices.Backward(layers) {
			order(layer, func(s *spot) []*spot { return s.behind })
		}
	}
}

// order orders a layer by the mean position of the spots it is joined with.
func order(layer []*spot, joined func(*spot) []*spot) {
	for i, s := range layer {
		s.weight = float64(i)
		if to := joined(s); len(to) > 0 {
			sum := 0
			for _, other := range to {
				sum += other.y
			}
			s.weight = float64(sum) / float64(len(to))
		}
	}
	slices.SortStableFunc(layer, func(a, b *spot) int { return cmp.Compare(a.weight, b.weight) })
	for i, s := range layer {
		s.y = i
	}
}

// place sets the position of each spot, with the layers centred vertically.
func (g *graph) place(layers [][]*spot) {
	tall := func(layer []*spot) int {
		h := gapDown * (len(layer) - 1)
		for _, s := range layer {
			h += s.height()
		}
		return h
	}
	height := 0
	for _, layer := range layers {
		height = max(height, tall(layer))
	}
	for _, layer := range layers {
		y := margin + (height-tall(layer))/2
		for _, s := range layer {
			s.y = y + s.height()/2
			y += s.height() + gapDown
		}
	}
	g.Width = 2*margin + len(layers)*nodeWidth + (len(layers)-1)*gapAcross
	g.Height = 2*margin + height
}

func spotsOf(layers [][]*spot, n int) []*spot {
	found := make([]*spot, n)
	for _, layer := range layers {
		for _, s := range layer {
			if s.step >= 0 {
				found[s.step] = s
			}
		}
	}
	return found
}

// left returns the x of a spot's left side.
func (s *spot) left() int { return margin + s.layer*(nodeWidth+gapAcross) }

func drawNode(step *trail.Step, s *spot, address func(int) string, waited bool) graphNode {
	n := graphNode{
		N:      step.Number,
		URL:    address(step.Number),
		X:      s.left(),
		Y:      s.y - nodeHeight/2,
		Width:  nodeWidth,
		Height: nodeHeight,
		Upper:  step.Tool,
		Lower:  step.Question,
		Failed: step.Error != "",
		Waited: waited,
	}
	n.NumberX, n.TextX = n.X+16, n.X+32
	n.UpperY, n.LowerY = s.y-4, s.y+13
	if n.Upper == "" {
		n.Upper = "model"
	}
	n.Title = "Step " + strconv.Itoa(n.N) + ", " + n.Upper
	if n.Lower != "" {
		n.Title += ": " + trail.Excerpt(n.Lower, 200)
	}
	if n.Failed {
		n.Title += " (failed)"
	}
	if d := took(step.Duration); d != "" {
		n.Title += ", " + d
	}
	tool := maxNodeTool
	if n.Failed {
		tool = maxFailedTool
	}
	n.Upper, n.Lower = fit(n.Upper, tool), fit(n.Lower, maxNodeLabel)
	if n.Lower == "" {
		n.Lower = took(step.Duration)
	}
	return n
}

// fit returns the part of a label that fits in n characters, with an ellipsis if it is cut. Full-width East Asian
// characters count twice.
func fit(s string, n int) string {
	for i, r := range s {
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			n--
		}
		if n--; n < 0 {
			return strings.TrimRight(s[:i], " …") + "…"
		}
	}
	return s
}

// curve returns the path through the spots of an edge, from the right side of the first to the left side of the last.
func curve(edge []*spot) string {
	var b strings.Builder
	x, y := edge[0].left()+nodeWidth, edge[0].y
	fmt.Fprintf(&b, "M%d %d", x, y)
	for _, s := range edge[1:] {
		to := s.left()
		mid := (x + to) / 2
		fmt.Fprintf(&b, "C%d %d %d %d %d %d", mid, y, mid, s.y, to, s.y)
		x, y = to, s.y
		if s.step < 0 {
			x += nodeWidth
			fmt.Fprintf(&b, "H%d", x)
		}
	}
	return b.String()
}

// describe returns the drawing in words.
func describe(t *trail.Trail, before [][]int) string {
	var b strings.Builder
	for i := range before {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "Step %d", t.Steps[i].Number)
		if len(before[i]) == 0 {
			b.WriteString(" builds on no other.")
			continue
		}
		b.WriteString(" builds on ")
		for k, from := range before[i] {
			if k > 0 {
				b.WriteString(" and ")
			}
			b.WriteString(strconv.Itoa(t.Steps[from].Number))
		}
		b.WriteByte('.')
	}
	return b.String()
}
