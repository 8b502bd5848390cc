package pdf

import (
	"bytes"
	"math"
)

const (
	maxForms = 12  // nesting of forms
	maxSaved = 256 // saved states
)

// transform is [a b c d e f] as in the format: x' = ax + cy + e, y' = bx + dy + f.
type transform [6]float64

// mul returns m followed by n.
func (m transform) mul(n transform) transform {
	return transform{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// textState is the state that text operators change.
type textState struct {
	ctm              transform
	font             *typeface
	size             float64
	charSpace, space float64
	scale            float64 // horizontal
	leading, rise    float64
}

// interpreter runs the content of one page.
type interpreter struct {
	*file

	out       *layout
	resources dict
	state     textState
	saved     []textState
	text      transform // of the next glyph
	line      transform // of the start of the line
	args      []any
	depth     int
	open      int // bytes of the enclosing forms
	// marked is the nesting depth of marked content, and replaced the outermost depth whose text is given apart from
	// its glyphs: inside it glyphs only give the place. 0 if there is none.
	marked   int
	replaced int
}

// readPage passes the glyphs of a page to out.
func (f *file) readPage(page pageNode, out *layout) {
	r := interpreter{file: f, out: out, resources: page.resources}
	unit := transform{1, 0, 0, 1, 0, 0}
	if turn := f.number(page.dict["Rotate"], 0); turn != 0 {
		sin, cos := math.Sincos(-turn * math.Pi / 180)
		unit = transform{cos, sin, -sin, cos, 0, 0}
	}
	r.state = textState{ctm: unit, scale: 1}
	r.text, r.line = unit, unit
	var content []byte
	switch x := f.resolve(page.dict["Contents"]).(type) {
	case *stream:
		content = f.decode(x)
	case []any:
		for _, part := range x {
			if !f.spend(1) {
				break
			}
			if s, ok := f.resolve(part).(*stream); ok && len(content) < maxStream {
				content = append(append(content, f.decode(s)...), '\n')
			}
		}
	}
	r.run(content)
}

// run runs the operators of content.
func (r *interpreter) run(content []byte) {
	l := lexer{b: content, spend: r.spend}
	for {
		x := l.next()
		op, isOp := x.(operator)
		if !isOp {
			if l.countValue(x) {
				r.args = append(r.args, x)
			}
			continue
		}
		l.took = 0
		if op == endOfInput || r.stop != nil {
			r.args = r.args[:0]
			return
		}
		if op == "BI" {
			from := l.pos
			skipImage(&l)
			r.spend((l.pos - from) / lexedPerWork)
		} else {
			r.operator(op)
		}
		r.args = r.args[:0]
	}
}

// skipImage skips an inline image.
func skipImage(l *lexer) {
	for l.spend(1) {
		i := bytes.Index(l.b[l.pos:], []byte("EI"))
		if i < 0 {
			l.pos = len(l.b)
			return
		}
		at := l.pos + i
		l.pos = at + 2
		if at > 0 && isSpace(l.b[at-1]) && (l.pos == len(l.b) || isSpace(l.b[l.pos])) {
			return
		}
	}
}

// arg returns a number among the operands, or 0 if there is none.
func (r *interpreter) arg(i int) float64 {
	if i < len(r.args) {
		if n, ok := r.args[i].(float64); ok {
			return n
		}
	}
	return 0
}

func (r *interpreter) last() any {
	if n := len(r.args); n > 0 {
		return r.args[n-1]
	}
	return nil
}

func (r *interpreter) matrix() transform {
	return transform{r.arg(0), r.arg(1), r.arg(2), r.arg(3), r.arg(4), r.arg(5)}
}

// operator runs one operator. Only text is handled.
func (r *interpreter) operator(op operator) {
	s := &r.state
	switch string(op) {
	case "q":
		if len(r.saved) < maxSaved {
			r.saved = append(r.saved, *s)
		}
	case "Q":
		if n := len(r.saved); n > 0 {
			r.state, r.saved = r.saved[n-1], r.saved[:n-1]
		}
	case "cm":
		s.ctm = r.matrix().mul(s.ctm)
	case "Do":
		r.form()
	case "BMC", "BDC":
		r.beginMarked(op)
	case "EMC":
		if r.marked == r.replaced {
			r.replaced = 0
		}
		r.marked = max(0, r.marked-1)

	case "BT":
		r.text = transform{1, 0, 0, 1, 0, 0}
		r.line = r.text
	case "Tm":
		r.text = r.matrix()
		r.line = r.text
	case "TD":
		s.leading = -r.arg(1)
		r.move(r.arg(0), r.arg(1))
	case "Td":
		r.move(r.arg(0), r.arg(1))
	case "T*":
		r.move(0, -s.leading)
	case "Tj":
		r.show(r.last())
	case "'":
		r.move(0, -s.leading)
		r.show(r.last())
	case "\"":
		s.space, s.charSpace = r.arg(0), r.arg(1)
		r.move(0, -s.leading)
		r.show(r.last())
	case "TJ":
		list, _ := r.last().([]any)
		for _, x := range list { // paid: each was read
			if n, ok := x.(float64); ok {
				r.advance(-n / 1000 * s.size * s.scale)
				continue
			}
			r.show(x)
		}

	case "Tc":
		s.charSpace = r.arg(0)
	case "Tw":
		s.space = r.arg(0)
	case "Tz":
		s.scale = r.arg(0) / 100
	case "TL":
		s.leading = r.arg(0)
	case "Ts":
		s.rise = r.arg(0)
	case "Tf":
		if len(r.args) >= 2 {
			name, _ := r.args[0].(nameObject)
			s.font = r.font(r.dict(r.resources["Font"])[string(name)])
			s.size = r.arg(1)
		}
	}
}

func (r *interpreter) move(x, y float64) {
	r.line = transform{1, 0, 0, 1, x, y}.mul(r.line)
	r.text = r.line
}

func (r *interpreter) advance(x float64) { r.text = transform{1, 0, 0, 1, x, 0}.mul(r.text) }

// show passes the glyphs of a string to out.
func (r *interpreter) show(x any) {
	s, ok := x.(byteString)
	if !ok || r.state.font == nil {
		return
	}
	st := &r.state
	for g := range st.font.glyphs(string(s)) {
		if !r.spend(workOfGlyph + st.font.unicode.workOfLength() + len(g.text)/bytesPerWork) {
			return
		}
		width := (g.width*st.size + st.charSpace) * st.scale
		if g.space {
			width += st.space * st.scale
		}
		shown := (g.width * st.size) * st.scale
		m := transform{1, 0, 0, 1, 0, st.rise}.mul(r.text).mul(st.ctm)
		r.out.glyphs++
		if !g.known {
			r.unread++
		}
		if r.replaced > 0 {
			g.text = ""
		}
		r.out.add(g.text, m, shown, st.size)
		r.advance(width)
	}
}

// form runs the content of a form.
func (r *interpreter) form() {
	name, _ := r.last().(nameObject)
	s, ok := r.resolve(r.dict(r.resources["XObject"])[string(name)]).(*stream)
	if !ok || s.dict["Subtype"] != nameObject("Form") || r.depth >= maxForms || !r.spend(workOfForm) {
		return
	}
	inner := *r
	inner.depth++
	inner.args, inner.saved = nil, nil
	if m := r.array(s.dict["Matrix"]); len(m) == 6 {
		var own transform
		for i := range own { // paid: six numbers
			own[i] = r.number(m[i], 0)
		}
		inner.state.ctm = own.mul(r.state.ctm)
	}
	if own := r.dict(s.dict["Resources"]); own != nil {
		inner.resources = own
	}
	content := r.decode(s)
	if inner.open += len(content); inner.open <= maxStream {
		inner.run(content)
	}
}

// beginMarked begins marked content. Its text may be given apart from its glyphs, as for a ligature or a hyphenated
// word.
func (r *interpreter) beginMarked(op operator) {
	r.marked++
	if op != "BDC" || r.replaced > 0 {
		return
	}
	props := r.dict(r.last())
	if name, ok := r.last().(nameObject); ok {
		props = r.dict(r.dict(r.resources["Properties"])[string(name)])
	}
	if text, ok := r.resolve(props["ActualText"]).(byteString); ok && r.spend(len(text)/bytesPerWork) {
		r.replaced = r.marked
		r.out.next = decodeText(text)
	}
}
