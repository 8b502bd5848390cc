package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// panel is one part of a chart: the CPU time of each target as a multiple of ReverseProxy's.
type panel struct {
	title string
	bars  []bar
}

type bar struct {
	name   string
	ratio  float64 // to ReverseProxy
	micros float64
	other  bool // not a part of this program
}

// Positions in a chart, in pixels.
const (
	chartWidth = 760
	labelWidth = 210
	plotWidth  = 400
	barHeight  = 18
	barRoom    = 26
	panelHead  = 34
)

// drawn returns the panels as an SVG with a shared, labelled logarithmic scale.
func drawn(panels []panel) []byte {
	low, high, rows := 1.0, 1.0, 0
	for _, p := range panels {
		for _, b := range p.bars {
			if b.ratio > 0 {
				low, high = min(low, b.ratio), max(high, b.ratio)
			}
			rows++
		}
	}
	low /= 1.5
	x := func(ratio float64) float64 {
		return labelWidth + plotWidth*math.Log(max(ratio, low)/low)/math.Log(high/low)
	}
	height := rows*barRoom + len(panels)*(panelHead+12) + panelHead
	var b bytes.Buffer
	fmt.Fprintf(
		&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" `+
			`font-size="13" role="img" aria-label="CPU of gateways as a ratio to ReverseProxy">`+"\n",
		chartWidth, height,
	)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", chartWidth, height)
	y := 0
	for _, p := range panels {
		fmt.Fprintf(&b, `<text x="12" y="%d" font-weight="600">%s</text>`+"\n", y+22, html.EscapeString(p.title))
		y += panelHead
		fmt.Fprintf(
			&b, `<path d="M%.0f %dv%d" stroke="#999" stroke-dasharray="3 3"/>`+"\n", x(1), y-4, len(p.bars)*barRoom+4,
		)
		for _, one := range p.bars {
			colour := "#2457c5"
			if one.other || one.name == reverseName {
				colour = "#9aa3b2"
			}
			fmt.Fprintf(
				&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+
					`<rect x="%d" y="%d" width="%.0f" height="%d" fill="%s"/>`+
					`<text x="%.0f" y="%d">%s× · %.0f µs</text>`+"\n",
				labelWidth-8, y+14, html.EscapeString(one.name), labelWidth, y, x(one.ratio)-labelWidth, barHeight,
				colour, x(one.ratio)+6, y+14, twoDigits(one.ratio), one.micros,
			)
			y += barRoom
		}
		y += 12
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#666">logarithmic scale</text>`+"\n", labelWidth, y+12)
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// twoDigits writes a ratio with two digits, or without a fraction.
func twoDigits(ratio float64) string {
	switch {
	case ratio < 1:
		return fmt.Sprintf("%.2f", ratio)
	case ratio < 10:
		return fmt.Sprintf("%.1f", ratio)
	}
	return fmt.Sprintf("%.0f", ratio)
}

// line is one curve of a chart with two logarithmic axes.
type line struct {
	name   string
	points []point
}

type point struct{ answers, millis float64 }

// lineColours are the colours of the curves, in order.
var lineColours = []string{"#2457c5", "#c4483c", "#2e8b57", "#8a5bbf", "#b8860b", "#30858f", "#555"}

// drawnLines returns the curves as an SVG: answers on the x axis, milliseconds on the y axis, both by decades.
func drawnLines(lines []line) []byte {
	const left, top, width, height = 60, 20, 460, 300
	x := func(answers float64) float64 { return left + width*(math.Log10(answers)-4)/3 }
	y := func(millis float64) float64 { return top + height*(1-(math.Log10(max(millis, .1))+1)/4) }
	var b bytes.Buffer
	fmt.Fprintf(
		&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" `+
			`font-size="12" role="img" aria-label="How long a question takes by the number of answers">`+"\n"+
			`<rect width="%[1]d" height="%[2]d" fill="#fff"/>`+"\n",
		chartWidth, top+height+40,
	)
	for i, name := range []string{"10⁴", "10⁵", "10⁶", "10⁷ answers"} {
		at := x(math.Pow10(i + 4))
		fmt.Fprintf(&b, `<path d="M%.0f %dv%d" stroke="#ddd"/><text x="%[1]f" y="%[4]d" text-anchor="middle">%[5]s</text>`+"\n",
			at, top, height, top+height+18, name)
	}
	for i, name := range []string{"0.1 ms", "1", "10", "100", "1000"} {
		at := y(math.Pow10(i - 1))
		fmt.Fprintf(&b, `<path d="M%d %.0fh%d" stroke="#ddd"/><text x="%d" y="%.0f" text-anchor="end">%s</text>`+"\n",
			left, at, width, left-6, at+4, name)
	}
	for i, l := range lines {
		colour := lineColours[i%len(lineColours)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour)
		for _, p := range l.points {
			fmt.Fprintf(&b, "%.0f,%.0f ", x(p.answers), y(p.millis))
		}
		fmt.Fprintf(&b, `"/><text x="%d" y="%d" fill="%s">%s</text>`+"\n", left+width+16, top+14+i*20, colour, html.EscapeString(l.name))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
