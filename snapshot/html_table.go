package snapshot

import (
	"slices"

	"golang.org/x/net/html/atom"
)

// isTablePart reports whether an element is one of which tables are made.
func isTablePart(a atom.Atom) bool {
	switch a {
	case atom.Table, atom.Caption, atom.Colgroup, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		return true
	default:
		return false
	}
}

// tableStart applies the rules for a start tag in a table. False: those of the body apply.
func (f *fastHTML) tableStart(a atom.Atom) bool {
	for !f.failed {
		switch part := f.part(); part {
		case 0:
			return false
		case atom.Td, atom.Th:
			if a != atom.Col && (!isTablePart(a) || a == atom.Table) {
				return false
			}
			f.closeCell(f.tables[len(f.tables)-1])
		case atom.Caption:
			if a == atom.Th {
				f.giveUp()
				return true
			}
			if a != atom.Col && (!isTablePart(a) || a == atom.Table) {
				return false
			}
			f.closeCell(f.tables[len(f.tables)-1])
		default:
			if f.tableTag(part, a) {
				return true
			}
		}
	}
	return true
}

// tableTag reads a start tag directly in a part of a table. False: that part ended, or another began, and it is to be
// read again.
func (f *fastHTML) tableTag(part, a atom.Atom) bool {
	switch {
	case part == atom.Colgroup:
		if a == atom.Col {
			return true
		}
		f.closeTo(len(f.stack) - 1)
		return false
	case a == atom.Script || a == atom.Style:
		f.rawElement()
		return true
	case !isTablePart(a) && a != atom.Col || a == atom.Table:
		f.giveUp() // it would stand before the table, or end it
		return true
	}
	cell := a == atom.Td || a == atom.Th
	switch part {
	case atom.Tr:
		if cell {
			f.push()
			return true
		}
		f.closeTo(len(f.stack) - 1)
		return false
	case atom.Tbody, atom.Thead, atom.Tfoot:
		switch {
		case a == atom.Tr:
			f.push()
			return true
		case cell:
			f.open(atom.Tr, false)
		default:
			f.closeTo(len(f.stack) - 1)
		}
		return false
	default: // a table
		switch {
		case a == atom.Col:
			f.open(atom.Colgroup, false)
			return false
		case a == atom.Tr || cell:
			f.open(atom.Tbody, false)
			return false
		}
		f.push()
		return true
	}
}

// tableEnd applies the rules for an end tag in a table. False: those of the body apply.
func (f *fastHTML) tableEnd(a atom.Atom) bool {
	for !f.failed {
		part := f.part()
		if part == 0 {
			return true // the table has ended
		}
		at := f.tables[len(f.tables)-1]
		switch {
		case part == atom.Colgroup:
			if a == atom.Col {
				return true
			}
			f.closeTo(at)
			if a == atom.Colgroup {
				return true
			}
		case a == atom.Body, a == atom.Col, a == atom.Html:
			return true
		case !isTablePart(a):
			if f.inTable() {
				f.giveUp()
			}
			return f.failed
		case a == part:
			f.closeCell(at)
			return true
		case part == atom.Caption && a != atom.Table, !f.endsPart(part, a):
			return true
		default:
			f.closeCell(at)
		}
	}
	return true
}

// endsPart reports whether the end tag of something around a part of a table ends that, too.
func (f *fastHTML) endsPart(part, a atom.Atom) bool {
	switch a {
	case atom.Table:
		return true
	case atom.Tr:
		if part != atom.Td && part != atom.Th {
			return false
		}
	case atom.Tbody, atom.Thead, atom.Tfoot:
		if part == atom.Table || part == atom.Tbody || part == atom.Thead || part == atom.Tfoot {
			return false
		}
	default:
		return false
	}
	for _, i := range slices.Backward(f.tables) {
		switch o := f.stack[i].atom; o {
		case a:
			return true
		case atom.Table:
			return false
		default:
		}
	}
	return false
}
