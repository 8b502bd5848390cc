package otel

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// maxAfter is how many steps a step of a trace may come directly after. If more ran at once before it, those that ended
// last are kept.
const maxAfter = 100

// Arrange makes a run from the spans among t.Steps: the steps that [ReadSpans] returned, which may have been stored one
// by one since. The other steps are kept. The result is a function of the set of spans: neither their order nor
// repetitions matter, and a run whose spans have not all arrived is arranged as far as they show it. If there are no
// spans, or they are arranged already, it does nothing.
//
// The root span is the run: its input is the question and its output the answer; if there is none, the answer is the
// last one of a model. Models, retrievers, rerankers, tools and guardrails are steps; agents below the run's own are
// steps with a nested run; chains only group steps, and evaluators with everything below them are left out. Among the
// spans below one span, one that began after another had ended comes after it, and those that overlap come after the
// same ones; a step that contains steps comes after these, but a model that only called tools before them. Numbers
// continue from the highest in t.Steps, by start time
// as far as that order allows. A span with the attribute ibid.step keeps its number, and joins the step that has it
// already, unless that is also a span and has different contents.
//
// A retrieved document is used if its text is in the input of a model's call that ended later, or if such a call cites
// it by its URL or, in square brackets, by its id. It then becomes a source of the call's step, too. If there is no
// such call, or none whose input was recorded, documents count as used and the step has the issue "use-assumed".
func Arrange(t *trail.Trail) {
	spans, others := takeSpans(t.Steps)
	if len(spans) == 0 {
		return
	}
	spans = addResults(spans, others)
	tops := withoutWritten(linkSpans(spans))
	others = joinCalls(spans, others)
	root := rootOf(tops)
	describe(t, root, spans)
	readResults(spans)
	markUse(spans)
	a := &arrangement{run: t.ID}
	if root != nil {
		tops = []*spanNode{root}
	}
	a.place(tops, nil)
	t.Steps = a.number(others)
	if root == nil || !root.Own {
		conclude(t, a)
	}
	t.Complete()
}

// spanNode is a span in its run.
type spanNode struct {
	spanFacts

	step *trail.Step

	start, end int64 // nanoseconds
	at         int   // its index by time
	parent     *spanNode
	children   []*spanNode // by time
	isStep     bool
	hasStep    bool        // it or one below it is a step
	after      []*spanNode // the steps before it
	ends       []*spanNode // the steps that the next ones come after
}

// takeSpans takes the spans out of the steps, each once, by time.
func takeSpans(steps []trail.Step) (nodes []*spanNode, others []trail.Step) {
	byID := map[spanID]*spanNode{}
	for _, step := range steps {
		var f spanFacts
		raw, ok := step.Extra[spanMember]
		if !ok || json.Unmarshal(raw, &f) != nil {
			others = append(others, step)
			continue
		}
		step.Extra = maps.Clone(step.Extra)
		if delete(step.Extra, spanMember); len(step.Extra) == 0 {
			step.Extra = nil
		}
		step.Sources, step.Issues = slices.Clone(step.Sources), slices.Clip(step.Issues)
		n := &spanNode{spanFacts: f, step: &step, start: f.Start, end: max(f.Start, f.End)}
		id := spanID{f.Trace, step.ID}
		if byID[id] == nil || n.compare(byID[id]) > 0 {
			byID[id] = n
		}
	}
	nodes = slices.SortedFunc(maps.Values(byID), (*spanNode).compare)
	for i, n := range nodes {
		n.at = i
	}
	return nodes, others
}

// compare orders spans by time, and otherwise in a way that does not depend on their original order.
func (n *spanNode) compare(m *spanNode) int {
	c := cmp.Or(
		cmp.Compare(n.start, m.start), cmp.Compare(n.end, m.end), strings.Compare(n.step.ID, m.step.ID),
		strings.Compare(n.Trace, m.Trace),
	)
	if c != 0 {
		return c
	}
	a, _ := json.Marshal(n.step) // steps that cannot be encoded are equal
	b, _ := json.Marshal(m.step)
	return strings.Compare(string(a), string(b))
}

// linkSpans puts spans below their parents, and returns those that have none. Cycles of parents are broken.
func linkSpans(nodes []*spanNode) (tops []*spanNode) {
	byID := make(map[spanID]*spanNode, len(nodes))
	for _, n := range nodes {
		byID[spanID{n.Trace, n.step.ID}] = n
	}
	for _, n := range nodes {
		n.parent = byID[spanID{n.Trace, n.Parent}]
	}
	state := make([]int, len(nodes)) // 0 if not visited, else the number of the visiting pass
	for i, n := range nodes {
		for at := n; at != nil && state[at.at] == 0; at = at.parent {
			state[at.at] = i + 1
			if at.parent != nil && state[at.parent.at] == i+1 {
				at.parent = nil
			}
		}
	}
	for _, n := range nodes {
		if n.parent == nil {
			tops = append(tops, n)
		} else {
			n.parent.children = append(n.parent.children, n)
		}
	}
	for _, top := range tops {
		top.markSteps()
	}
	return tops
}

// withoutWritten leaves out the spans that [Write] wrote for the run, if another span is the run: then the run has been
// read back where it came from.
func withoutWritten(tops []*spanNode) []*spanNode {
	isWritten := func(n *spanNode) bool { return n.Own && n.Kind == spanAgent && n.RunID == "" }
	if !slices.ContainsFunc(tops, func(n *spanNode) bool {
		return !isWritten(n) && n.Parent == "" && (n.Kind == spanAgent || n.Kind == spanChain)
	}) {
		return tops
	}
	var left []*spanNode
	for _, n := range tops {
		if !isWritten(n) {
			left = append(left, n)
			continue
		}
		for _, k := range n.children {
			k.parent = nil
			left = append(left, k)
		}
		n.children, n.isStep, n.hasStep = nil, false, false
	}
	sortByTime(left)
	return left
}

// markSteps sets whether a span and those below it are steps.
func (n *spanNode) markSteps() {
	type visit struct {
		*spanNode
		back bool
	}
	for todo := []visit{{n, false}}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v.back {
			if v.isStep && !v.Own && (v.Kind == spanTool || v.Kind == spanRetriever) {
				v.absorb(v.children)
			}
			v.hasStep = v.isStep || slices.ContainsFunc(v.children, func(k *spanNode) bool { return k.hasStep })
			continue
		}
		switch {
		case v.Kind == spanEvaluator:
			continue
		case v.Own:
			v.isStep = v.Kind != spanAgent
		case v.Kind == spanChain:
			v.isStep = len(v.step.Sources) > 0 || v.Number > 0
		case v.Kind == spanLLM:
			v.isStep = !v.joinCallAbove()
		default:
			v.isStep = true
		}
		todo = append(todo, visit{v.spanNode, true})
		for _, k := range v.children {
			todo = append(todo, visit{k, false})
		}
	}
}

// absorb makes the retrievals within a tool or a retriever part of its step.
func (n *spanNode) absorb(children []*spanNode) {
	for _, k := range children {
		switch {
		case k.Own || k.Number > 0:
		case k.isStep && k.Kind == spanRetriever && len(k.children) == 0:
			n.step.AddSources(k.step.Sources...)
			n.step.NoSources = n.step.NoSources || k.step.NoSources
			n.step.Question = cmp.Or(n.step.Question, k.step.Question)
			if len(n.step.Sources) == 0 {
				n.step.Issues = append(n.step.Issues, k.step.Issues...)
			}
			k.step.Sources, k.isStep, k.hasStep = nil, false, false
		case k.Kind == spanChain && !k.isStep:
			n.absorb(k.children)
			k.hasStep = slices.ContainsFunc(k.children, func(m *spanNode) bool { return m.hasStep })
		}
	}
}

// readResults reads what tools returned as sources. What a tool returns that calls a model itself is the model's words.
func readResults(nodes []*spanNode) {
	for _, n := range nodes {
		s := n.step
		if n.Kind != spanTool || n.Own || !n.isStep || s.NoSources || s.Error != "" || len(s.Sources) > 0 ||
			isHandoff(s.Tool) || slices.ContainsFunc(n.children, func(k *spanNode) bool { return k.hasStep }) {
			continue
		}
		result := s.Outputs
		switch {
		case result == nil && s.OutputsDigest != "":
			addIssue(s, issueUnread, "what "+cmp.Or(s.Tool, "a tool")+" returned was too large to be kept")
			continue
		case result == nil && s.Answer != "":
			result = encodeValue(s.Answer)
		case result == nil:
			addIssue(s, issueUnread, "the trace has not recorded what "+cmp.Or(s.Tool, "a tool")+" returned")
			continue
		}
		s.AddResult(result)
		limitSources(s)
	}
}

// isHandoff reports whether a tool only passes the conversation to another agent.
func isHandoff(tool string) bool {
	return strings.HasPrefix(tool, "transfer_to_") || strings.HasPrefix(tool, "handoff")
}

// joinCallAbove reports whether a model's call is the same as that of the span above: a framework and the client that
// it uses are often both traced. It completes the one above.
func (n *spanNode) joinCallAbove() bool {
	above := n.parent
	if above == nil || above.Kind != spanLLM {
		return false
	}
	fillTexts(above.step, n.step)
	return true
}

// rootOf returns the span that is the run, or nil if there is none or it has not arrived.
func rootOf(tops []*spanNode) *spanNode {
	var root *spanNode
	for _, n := range tops {
		if n.Parent != "" && len(tops) > 1 || n.Kind == spanEvaluator {
			continue
		}
		if root != nil { // several
			return nil
		}
		root = n
	}
	if root == nil || root.Kind != spanAgent && root.Kind != spanChain {
		return nil
	}
	return root
}

// describe fills in the run from the root.
func describe(t *trail.Trail, root *spanNode, all []*spanNode) {
	for _, n := range all {
		if n.start != 0 && (t.Started.IsZero() || n.step.Started.Before(t.Started)) {
			t.Started = n.step.Started
		}
	}
	if root == nil {
		return
	}
	root.adopt(all)
	fillRun(t, root)
	if t.Finished.IsZero() {
		t.Finished = root.ended()
	}
	// A chain around an agent is the same run.
	for n := root.inside(); n != nil; n = n.inside() {
		n.isStep = len(n.step.Sources) > 0
		if n.Kind == spanAgent {
			t.Agent = cmp.Or(n.Agent, t.Agent)
		}
		fillRun(t, n)
	}
}

// adopt makes n the run, with all spans whose parents are missing below it.
func (n *spanNode) adopt(all []*spanNode) {
	n.isStep = len(n.step.Sources) > 0
	if n.isStep || !n.Own && n.step.Question == "" && n.step.Answer == "" {
		// Documents that it retrieved itself are a step of the run; and an agent without words is one that a library
		// wraps around another.
		n.Kind = spanChain
	}
	n.hasStep = true
	for _, other := range all {
		if other.parent == nil && other != n {
			other.parent = n
			n.children = append(n.children, other)
		}
	}
	sortByTime(n.children)
}

// inside returns the only agent or chain in a chain, or nil.
func (n *spanNode) inside() *spanNode {
	if n.Kind != spanChain {
		return nil
	}
	var only *spanNode
	for _, k := range n.children {
		switch {
		case !k.hasStep:
		case only != nil:
			return nil
		default:
			only = k
		}
	}
	if only == nil || only.Kind != spanAgent && only.Kind != spanChain || only.Number > 0 {
		return nil
	}
	return only
}

// fillRun fills in what is missing of the run from a span that is the run.
func fillRun(t *trail.Trail, n *spanNode) {
	t.Agent = cmp.Or(t.Agent, n.Agent)
	t.Question = cmp.Or(t.Question, n.step.Question)
	t.Answer = cmp.Or(t.Answer, n.step.Answer)
	t.Parent, t.Strategy = cmp.Or(t.Parent, n.ParentRun), cmp.Or(t.Strategy, n.Strategy)
	if n.step.Error != "" {
		issue := ibid.Issue{Code: issueRunFailed, Detail: n.step.Error}
		if !slices.Contains(t.Issues, issue) {
			t.Issues = append(t.Issues, issue)
		}
	}
}

// conclude fills in the question and the answer if the root had none.
func conclude(t *trail.Trail, a *arrangement) {
	var last *spanNode
	for _, n := range a.steps {
		if t.Question == "" && n.Kind != spanTool && n.Kind != spanGuardrail {
			t.Question = n.step.Question
		}
		if n.step.Answer != "" && (n.Kind == spanLLM || n.Kind == spanAgent) && (last == nil || n.end >= last.end) {
			last = n
		}
	}
	if t.Answer == "" && t.Final == nil && last != nil {
		t.Answer = last.step.Answer
	}
}

// arrangement puts the spans of one run in order.
type arrangement struct {
	run   string
	depth int
	steps []*spanNode
}

// place orders the spans that are below one span, the first of them after before. It returns the steps that the next
// ones come after.
func (a *arrangement) place(list, before []*spanNode) []*spanNode {
	held := slices.DeleteFunc(slices.Clone(list), func(n *spanNode) bool { return !n.hasStep })
	sortByTime(held)
	byEnd := slices.Clone(held)
	slices.SortStableFunc(byEnd, func(x, y *spanNode) int { return cmp.Compare(x.end, y.end) })
	var last []*spanNode // spans that ended, without those that another one that ended came after
	var latest *spanNode // the one in last that began last
	end := func(n *spanNode) {
		if last = append(last, n); latest == nil || n.at > latest.at {
			latest = n
			last = slices.DeleteFunc(last, func(m *spanNode) bool { return m != latest && m.end <= latest.start })
		} else if n.end <= latest.start {
			last = last[:len(last)-1]
		}
	}
	preceding := before
	for _, n := range held {
		ended := false
		for ; len(byEnd) > 0 && byEnd[0].end <= n.start && byEnd[0].at < n.at; byEnd = byEnd[1:] {
			end(byEnd[0])
			ended = true
		}
		if ended {
			preceding = endsOf(last)
		}
		n.ends = a.placeOne(n, preceding)
	}
	for _, n := range byEnd {
		end(n)
	}
	return endsOf(last)
}

// endsOf returns the steps at the ends of spans.
func endsOf(list []*spanNode) []*spanNode {
	if len(list) == 1 {
		return list[0].ends
	}
	var all []*spanNode
	seen := map[*spanNode]bool{}
	for _, n := range list {
		for _, e := range n.ends {
			if !seen[e] {
				seen[e] = true
				all = append(all, e)
			}
		}
	}
	if len(all) > maxAfter {
		slices.SortStableFunc(all, func(x, y *spanNode) int { return cmp.Compare(x.end, y.end) })
		all = all[len(all)-maxAfter:]
	}
	return all
}

func (a *arrangement) placeOne(n *spanNode, before []*spanNode) []*spanNode {
	if !n.isStep {
		return a.place(n.children, before)
	}
	n.after = before
	switch {
	case n.Own:
		a.nestOwn(n)
	case n.Kind == spanAgent && a.depth < trail.MaxNested-1:
		a.nest(n)
	case n.Kind == spanLLM && n.step.Answer == "" && n.step.Outputs != nil: // it called the tools that are below it
		a.steps = append(a.steps, n)
		if ends := a.place(n.children, []*spanNode{n}); len(ends) > 0 {
			return ends
		}
		return []*spanNode{n}
	default:
		if ends := a.place(n.children, before); len(ends) > 0 {
			n.after = ends
		}
	}
	a.steps = append(a.steps, n)
	return []*spanNode{n}
}

// nest makes a nested run from the spans below an agent.
func (a *arrangement) nest(n *spanNode) {
	inner := &arrangement{run: n.step.ID, depth: a.depth + 1}
	inner.place(n.children, nil)
	n.step.Tool = cmp.Or(n.Agent, n.step.Tool)
	if len(inner.steps) == 0 {
		return
	}
	t := n.nestedRun(n.step.ID, a.run, inner.number(nil))
	conclude(t, inner)
	n.step.Question, n.step.Answer = cmp.Or(n.step.Question, t.Question), cmp.Or(n.step.Answer, t.Answer)
	n.step.Nested = t
}

// nestOwn restores the nested run that [Write] wrote below a step.
func (a *arrangement) nestOwn(n *spanNode) {
	if len(n.children) != 1 || !n.children[0].Own || a.depth >= trail.MaxNested {
		return
	}
	run := n.children[0]
	inner := &arrangement{run: run.RunID, depth: a.depth + 1}
	inner.place(run.children, nil)
	n.step.Nested = run.nestedRun(run.RunID, run.ParentRun, inner.number(nil))
}

// nestedRun returns the run that a span is, with the steps below it.
func (n *spanNode) nestedRun(id, parent string, steps []trail.Step) *trail.Trail {
	return &trail.Trail{
		ID: id, Agent: n.Agent, Question: n.step.Question, Answer: n.step.Answer, Started: n.step.Started,
		Finished: n.ended(), Parent: parent, Strategy: n.Strategy, Steps: steps,
	}
}

// sortByTime sorts spans of one run.
func sortByTime(nodes []*spanNode) {
	slices.SortFunc(nodes, func(a, b *spanNode) int { return cmp.Compare(a.at, b.at) })
}

// number numbers the steps, and adds them to those that the run already has.
func (a *arrangement) number(others []trail.Step) []trail.Step {
	sortByTime(a.steps)
	index := make(map[*spanNode]int, len(a.steps))
	for i, n := range a.steps {
		index[n] = i
	}
	before := make([][]int, len(a.steps))
	graph := trail.Trail{Steps: make([]trail.Step, len(a.steps))} // the same steps, numbered by index, for sorting
	taken, highest := map[int]int{}, 0                            // indices in steps, by number
	steps := others
	for i := range steps {
		taken[steps[i].Number] = i
		highest = max(highest, steps[i].Number)
	}
	for i, n := range a.steps {
		for _, b := range n.after {
			before[i] = append(before[i], index[b])
		}
		graph.Steps[i] = trail.Step{Number: i, After: append([]int{}, before[i]...)}
		highest = max(highest, n.Number)
	}
	numbers := make([]int, len(a.steps))
	spanned := map[int]bool{} // the numbers of steps made from a program's spans
	for _, i := range graph.Order() {
		n := a.steps[i]
		if at, ok := taken[n.Number]; ok && n.Number > 0 && !isApart(&steps[at], n, spanned[n.Number]) {
			numbers[i], spanned[n.Number] = n.Number, !n.Own
			join(&steps[at], n.step)
			continue
		}
		if numbers[i] = n.Number; numbers[i] == 0 {
			highest++
			numbers[i] = highest
		}
		if n.step.Number = numbers[i]; n.Own {
			n.step.ID = n.StepID
		}
		n.step.After = n.afterNumbers(before[i], numbers)
		taken[numbers[i]], spanned[numbers[i]] = len(steps), !n.Own
		steps = append(steps, *n.step)
	}
	slices.SortStableFunc(steps, func(x, y trail.Step) int { return cmp.Compare(x.Number, y.Number) })
	return steps
}

// afterNumbers returns the value of After for a step.
func (n *spanNode) afterNumbers(before, numbers []int) []int {
	if n.Own && n.After == nil {
		return nil
	}
	if n.After != nil {
		return slices.Clone(*n.After)
	}
	after := make([]int, 0, len(before))
	for _, b := range before {
		if numbers[b] != n.step.Number {
			after = append(after, numbers[b])
		}
	}
	slices.Sort(after)
	return slices.Compact(after)
}

// isApart reports whether a span is a different step than the one with its number: if both have a nested run, or both
// are spans of a program with different contents, so that nothing is lost. A span that [Write] wrote is always the same
// step.
func isApart(s *trail.Step, n *spanNode, spanned bool) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return s.Nested != nil && n.step.Nested != nil ||
		spanned && !n.Own &&
			(differ(s.Answer, n.step.Answer) || differ(s.Question, n.step.Question) ||
				differ(string(s.Outputs), string(n.step.Outputs)))
}

// join adds what a span has to the step with its number.
func join(s, from *trail.Step) {
	fillTexts(s, from)
	s.ID, s.Tool, s.Reasoning = cmp.Or(s.ID, from.ID), cmp.Or(s.Tool, from.Tool), cmp.Or(s.Reasoning, from.Reasoning)
	s.Confidence, s.Duration = cmp.Or(s.Confidence, from.Confidence), cmp.Or(s.Duration, from.Duration)
	s.Nested = cmp.Or(s.Nested, from.Nested)
	if s.Started.IsZero() {
		s.Started = from.Started
	}
	s.AddSources(from.Sources...)
	s.NoSources = s.NoSources && from.NoSources
	s.Issues = append(s.Issues, from.Issues...)
}

// fillTexts fills in the texts that a step lacks from another one.
func fillTexts(s, from *trail.Step) {
	s.Question, s.Answer = cmp.Or(s.Question, from.Question), cmp.Or(s.Answer, from.Answer)
	s.Error = cmp.Or(s.Error, from.Error)
	if s.Inputs == nil && s.InputsDigest == "" {
		s.Inputs, s.InputsDigest = from.Inputs, from.InputsDigest
	}
	if s.Outputs == nil && s.OutputsDigest == "" {
		s.Outputs, s.OutputsDigest = from.Outputs, from.OutputsDigest
	}
}

const (
	// minUse is how many bytes the text of a document must have for its presence in a prompt to mean something.
	minUse = 24
	// headUse is how many bytes of a document must be in the prompt, since prompts cut off what does not fit.
	headUse = 400
	// maxUse is how many bytes of prompts and answers are searched for the documents of one run.
	maxUse = 1 << 29
	// useCost is how many of them each use of a document counts as.
	useCost = 512
)

// retrieval is a document that a span of the run retrieved.
type retrieval struct {
	by     *spanNode
	source int
	head   string // of its text; empty if too short to search for
}

func (r *retrieval) of() *trail.Source { return &r.by.step.Sources[r.source] }

// retrievals are the documents that a run retrieved, by what a call that used one of them has.
type retrievals struct {
	all         []retrieval
	heads, urls *patterns
	byHead      map[string][]int
	byURL       map[string][]int
	byName      map[string][]int
}

func newRetrievals(all []retrieval) *retrievals {
	r := &retrievals{all: all, byHead: map[string][]int{}, byURL: map[string][]int{}, byName: map[string][]int{}}
	for i := range all {
		s := all[i].of()
		if all[i].head != "" {
			r.byHead[all[i].head] = append(r.byHead[all[i].head], i)
		}
		if s.URL != "" {
			r.byURL[s.URL] = append(r.byURL[s.URL], i)
		}
		if id := s.DocumentID; id != "" && id != s.Key && strings.Trim(id, "0123456789") != "" {
			r.byName[id] = append(r.byName[id], i)
		}
	}
	r.heads, r.urls = newPatterns(slices.Collect(maps.Keys(r.byHead))), newPatterns(slices.Collect(maps.Keys(r.byURL)))
	return r
}

// usedBy returns the documents that were in the prompt of a call, or that its answer names, and whether it names them.
// left is how many bytes may still be searched, and returned as what is left of them.
func (r *retrievals) usedBy(call *spanNode, prompt string, left int) (used map[int]bool, still int) {
	used = map[int]bool{}
	note := func(list []int, cites bool) {
		left -= len(list) * useCost
		for _, i := range list {
			if left >= 0 && (call.end == 0 || r.all[i].by.start < call.end) {
				used[i] = used[i] || cites
			}
		}
	}
	seen := map[string]bool{}
	left = r.heads.in(prompt, left, func(head string, _ int) {
		if !seen[head] {
			seen[head] = true
			note(r.byHead[head], false)
		}
	})
	answer := call.step.Answer
	left = r.urls.in(answer, left, func(url string, at int) {
		if !seen[url] && endsURL(answer[at+len(url):]) {
			seen[url] = true
			note(r.byURL[url], true)
		}
	})
	for _, m := range inBrackets.FindAllStringSubmatch(answer, -1) {
		for name := range strings.FieldsFuncSeq(m[1], func(r rune) bool { return r == ',' || r == ';' }) {
			if name = strings.TrimSpace(name); !seen["["+name] {
				seen["["+name] = true
				note(r.byName[name], true)
			}
		}
	}
	return used, left
}

// markUse finds out which retrieved documents were used, and by which calls of models.
func markUse(nodes []*spanNode) {
	var calls []*spanNode
	var found []retrieval
	for _, n := range nodes {
		switch {
		case n.Own:
		case n.Kind == spanLLM && n.isStep:
			calls = append(calls, n)
		case n.hasStep:
			for i := range n.step.Sources {
				found = append(found, retrieval{by: n, source: i, head: useText(n.step.Sources[i].Content)})
			}
		}
	}
	r := newRetrievals(found)
	left, until := maxUse, int64(math.MinInt64) // the end of the last call that has a prompt
	for _, call := range calls {
		prompt := promptOf(call)
		var used map[int]bool
		if used, left = r.usedBy(call, prompt, left); left < 0 {
			break
		}
		switch {
		case prompt == "":
		case call.end == 0:
			until = math.MaxInt64
		default:
			until = max(until, call.end)
		}
		r.markUsedBy(call, used)
	}
	shown := map[*spanNode]bool{} // those that the model's calls show to have been used
	for i := range found {
		shown[found[i].by] = shown[found[i].by] || found[i].of().Used
	}
	for i := range found {
		by, s := found[i].by, found[i].of()
		searched := found[i].head != "" && by.start < until
		if by.Kind == spanTool && !s.Used && (!searched || !shown[by]) {
			s.Used = true // it goes to the model that called the tool, perhaps in another form
		} else if !searched && !s.Used {
			s.Used = true
			const why = "the trace does not show whether retrieved documents were used; they count as used"
			addIssue(by.step, issueUse, why)
		}
	}
}

// markUsedBy records the documents that a call used, and whether it cites them.
func (r *retrievals) markUsedBy(call *spanNode, used map[int]bool) {
	type passage struct{ id, words string } // retrieved and reranked, it is one passage
	key := func(s *trail.Source) passage { return passage{s.DocumentID, cmp.Or(s.Content, s.Excerpt)} }
	had, more := map[passage]int{}, []trail.Source{}
	for i := range call.step.Sources {
		if k := key(&call.step.Sources[i]); len(used) > 0 {
			if _, there := had[k]; !there {
				had[k] = i
			}
		}
	}
	before := len(call.step.Sources)
	for _, i := range slices.Sorted(maps.Keys(used)) {
		s := r.all[i].of()
		s.Used = true
		if at, there := had[key(s)]; there {
			if at < before {
				call.step.Sources[at].Cited = call.step.Sources[at].Cited || used[i]
			} else {
				more[at-before].Cited = more[at-before].Cited || used[i]
			}
			continue
		}
		had[key(s)] = before + len(more)
		of := *s
		// The score and the rank belong to the search.
		of.Relevance, of.Origin, of.Rank, of.Retrieved, of.Cited = nil, "", 0, false, used[i]
		more = append(more, of)
	}
	call.step.AddSources(more...)
}

// useText returns what of a document must be in a prompt, with white space replaced by single spaces.
func useText(content string) string {
	if len(content) > 4*headUse {
		content = strings.ToValidUTF8(content[:4*headUse], "")
	}
	var b strings.Builder
	for word := range strings.FieldsSeq(content) {
		if b.Len() > headUse {
			break
		}
		b.WriteString(word)
		b.WriteByte(' ')
	}
	text := strings.TrimSuffix(b.String(), " ")
	if len(text) < minUse {
		return ""
	}
	if len(text) > headUse {
		text = strings.ToValidUTF8(text[:headUse], "")
	}
	return strings.TrimSpace(text)
}

// promptOf returns all text that a model's call was given, with white space replaced by single spaces.
func promptOf(n *spanNode) string {
	var b strings.Builder
	add := func(s string) {
		for word := range strings.FieldsSeq(s) {
			b.WriteString(word)
			b.WriteByte(' ')
		}
	}
	if n.step.Inputs != nil {
		if v, ok := parseJSON(string(n.step.Inputs)); ok {
			eachText(v, 0, add)
		}
	}
	if b.Len() == 0 && n.step.InputsDigest == "" {
		add(n.step.Question)
	}
	return b.String()
}

// eachText calls do for the texts in a value, including those in JSON inside a text, which is how prompts contain the
// results of tools.
func eachText(v any, depth int, do func(string)) {
	if depth > maxSpanDepth {
		return
	}
	switch v := v.(type) {
	case string:
		if inner, ok := parseJSON(v); ok {
			eachText(inner, depth+1, do)
		} else {
			do(v)
		}
	case []any:
		for _, item := range v {
			eachText(item, depth+1, do)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachText(v[name], depth+1, do)
		}
	}
}

var inBrackets = regexp.MustCompile(`\[([^\[\]]*)\]`)

// endsURL reports whether a URL ends where this text follows it, or goes on as another one.
func endsURL(text string) bool {
	end := strings.TrimLeft(text, "/.,;:!?")
	return end == "" || strings.ContainsRune(" \t\r\n)]}>\"'|*_`", rune(end[0])) ||
		len(end) < len(text) && end[0] >= 0x80
}
