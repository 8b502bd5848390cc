package biblio

import (
	"fmt"
	"strconv"
	"strings"
)

func appendRIS(out []byte, items []item) []byte {
	for i := range items {
		it := &items[i]
		tag := func(name, value string) {
			if value != "" {
				out = fmt.Appendf(out, "%s  - %s\n", name, value)
			}
		}
		tag("TY", it.risType())
		tag("ID", it.key)
		for _, n := range it.names {
			tag("AU", n.ris())
		}
		tag("TI", it.title)
		tag(pick(it.class == webpage, "T2", "PB"), it.site)
		tag("M3", it.genre)
		if it.issued.known() {
			tag("PY", fmt.Sprintf("%04d", it.issued.year))
		}
		if it.issued.month != 0 {
			tag("DA", it.issued.ris())
		}
		if it.pages != nil {
			tag("SP", strconv.Itoa(it.pages[0]))
			tag("EP", strconv.Itoa(it.pages[1]))
		}
		tag("DO", it.doi)
		tag("UR", it.url)
		tag("Y2", it.accessed.ris())
		out = append(out, "ER  - \n\n"...)
	}
	return out
}

func (it *item) risType() string {
	switch it.class {
	case webpage:
		return "ELEC"
	case dataset:
		return "DATA"
	case document:
	}
	return "GEN"
}

// ris returns the date as year, month and day, each ended by a slash but the last.
func (d date) ris() string {
	switch {
	case !d.known():
		return ""
	case d.day == 0:
		return fmt.Sprintf("%04d/%02d//", d.year, d.month)
	}
	return fmt.Sprintf("%04d/%02d/%02d", d.year, d.month, d.day)
}

// ris returns the name as "Family, Given, Suffix". A comma is how RIS knows persons, so names that are whole lose
// theirs.
func (n name) ris() string {
	if n.whole != "" {
		return strings.ReplaceAll(n.whole, ",", "")
	}
	s := strings.TrimSpace(n.particle+" "+n.family) + ", " + n.given
	if n.suffix != "" {
		s += ", " + n.suffix
	}
	return s
}
