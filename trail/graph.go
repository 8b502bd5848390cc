package trail

import (
	"container/heap"
	"slices"
	"sort"
	"time"
)

// Graph returns for each step the indices in t.Steps of those that it builds on, ascending: the ones its After names,
// or where that is nil the one before. Of several steps with one number it is the last. Numbers that no step has, and
// the step's own, are left out.
func (t *Trail) Graph() [][]int {
	at := t.lastByNumber()
	before := make([][]int, len(t.Steps))
	previous := -1 // the first of the last steps with a smaller number
	for i := range t.Steps {
		s := &t.Steps[i]
		if i > 0 && t.Steps[i-1].Number != s.Number {
			previous = i - 1
		}
		if s.After == nil {
			if previous >= 0 {
				before[i] = []int{previous}
			}
			continue
		}
		for _, number := range s.After {
			if b, ok := at[number]; ok && number != s.Number {
				before[i] = append(before[i], b)
			}
		}
		slices.Sort(before[i])
		before[i] = slices.Compact(before[i])
	}
	return before
}

// Before returns the row of [Trail.Graph] for the step at index i.
func (t *Trail) Before(i int) []int { return t.Graph()[i] }

// lastByNumber returns the index of the last step of each number. All of them would make a graph with a square of
// edges.
func (t *Trail) lastByNumber() map[int]int {
	at := make(map[int]int, len(t.Steps))
	for i := range t.Steps {
		at[t.Steps[i].Number] = i
	}
	return at
}

// Order returns the indices of all steps so that each comes after those it builds on, and otherwise by number. Steps in
// a cycle, and those that build on them, come last, by number.
func (t *Trail) Order() []int {
	order, cyclic := order(t.Graph())
	return append(order, cyclic...)
}

// order sorts a graph topologically. What hangs on a cycle is returned apart.
func order(before [][]int) (order, cyclic []int) {
	after, missing := make([][]int, len(before)), make([]int, len(before))
	for i, all := range before {
		missing[i] = len(all)
		for _, b := range all {
			after[b] = append(after[b], i)
		}
	}
	order = make([]int, 0, len(before))
	ready := &minHeap{}
	for i := range before {
		if missing[i] == 0 {
			heap.Push(ready, i)
		}
	}
	for ready.Len() > 0 {
		i := heap.Pop(ready).(int)
		order = append(order, i)
		for _, next := range after[i] {
			if missing[next]--; missing[next] == 0 {
				heap.Push(ready, next)
			}
		}
	}
	if len(order) == len(before) {
		return order, nil
	}
	for i := range before {
		if missing[i] > 0 {
			cyclic = append(cyclic, i)
		}
	}
	return order, cyclic
}

// minHeap gives the smallest of its numbers first.
type minHeap struct{ sort.IntSlice }

// Push appends a number, for package heap.
func (h *minHeap) Push(n any) { h.IntSlice = append(h.IntSlice, n.(int)) }

// Pop removes the last number, for package heap.
func (h *minHeap) Pop() any {
	last := len(h.IntSlice) - 1
	n := h.IntSlice[last]
	h.IntSlice = h.IntSlice[:last]
	return n
}

// CriticalPath returns the steps that the run waited for, as indices in their order, and the time they took together:
// of all ways through the graph the one with the longest sum of durations. Steps in a cycle are left out.
func (t *Trail) CriticalPath() ([]int, time.Duration) {
	before := t.Graph()
	steps, _ := order(before)
	took, from, end := make([]time.Duration, len(before)), make([]int, len(before)), -1
	for _, i := range steps {
		from[i] = -1
		for _, b := range before[i] {
			if from[i] < 0 || took[b] > took[from[i]] {
				from[i] = b
			}
		}
		if from[i] >= 0 {
			took[i] = took[from[i]]
		}
		took[i] += max(0, t.Steps[i].Duration)
		if end < 0 || took[i] > took[end] {
			end = i
		}
	}
	if end < 0 {
		return nil, 0
	}
	var path []int
	for i := end; i >= 0; i = from[i] {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path, took[end]
}
