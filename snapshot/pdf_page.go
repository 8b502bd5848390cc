package snapshot

import (
	"bytes"
	"math"
)

const (
	maxPDFForms = 12  // forms in each other
	maxPDFState = 256 // states that are saved
)

// pdfMatrix is [a b c d e f] as the format has it: x' = ax + cy + e, y' = bx + dy + f.
type pdfMatrix [6]float64

// mul returns m followed by n.
func (m pdfMatrix) mul(n pdfMatrix) pdfMatrix {
	return pdfMatrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// textState is what the operators of text change.
type textState struct {
	ctm              pdfMatrix
	font             *pdfFont
	size             float64
	charSpace, space float64
	scale            float64 // horizontal
	leading, rise    float64
}

// pdfReader runs the content of one page.
type pdfReader struct {
	*pdfFile

	out       *layout
	resources pdfDict
	state     textState
	saved     []textState
	text      pdfMatrix // of the next glyph
	line      pdfMatrix // of the line's begin
	args      []any
	depth     int
	open      int // bytes of the forms that it is in
	// replaced counts the marked content around the place of which the text is said apart from its glyphs, from the
	// outermost; inside of it glyphs only say where they are.
	marked   int
	replaced int
}

// readPage gives the text of a page to out.
func (f *pdfFile) readPage(page pdfPage, out *layout) {
	r := pdfReader{pdfFile: f, out: out, resources: page.resources}
	unit := pdfMatrix{1, 0, 0, 1, 0, 0}
	if turn := f.number(page.dict["Rotate"], 0); turn != 0 {
		sin, cos := math.Sincos(-turn * math.Pi / 180)
		unit = pdfMatrix{cos, sin, -sin, cos, 0, 0}
	}
	r.state = textState{ctm: unit, scale: 1}
	r.text, r.line = unit, unit
	var content []byte
	switch x := f.resolve(page.dict["Contents"]).(type) {
	case *pdfStream:
		content = f.decode(x)
	case []any:
		for _, part := range x {
			if !f.spend(1) {
				break
			}
			if s, ok := f.resolve(part).(*pdfStream); ok && len(content) < maxPDFStream {
				content = append(append(content, f.decode(s)...), '\n')
			}
		}
	}
	r.run(content)
}

// run runs operators.
func (r *pdfReader) run(content []byte) {
	l := pdfLexer{b: content, spend: r.spend}
	for {
		x := l.next()
		op, isOp := x.(pdfOp)
		if !isOp {
			if l.keep(x) {
				r.args = append(r.args, x)
			}
			continue
		}
		l.took = 0
		if op == pdfEnd || r.stop != nil {
			r.args = r.args[:0]
			return
		}
		if op == "BI" {
			from := l.pos
			skipImage(&l)
			r.spend((l.pos - from) / bytesPerWork)
		} else {
			r.operator(op)
		}
		r.args = r.args[:0]
	}
}

// skipImage goes behind an image that stands among the operators.
func skipImage(l *pdfLexer) {
	for {
		i := bytes.Index(l.b[l.pos:], []byte("EI"))
		if i < 0 {
			l.pos = len(l.b)
			return
		}
		at := l.pos + i
		l.pos = at + 2
		if at > 0 && isPDFSpace(l.b[at-1]) && (l.pos == len(l.b) || isPDFSpace(l.b[l.pos])) {
			return
		}
	}
}

// arg returns a number among the operands; 0 where there is none.
func (r *pdfReader) arg(i int) float64 {
	if i < len(r.args) {
		if n, ok := r.args[i].(float64); ok {
			return n
		}
	}
	return 0
}

func (r *pdfReader) last() any {
	if n := len(r.args); n > 0 {
		return r.args[n-1]
	}
	return nil
}

func (r *pdfReader) matrix() pdfMatrix {
	return pdfMatrix{r.arg(0), r.arg(1), r.arg(2), r.arg(3), r.arg(4), r.arg(5)}
}

func (r *pdfReader) operator(op pdfOp) {
	switch op {
	case "q":
		if len(r.saved) < maxPDFState {
			r.saved = append(r.saved, r.state)
		}
	case "Q":
		if n := len(r.saved); n > 0 {
			r.state, r.saved = r.saved[n-1], r.saved[:n-1]
		}
	case "cm":
		r.state.ctm = r.matrix().mul(r.state.ctm)
	case "Do":
		r.form()
	case "BMC", "BDC":
		r.beginMarked(op)
	case "EMC":
		if r.marked == r.replaced {
			r.replaced = 0
		}
		r.marked = max(0, r.marked-1)
	default:
		r.textOperator(op)
	}
}

// textOperator runs the operators that place and show text.
func (r *pdfReader) textOperator(op pdfOp) {
	switch op {
	case "BT":
		r.text = pdfMatrix{1, 0, 0, 1, 0, 0}
		r.line = r.text
	case "Tm":
		r.text = r.matrix()
		r.line = r.text
	case "TD":
		r.state.leading = -r.arg(1)
		r.move(r.arg(0), r.arg(1))
	case "Td":
		r.move(r.arg(0), r.arg(1))
	case "T*":
		r.move(0, -r.state.leading)
	case "Tj":
		r.showArg(r.last())
	case "'":
		r.move(0, -r.state.leading)
		r.showArg(r.last())
	case "\"":
		r.state.space, r.state.charSpace = r.arg(0), r.arg(1)
		r.move(0, -r.state.leading)
		r.showArg(r.last())
	case "TJ":
		list, _ := r.last().([]any)
		for _, x := range list {
			if n, ok := x.(float64); ok {
				r.advance(-n / 1000 * r.state.size * r.state.scale)
				continue
			}
			r.showArg(x)
		}
	default:
		r.stateOperator(op)
	}
}

// stateOperator runs the operators that set how text is shown.
func (r *pdfReader) stateOperator(op pdfOp) {
	s := &r.state
	switch op {
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
			name, _ := r.args[0].(pdfName)
			s.font = r.font(r.dict(r.resources["Font"])[string(name)])
			s.size = r.arg(1)
		}
	default: // of all that is drawn only text counts
	}
}

func (r *pdfReader) move(x, y float64) {
	r.line = pdfMatrix{1, 0, 0, 1, x, y}.mul(r.line)
	r.text = r.line
}

func (r *pdfReader) advance(x float64) { r.text = pdfMatrix{1, 0, 0, 1, x, 0}.mul(r.text) }

// showArg shows a string.
func (r *pdfReader) showArg(x any) {
	s, ok := x.(pdfString)
	if !ok || r.state.font == nil {
		return
	}
	st := &r.state
	for g := range st.font.glyphs(string(s)) {
		if !r.spend(1 + len(g.text)/bytesPerWork) {
			return
		}
		width := (g.width*st.size + st.charSpace) * st.scale
		if g.space {
			width += st.space * st.scale
		}
		shown := (g.width * st.size) * st.scale
		m := pdfMatrix{1, 0, 0, 1, 0, st.rise}.mul(r.text).mul(st.ctm)
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
func (r *pdfReader) form() {
	name, _ := r.last().(pdfName)
	s, ok := r.resolve(r.dict(r.resources["XObject"])[string(name)]).(*pdfStream)
	if !ok || s.dict["Subtype"] != pdfName("Form") || r.depth >= maxPDFForms {
		return
	}
	inner := *r
	inner.depth++
	inner.args, inner.saved = nil, nil
	if m := r.array(s.dict["Matrix"]); len(m) == 6 {
		var matrix pdfMatrix
		for i := range matrix {
			matrix[i] = r.number(m[i], 0)
		}
		inner.state.ctm = matrix.mul(r.state.ctm)
	}
	if own := r.dict(s.dict["Resources"]); own != nil {
		inner.resources = own
	}
	content := r.decode(s)
	if inner.open += len(content); inner.open <= maxPDFStream {
		inner.run(content)
	}
}

// beginMarked begins marked content. Its text may be said apart from its glyphs: of a ligature, of a word that is
// hyphenated.
func (r *pdfReader) beginMarked(op pdfOp) {
	r.marked++
	if op != "BDC" || r.replaced > 0 {
		return
	}
	props := r.dict(r.last())
	if name, ok := r.last().(pdfName); ok {
		props = r.dict(r.dict(r.resources["Properties"])[string(name)])
	}
	if text, ok := r.resolve(props["ActualText"]).(pdfString); ok && r.spend(len(text)/bytesPerWork) {
		r.replaced = r.marked
		r.out.pend(pdfText(text))
	}
}
