package page

import (
	"math"
	"strconv"
	"time"

	"github.com/ibidhq/ibid/store"
)

// chart is a bar chart, drawn by templates/parts/chart.html, with its numbers as a table.
type chart struct {
	ID    string // of its title and description on the page
	Title string
	Desc  string // what it shows, in a sentence
	Bars  []chartBar
	Key   []chartKey // what its colours mean; nil if there is only one
	Head  []string   // of the table
	Rows  [][]string
}

// chartBar is one column of a chart, with its label below and its value above.
type chartBar struct {
	Mid, Value  float64 // positions of the label and the value
	Label, Word string
	Parts       []chartPart
}

// chartPart is a rectangle of a column.
type chartPart struct {
	X, Y, Width, Height float64
	Kind                string // of badges
}

// chartKey explains a colour.
type chartKey struct{ Kind, Word string }

// The dimensions of charts, in units of their view box, as in templates/parts/chart.html.
const (
	chartWidth = 360
	chartBase  = 128 // the foot of the columns
	chartTop   = 20  // above the highest column
)

// column is a column to be drawn: its parts as counts, from the bottom.
type column struct {
	label, word string
	parts       []int
	kinds       []string
}

// draw lays columns out, with the full height for most; if most is 0 each column is full, so that its parts are shares.
func draw(columns []column, most int) []chartBar {
	bars := make([]chartBar, 0, len(columns))
	step := chartWidth / float64(max(len(columns), 4))
	width := math.Min(step*0.64, 40)
	for i, c := range columns {
		of := most
		if of == 0 {
			for _, n := range c.parts {
				of += n
			}
		}
		bar := chartBar{Mid: round(step * (float64(i) + 0.5)), Label: c.label, Word: c.word}
		y := float64(chartBase)
		for k, n := range c.parts {
			if n == 0 || of == 0 {
				continue
			}
			height := math.Max(float64(n)/float64(of)*(chartBase-chartTop), 1.5)
			y -= height
			bar.Parts = append(
				bar.Parts,
				chartPart{
					X:      round(bar.Mid - width/2),
					Y:      round(y),
					Width:  round(width),
					Height: round(height),
					Kind:   c.kinds[k],
				},
			)
		}
		bar.Value = round(y - 5)
		bars = append(bars, bar)
	}
	return bars
}

func round(x float64) float64 { return math.Round(x*10) / 10 }

// citationChart shows the distribution of citations per answer.
func citationChart(d *digest) *chart {
	if d.Answers == 0 {
		return nil
	}
	from := []int{0, 1, 2, 3, 5, 10, 20, 50}
	columns := make([]column, len(from))
	for i, n := range from {
		label := strconv.Itoa(n)
		switch {
		case i == len(from)-1:
			label += "+"
		case from[i+1] > n+1:
			label += "–" + strconv.Itoa(from[i+1]-1)
		}
		kind := "plain"
		if n == 0 {
			kind = badgeNone
		}
		columns[i] = column{label: label, parts: []int{0}, kinds: []string{kind}}
	}
	for n, answers := range d.perCited {
		i := len(from) - 1
		for from[i] > n {
			i--
		}
		columns[i].parts[0] += answers
	}
	c := &chart{ID: "per-answer", Title: "Citations per answer", Head: []string{"Citations", "Answers"}}
	c.Desc = "How many answers have how many citations: " + counted(d.Answers, "answer", "answers") + ", " +
		strconv.Itoa(d.perCited[0]) + " of them without any."
	most := 0
	for i := range columns {
		n := columns[i].parts[0]
		most = max(most, n)
		if n > 0 {
			columns[i].word = strconv.Itoa(n)
		}
		c.Rows = append(c.Rows, []string{columns[i].label, strconv.Itoa(n)})
	}
	c.Bars = draw(columns, most)
	return c
}

// period is a number of days that a chart adds up.
type period struct {
	from                         time.Time
	passed, unverifiable, failed int
}

const (
	// maxDays is the longest range with a column for each day, and maxWeeks how many weeks have columns, the latest
	// ones.
	maxDays  = 12
	maxWeeks = 12
)

// spansOf sums up days by weeks that begin on Monday, up to the latest maxWeeks; a short range stays in days. There are
// no gaps between the first and the last, so that they form a time axis. cut reports that there are earlier ones.
func spansOf(days []store.CheckedDay) (spans []period, weeks, cut bool) {
	if len(days) == 0 {
		return nil, false, false
	}
	first, last, step := days[0].Day, days[len(days)-1].Day, 1
	if weeks = last.Sub(first) >= maxDays*24*time.Hour; weeks {
		first, last, step = mondayOf(first), mondayOf(last), 7
		if from := last.AddDate(0, 0, -7*(maxWeeks-1)); first.Before(from) {
			first, cut = from, true
		}
	}
	for from := first; !from.After(last); from = from.AddDate(0, 0, step) {
		spans = append(spans, period{from: from})
	}
	for _, d := range days {
		if d.Day.Before(first) {
			continue
		}
		s := &spans[int(d.Day.Sub(first)/(24*time.Hour))/step]
		s.passed, s.unverifiable, s.failed = s.passed+d.Passed, s.unverifiable+d.Unverifiable, s.failed+d.Failed
	}
	return spans, weeks, cut
}

// mondayOf returns the Monday of a day's week.
func mondayOf(day time.Time) time.Time { return day.AddDate(0, 0, -(int(day.Weekday())+6)%7) }

// verifiedChart shows the share of the checked citations that still hold, over time. It is nil if none was checked.
func verifiedChart(days []store.CheckedDay) *chart {
	spans, weeks, cut := spansOf(days)
	if len(spans) == 0 {
		return nil
	}
	unit, last := "day", spans[len(spans)-1].from
	if weeks {
		unit, last = "week", last.AddDate(0, 0, 6)
	}
	desc := "Citations whose source could be checked, by the " + unit + " of their answer: the share whose source " +
		"still has the quoted words or, if none were recorded, is unchanged. "
	if len(spans) == 1 && !weeks {
		desc += "On " + day(last) + "."
	} else {
		desc += "From " + day(spans[0].from) + " to " + day(last) + "."
	}
	if cut {
		desc += " Earlier ones are not shown."
	}
	c := &chart{
		ID: "verified", Title: "Citations that hold", Desc: desc,
		Head: []string{"Day of the answers", "Hold", "Could not be checked", "Do not hold", "Share"},
		Key:  []chartKey{{badgeGood, "holds"}, {badgeLost, "could not be checked"}, {badgeBad, "does not hold"}},
	}
	if weeks {
		c.Head[0] = "Week of the answers, from"
	}
	columns := make([]column, 0, len(spans))
	for i, s := range spans {
		share, word := "none was checked", ""
		if of := s.passed + s.failed; of == 0 && s.unverifiable > 0 {
			share = "none could be checked"
		} else if of > 0 { // what could not be checked counts neither for nor against a source
			word = percent(float64(s.passed) / float64(of))
			share = word
		}
		col := column{
			label: s.from.Format("2 Jan"), word: word, parts: []int{s.passed, s.unverifiable, s.failed},
			kinds: []string{badgeGood, badgeLost, badgeBad},
		}
		if len(spans) > 8 && (len(spans)-1-i)%2 == 1 { // there is no room for all
			col.label, col.word = "", ""
		}
		columns = append(columns, col)
		c.Rows = append(
			c.Rows,
			[]string{day(s.from), strconv.Itoa(s.passed), strconv.Itoa(s.unverifiable), strconv.Itoa(s.failed), share},
		)
	}
	c.Bars = draw(columns, 0)
	return c
}
