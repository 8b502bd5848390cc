package ibid

// index finds numbers by name. Most answers have few names, which a list finds sooner than a map would be made. The
// zero value is empty.
type index struct {
	few  []indexed
	many map[string]int // nil while there are few
}

type indexed struct {
	name string
	n    int
}

// fewNames is how many names are searched one by one.
const fewNames = 8

// get returns the number that name has, and whether it has one.
func (x *index) get(name string) (int, bool) {
	if x.many != nil {
		n, ok := x.many[name]
		return n, ok
	}
	for i := range x.few {
		if x.few[i].name == name {
			return x.few[i].n, true
		}
	}
	return 0, false
}

// set gives name a number, in place of one that it has.
func (x *index) set(name string, n int) {
	if x.many != nil {
		x.many[name] = n
		return
	}
	for i := range x.few {
		if x.few[i].name == name {
			x.few[i].n = n
			return
		}
	}
	switch {
	case x.few == nil:
		x.few = make([]indexed, 0, fewNames/2) // cheaper than 1, 2, 4
	case len(x.few) == fewNames:
		x.many = make(map[string]int, 2*fewNames)
		for _, e := range x.few {
			x.many[e.name] = e.n
		}
		x.many[name] = n
		return
	}
	x.few = append(x.few, indexed{name, n})
}
