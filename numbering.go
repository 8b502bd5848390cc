package ibid

import (
	"maps"
	"slices"
	"strings"
)

// Numbers is which numbers sources get in a rendering.
type Numbers string

// The values of [Numbers]. The zero value means NumbersProvider where the model's numbers can be kept: if it printed a
// list of sources, or if it calls every cited source by one number, in marks such as [2], and none of these is that of
// another source, in the answer or in the Numbering. Else it means NumbersUsed.
const (
	NumbersUsed     Numbers = "used"     // by first use, or as the Numbering says
	NumbersProvider Numbers = "provider" // those of the marks in the text and of the list that the model printed
)

// AllNumbers returns the values of [Numbers].
func AllNumbers() []Numbers { return []Numbers{NumbersUsed, NumbersProvider} }

// Numbering maps [Source.Key] to the number of a source across the answers of a conversation. It only grows, so a
// number is never reused for another source. Its JSON form is an object.
//
// The zero value is ready to use through a pointer. It is not safe for concurrent use.
type Numbering map[string]int

// Number returns the number of the source with that key. A new key gets the next number, beginning with 1.
func (n *Numbering) Number(key string) int { return n.numberAll([]string{key})[key] }

// number numbers the cited sources of an answer and then, if all is set, the uncited ones. It returns, in the order of
// a.Sources, the numbers (0 for none) and whether each is cited. A nil n begins at 1.
//
// Numbers are stored by Key, but if two sources share a key, the later one gets a key of its own: sources about which
// nothing is known are still different sources.
//
// The numbers of a printed list win over what n says, and n gets them for new sources only.
func (n *Numbering) number(a *Answer, all bool, which Numbers) (numbers []int, cited []bool) {
	if n == nil {
		n = &Numbering{}
	}
	keys := make([]string, len(a.Sources))
	taken := make(map[string]bool, len(a.Sources))
	for i := range a.Sources {
		keys[i] = a.Sources[i].Key()
		if taken[keys[i]] {
			keys[i] += "#" + a.Sources[i].ID
		}
		taken[keys[i]] = true
	}
	cited = make([]bool, len(keys))
	use := make([]string, 0, 2*len(keys))
	for _, i := range a.firstUse() {
		cited[i] = true
		use = append(use, keys[i])
	}
	if all {
		use = append(use, keys...)
	}
	known := n
	if which != NumbersUsed {
		written, complete, printed := a.writtenNumbers(cited)
		own := Numbering{}
		for i, number := range written {
			if number > 0 && (cited[i] || all) {
				own[keys[i]] = number
			}
		}
		switch {
		case which == NumbersProvider || printed:
			own.fill(use)
			known = &own
		case complete && n.accepts(own):
			n.fill(use)
		}
	}
	n.numberAll(use)
	numbers = make([]int, len(keys))
	for i, key := range keys {
		numbers[i] = (*known)[key]
	}
	return numbers, cited
}

// accepts adds numbers to n, or returns false if n has one of them for another key or one of the keys with another
// number.
func (n *Numbering) accepts(more Numbering) bool {
	owners := make(map[int]string, len(*n))
	for key, number := range *n {
		owners[number] = key
	}
	for key, number := range more {
		if owner, taken := owners[number]; taken && owner != key || (*n)[key] != 0 && (*n)[key] != number {
			return false
		}
	}
	if *n == nil {
		*n = make(Numbering, len(more))
	}
	maps.Copy(*n, more)
	return true
}

// fill gives each of keys that has no number the lowest one that is free: the uncited passages of a prompt get the
// numbers that they have there.
func (n *Numbering) fill(keys []string) {
	taken := make(map[int]bool, len(*n))
	for _, number := range *n {
		taken[number] = true
	}
	next := 1
	for _, key := range keys {
		if _, known := (*n)[key]; known {
			continue
		}
		for taken[next] {
			next++
		}
		(*n)[key] = next
		next++
	}
}

// numberAll is Number for each of keys, with a single pass over the existing numbers.
func (n *Numbering) numberAll(keys []string) Numbering {
	if *n == nil {
		*n = make(Numbering, len(keys))
	}
	last := 0
	for _, number := range *n {
		last = max(last, number)
	}
	for _, key := range keys {
		if _, known := (*n)[key]; !known {
			last++
			(*n)[key] = last
		}
	}
	return *n
}

// writtenNumbers returns the numbers by which the model calls the sources of a, by index; 0 for one that it does not
// call by a number. Marks in the text count before a list that the model printed. Complete means that each cited source
// has one number, and each number one source; printed, that there is a list.
func (a *Answer) writtenNumbers(cited []bool) (numbers []int, complete, printed bool) {
	var w numberReader
	for i := range a.Citations {
		c := &a.Citations[i]
		if c.Covers == CoversLink && c.Placed() && c.Span.Start >= 0 && c.Span.End <= len(a.Text) {
			w.read(c.Refs, a.Text[c.Span.Start:c.Span.End])
		}
		w.see(c.Refs)
	}
	_, entries, printed := a.printedList()
	for _, e := range entries {
		if e.source >= 0 && e.number > 0 && w.of[a.Sources[e.source].ID] == 0 && w.owners[e.number] == "" {
			w.set(a.Sources[e.source].ID, e.number)
		}
	}
	numbers, complete = make([]int, len(a.Sources)), !w.clash
	for i := range a.Sources {
		numbers[i] = w.of[a.Sources[i].ID]
		complete = complete && (numbers[i] > 0 || !cited[i])
	}
	return numbers, complete, printed
}

// numberReader reads the numbers by which marks in a text call sources.
type numberReader struct {
	of     map[string]int  // by id
	owners map[int]string  // id by number
	seen   map[string]bool // ids of sources that were cited
	clash  bool            // a source has two numbers, or a number two sources
}

// see remembers that sources were cited.
func (w *numberReader) see(refs []Ref) {
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	for i := range refs {
		w.seen[refs[i].Source] = true
	}
}

// read reads a mark that cites refs. It expects marks in the order of the text:
// what refs say of sources that were not cited before is in the order of the mark.
func (w *numberReader) read(refs []Ref, mark string) {
	numbers := numbersIn(mark)
	if len(numbers) == 0 {
		return
	}
	var ids []string
	for i := range refs {
		id := refs[i].Source
		switch at := slices.Index(numbers, w.of[id]); {
		case slices.Contains(ids, id):
		case w.of[id] == 0:
			ids = append(ids, id)
		case at < 0:
			w.clash = true
		}
	}
	numbers = slices.DeleteFunc(numbers, func(n int) bool {
		return w.owners[n] != "" && slices.ContainsFunc(refs, func(r Ref) bool { return r.Source == w.owners[n] })
	})
	cited := func(id string) bool { return w.seen[id] }
	if len(ids) != len(numbers) || len(ids) > 1 && slices.ContainsFunc(ids, cited) {
		return // which is which cannot be told
	}
	for i, id := range ids {
		if w.owners[numbers[i]] != "" {
			w.clash = true
		} else {
			w.set(id, numbers[i])
		}
	}
}

func (w *numberReader) set(id string, n int) {
	if w.of == nil {
		w.of, w.owners = map[string]int{}, map[int]string{}
	}
	w.of[id], w.owners[n] = n, id
}

// numbersIn returns the numbers in a mark, in order, each once. A number that is a part of a name, as in [doc2] and
// [citation:2], is none: such marks are for programs, and no reader sees them.
func numbersIn(mark string) (numbers []int) {
	if digits := superscript(mark); digits != "" {
		return []int{number(digits)}
	}
	if _, rest, ok := strings.Cut(mark, "]("); ok && strings.HasSuffix(rest, ")") {
		mark = mark[:len(mark)-len(rest)-1]
	}
	inside, _, _ := strings.Cut(strings.Trim(mark, "[]()【】［］〔〕^% "), "†")
	for _, item := range markItems.Split(inside, maxMarkItems+1) {
		m := numbered().FindStringSubmatch(strings.Trim(item, " ^"))
		if m == nil || m[1] != "" && strings.TrimRight(m[1], " #.") == m[1] {
			return nil
		}
		first, last := number(m[2]), max(number(m[2]), number(m[3]))
		if first < 1 || last-first >= maxMarkItems {
			return nil
		}
		for n := first; n <= last; n++ {
			if !slices.Contains(numbers, n) {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
}
