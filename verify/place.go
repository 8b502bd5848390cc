package verify

import (
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// inPlace reports whether the excerpt, or what has its hash, stands where the manifest says, and notes it. Where the
// manifest does not name our text profile, offsets may count octets of the document, or UTF-16 units, as well.
func (c *comparison) inPlace() bool {
	at := c.cs.ExcerptOffset
	if at == nil || at[0] < 0 || at[1] <= at[0] {
		return false
	}
	known := c.options.TextProfile == manifest.TextProfile
	if slice, ok := snapshot.Slice(c.text.Content, at[0], at[1]); ok && c.fits(slice) {
		if !known {
			c.result.Unit = UnitText
		}
		c.stands(snapshot.Match{
			Start: at[0], End: at[1], How: snapshot.MatchExact, Count: max(1, strings.Count(c.text.Content, slice)),
			Cut: snapshot.IsCut(c.text.Content, at[0], at[1]),
		})
		return true
	}
	if known {
		return false
	}
	if at[1] <= len(c.snap.Octets) {
		if slice := string(c.snap.Octets[at[0]:at[1]]); utf8.ValidString(slice) && c.fits(slice) {
			return c.inUnit(UnitOctet, slice, -1)
		}
	}
	start, ok := fromUTF16(c.text.Content, at[0])
	end, okEnd := fromUTF16(c.text.Content, at[1])
	if !ok || !okEnd {
		return false
	}
	if slice, ok := snapshot.Slice(c.text.Content, start, end); ok && c.fits(slice) {
		return c.inUnit(UnitUTF16, slice, start)
	}
	return false
}

// inUnit notes an excerpt that stands in place, if one counts in another unit. Start is where it stands in the text;
// negative: that is to be found out.
func (c *comparison) inUnit(u Unit, slice string, start int) bool {
	c.result.Unit = u
	q := snapshot.Quote{Exact: slice}
	if start >= 0 {
		q.Start, q.End = start, start+utf8.RuneCountInString(slice)
	}
	m, ok := c.find(&q)
	if !ok {
		c.result.Unit = ""
		return false // in markup or in a script: nobody sees it
	}
	m.How = snapshot.MatchExact
	c.stands(m)
	return true
}

// fits reports whether a slice is the recorded excerpt.
func (c *comparison) fits(slice string) bool {
	if e := c.cs.Excerpt; e != nil && e.Exact != "" {
		return slice == e.Exact || snapshot.Normalize(slice) == snapshot.Normalize(e.Exact)
	}
	return c.cs.ExcerptHash != "" && snapshot.Hash([]byte(slice)) == c.cs.ExcerptHash
}

// fromUTF16 returns the code point that begins with the n-th UTF-16 unit of a text; false: none does.
func fromUTF16(text string, n int) (int, bool) {
	units, runes := 0, 0
	for _, r := range text {
		if units >= n {
			break
		}
		units++
		if r > 0xffff {
			units++
		}
		runes++
	}
	return runes, units == n
}
