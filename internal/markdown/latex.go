package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// LaTeX returns the document as LaTeX, calling mark for each mark of e. Whatever the text, braces and environments are
// closed, and the only commands are those written here and harmless ones in math. The output needs the packages
// hyperref and, for struck-out text, ulem.
func (d *Document) LaTeX(e Edits, mark func(index int) string) string {
	t, _ := d.edit(e, false)
	w := latexWriter{text: d.Text, source: []byte(d.Text), mark: mark}
	w.blocks(t.root)
	return w.String()
}

// latexWriter writes a tree as LaTeX.
type latexWriter struct {
	strings.Builder
	text   string
	source []byte // the same
	mark   func(index int) string
	lists  int // open list environments: LaTeX allows four of a kind
}

// blocks writes the children of n.
func (w *latexWriter) blocks(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.block(c)
	}
}

func (w *latexWriter) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		names := [...]string{"section", "subsection", "subsubsection", "paragraph", "subparagraph", "subparagraph"}
		w.WriteString("\n\\" + names[min(max(n.Level, 1), len(names))-1] + "*{")
		w.inlines(n)
		w.WriteString("}\n")
	case *ast.Paragraph, *ast.TextBlock:
		w.WriteString("\n")
		w.inlines(n)
		w.WriteString("\n")
	case *ast.Blockquote:
		if w.lists >= 4 {
			w.blocks(n)
			return
		}
		w.lists++
		w.WriteString("\n\\begin{quote}")
		w.blocks(n)
		w.WriteString("\\end{quote}\n")
		w.lists--
	case *ast.List:
		w.list(n)
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		w.code(n)
	case *ast.ThematicBreak:
		w.WriteString("\n\\par\\noindent\\hrulefill\\par\n")
	case *east.Table:
		w.table(n)
	default:
		w.blocks(n)
	}
}

func (w *latexWriter) list(n *ast.List) {
	name := "itemize"
	if n.IsOrdered() {
		name = "enumerate"
	}
	nested := w.lists < 4
	if nested {
		w.lists++
		w.WriteString("\n\\begin{" + name + "}\n")
	}
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		switch {
		case !nested:
			w.WriteString("\n--")
		case n.IsOrdered() && n.Start != 1:
			w.WriteString("\\item[" + strconv.Itoa(number) + ".]")
		default:
			w.WriteString("\\item")
		}
		number++
		w.WriteString(" ")
		w.blocks(item)
	}
	if nested {
		w.WriteString("\\end{" + name + "}\n")
		w.lists--
	}
}

// code writes a code block. Verbatim text cannot contain the end of its environment, so such code is set line by line.
func (w *latexWriter) code(n ast.Node) {
	var code strings.Builder
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		code.Write(s.Value(w.source))
	}
	if h, ok := n.(*ast.HTMLBlock); ok && h.HasClosure() {
		code.Write(h.ClosureLine.Value(w.source))
	}
	body := strings.TrimRight(strings.Map(latexRune, code.String()), "\n")
	if !strings.Contains(body, `\end`) {
		w.WriteString("\n\\begin{verbatim}\n" + body + "\n\\end{verbatim}\n")
		return
	}
	w.WriteString("\n\\begin{quote}\\ttfamily\\parindent0pt\n")
	for line := range strings.SplitSeq(body, "\n") {
		w.WriteString("\\mbox{}" + strings.ReplaceAll(EscapeLaTeX(line), " ", "~") + "\\par\n")
	}
	w.WriteString("\\end{quote}\n")
}

func (w *latexWriter) table(n *east.Table) {
	w.WriteString("\n\\begin{tabular}{")
	for _, a := range n.Alignments {
		column := byte('l')
		switch a {
		case east.AlignRight:
			column = 'r'
		case east.AlignCenter:
			column = 'c'
		case east.AlignLeft, east.AlignNone:
		}
		w.WriteByte(column)
	}
	w.WriteString("}\n\\hline\n")
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if cell.PreviousSibling() != nil {
				w.WriteString(" & ")
			}
			w.inlines(cell)
		}
		w.WriteString(" \\tabularnewline\n")
		if row.Kind() == east.KindTableHeader {
			w.WriteString("\\hline\n")
		}
	}
	w.WriteString("\\hline\n\\end{tabular}\n")
}

// inlines writes the children of n.
func (w *latexWriter) inlines(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.inline(c)
	}
}

func (w *latexWriter) inline(n ast.Node) {
	command := ""
	switch n := n.(type) {
	case *inserted:
		w.inserted(n)
		return
	case *ast.Text:
		if s := w.text[n.Segment.Start:n.Segment.Stop]; n.IsRaw() {
			w.WriteString(EscapeLaTeX(s))
		} else {
			w.WriteString(EscapeLaTeX(unescape(s)))
		}
		switch {
		case n.HardLineBreak():
			w.WriteString("\\newline{}\n")
		case n.SoftLineBreak():
			w.WriteByte('\n')
		}
		return
	case *ast.CodeSpan:
		var code strings.Builder
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if t, ok := c.(*ast.Text); ok {
				code.WriteString(w.text[t.Segment.Start:t.Segment.Stop])
			}
		}
		w.WriteString("\\texttt{" + EscapeLaTeX(strings.ReplaceAll(code.String(), "\n", " ")) + "}")
		return
	case *ast.AutoLink:
		label := EscapeLaTeX(string(n.Label(w.source)))
		if url := SafeURL(autoLinkURL(n, w.source)); url != "" && !inLink(n) {
			label = "\\href{" + LaTeXURL(url) + "}{" + label + "}"
		}
		w.WriteString(label)
		return
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			s := n.Segments.At(i)
			w.WriteString(EscapeLaTeX(w.text[s.Start:s.Stop]))
		}
		return
	case *east.TaskCheckBox:
		w.WriteString(map[bool]string{true: "{[}x{]} ", false: "{[}~{]} "}[n.IsChecked])
		return
	case *ast.Emphasis:
		command = [...]string{"\\emph", "\\textbf"}[min(max(n.Level, 1), 2)-1]
	case *east.Strikethrough:
		command = "\\sout"
	case *ast.Link:
		if url := SafeURL(unescape(string(n.Destination))); url != "" && !inLink(n) {
			command = "\\href{" + LaTeXURL(url) + "}"
		}
	}
	if command == "" {
		w.inlines(n)
		return
	}
	w.WriteString(command + "{")
	w.inlines(n)
	w.WriteString("}")
}

// inserted writes a mark or math.
func (w *latexWriter) inserted(n *inserted) {
	switch math := w.text[n.math.Start:n.math.End]; {
	case n.mark >= 0:
		if n.space {
			w.WriteByte(' ')
		}
		w.WriteString(w.mark(n.mark))
	case isHarmlessMath(math):
		w.WriteString(math)
	default:
		w.WriteString(EscapeLaTeX(math))
	}
}

// EscapeLaTeX escapes s for LaTeX text. Brackets are escaped too: after \item they would be read as its argument.
func EscapeLaTeX(s string) string {
	var b strings.Builder
	for _, r := range s {
		if escape := latexEscapes[r]; escape != "" {
			b.WriteString(escape)
		} else if r = latexRune(r); r >= 0 {
			b.WriteRune(r)
		}
	}
	return b.String()
}

var latexEscapes = map[rune]string{
	'\\': `\textbackslash{}`, '^': `\^{}`, '~': `\~{}`, '<': `\textless{}`,
	'>': `\textgreater{}`, '|': `\textbar{}`, '"': `\textquotedbl{}`, '`': "\\`{}", '[': `{[}`, ']': `{]}`,
	'{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '%': `\%`, '_': `\_`,
}

// latexRune drops characters that TeX rejects.
func latexRune(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' || r == 0x7F || 0xFDD0 <= r && r <= 0xFDEF {
		return -1
	}
	return r
}

// LaTeXURL escapes a safe URL for the first argument of \href in any context.
func LaTeXURL(url string) string { return latexURL.Replace(url) }

var latexURL = strings.NewReplacer("%", `\%`, "#", `\#`, "&", `\&`, "_", `\_`, "[", `\%5B`, "]", `\%5D`)

// isHarmlessMath reports whether math can be passed to TeX unchanged: groups are closed, commands have their arguments,
// and all commands only typeset formulas.
func isHarmlessMath(math string) bool {
	_, _, _, body := formula(math)
	m := mathChecker{rest: body}
	return strings.TrimSpace(body) != "" && m.list(0) && m.rest == ""
}

// mathChecker parses a formula.
type mathChecker struct{ rest string }

// list parses atoms with their scripts up to a closing brace or the end.
func (m *mathChecker) list(depth int) bool {
	const deepest = 32
	if depth > deepest {
		return false
	}
	for {
		m.space()
		if m.rest == "" || m.rest[0] == '}' {
			return true
		}
		if !m.atom(depth) {
			return false
		}
		for seen := ""; ; {
			m.space()
			if m.rest == "" || m.rest[0] != '^' && m.rest[0] != '_' {
				break
			}
			script := m.rest[:1]
			m.rest = m.rest[1:]
			if m.space(); strings.Contains(seen, script) || m.rest == "" || !m.atom(depth) {
				return false // a double or empty script
			}
			seen += script
		}
	}
}

func (m *mathChecker) space() { m.rest = strings.TrimLeft(m.rest, " \t\r\n") }

// atom parses a character, group or command.
func (m *mathChecker) atom(depth int) bool {
	switch c := m.rest[0]; {
	case c == '{':
		return m.group(depth)
	case c == '\\':
		return m.command(depth)
	case c <= ' ' || c >= 0x7F || strings.IndexByte("}^_$%#&~'", c) >= 0:
		return false
	default:
		m.rest = m.rest[1:]
		return true
	}
}

// group parses a list in braces.
func (m *mathChecker) group(depth int) bool {
	if m.space(); !strings.HasPrefix(m.rest, "{") {
		return false
	}
	m.rest = m.rest[1:]
	if !m.list(depth+1) || !strings.HasPrefix(m.rest, "}") {
		return false
	}
	m.rest = m.rest[1:]
	return true
}

// command parses a command with its arguments.
func (m *mathChecker) command(depth int) bool {
	n := 1
	for n < len(m.rest) && isLetter(m.rest[n]) {
		n++
	}
	if n == 1 {
		if len(m.rest) < 2 || strings.IndexByte(`,;:!{}|%`, m.rest[1]) < 0 {
			return false
		}
		m.rest = m.rest[2:]
		return true
	}
	arguments, known := mathCommands[m.rest[1:n]]
	m.rest = m.rest[n:]
	for range arguments {
		if !m.group(depth) {
			return false
		}
	}
	return known
}

// mathCommands are commands that only typeset formulas, with the number of their arguments.
var mathCommands = commands(
	`frac binom dfrac tfrac`,
	`sqrt hat bar vec dot ddot tilde overline underline text mathbf mathrm mathit mathcal mathbb mathsf`,
	`alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi rho sigma
		tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega sum prod int oint
		lim infty partial nabla cdot times div pm mp ast star circ bullet oplus otimes leq geq le ge neq ne approx
		equiv sim simeq propto ll gg in notin subset subseteq supset cup cap emptyset forall exists neg land lor
		to rightarrow leftarrow leftrightarrow Rightarrow Leftarrow Leftrightarrow mapsto implies iff sin cos tan
		log ln exp min max sup inf det dim gcd arg quad qquad ldots cdots dots vdots prime angle mid parallel perp`,
)

func commands(two, one, none string) map[string]int {
	all := map[string]int{}
	for arguments, names := range []string{none, one, two} {
		for name := range strings.FieldsSeq(names) {
			all[name] = arguments
		}
	}
	return all
}
