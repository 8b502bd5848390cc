package ibid

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// latex renders the answer as the body of a LaTeX document. It needs the packages hyperref and, for struck-out text,
// ulem.
func (r *rendering) latex() string {
	source, toks := r.tokenText()
	source = escapeAt(source, tooDeep(source))
	md := parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithParagraphTransformers(
			util.Prioritized(parser.LinkReferenceParagraphTransformer, 100),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200),
		),
		parser.WithInlineParsers(append(inlineParsers(len(source)),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		)...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
	w := latexWriter{r: r, source: []byte(source), tokens: toks}
	w.blocks(md.Parse(text.NewReader(w.source)))
	out := strings.TrimLeft(w.String(), "\n")
	if r.List {
		out += "\n" + r.list()
	}
	return out
}

// latexWriter writes a markdown tree as LaTeX. Whatever the text, braces and environments close, and only commands that
// are written here, or are harmless in math, come out.
type latexWriter struct {
	strings.Builder
	r      *rendering
	source []byte
	tokens *tokens
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
		w.environment("quote", n)
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

// environment writes the blocks of n in an environment.
func (w *latexWriter) environment(name string, n ast.Node) {
	if w.lists >= 4 {
		w.blocks(n)
		return
	}
	w.lists++
	w.WriteString("\n\\begin{" + name + "}")
	w.blocks(n)
	w.WriteString("\\end{" + name + "}\n")
	w.lists--
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

// code writes a code block. Verbatim text cannot hold the end of its own environment, so such code is set line by line.
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
	w.WriteString("\n\\begin{quote}\\ttfamily\n")
	for line := range strings.SplitSeq(body, "\n") {
		w.WriteString("\\noindent\\mbox{}" + strings.ReplaceAll(escapeLaTeX(line), " ", "~") + "\\par\n")
	}
	w.WriteString("\\end{quote}\n")
}

func (w *latexWriter) table(n *east.Table) {
	w.WriteString("\n\\begin{tabular}{")
	for _, a := range n.Alignments {
		switch a {
		case east.AlignRight:
			w.WriteByte('r')
		case east.AlignCenter:
			w.WriteByte('c')
		case east.AlignLeft, east.AlignNone:
			w.WriteByte('l')
		}
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
	switch n := n.(type) {
	case *ast.Text:
		w.text(n)
	case *ast.String:
		w.WriteString(escapeLaTeX(string(n.Value)))
	case *ast.CodeSpan:
		w.WriteString("\\texttt{" + escapeLaTeX(w.plain(n)) + "}")
	case *ast.Emphasis:
		w.command([...]string{"emph", "textbf"}[min(max(n.Level, 1), 2)-1], n)
	case *east.Strikethrough:
		w.command("sout", n)
	case *ast.Link:
		w.link(string(n.Destination), n)
	case *ast.Image:
		w.inlines(n)
	case *ast.AutoLink:
		url := string(n.URL(w.source))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
			url = "mailto:" + url
		}
		label := escapeLaTeX(string(n.Label(w.source)))
		if url = safeURL(url); url != "" && !w.inLink(n) {
			label = "\\href{" + latexURL(url) + "}{" + label + "}"
		}
		w.WriteString(label)
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			s := n.Segments.At(i)
			w.WriteString(escapeLaTeX(string(s.Value(w.source))))
		}
	case *east.TaskCheckBox:
		w.WriteString(map[bool]string{true: "{[}x{]} ", false: "{[}~{]} "}[n.IsChecked])
	default:
		w.inlines(n)
	}
}

// command writes the children of n as the argument of a command.
func (w *latexWriter) command(name string, n ast.Node) {
	w.WriteString("\\" + name + "{")
	w.inlines(n)
	w.WriteString("}")
}

func (w *latexWriter) link(destination string, n ast.Node) {
	url := safeURL(markdownText(destination))
	if url == "" || w.inLink(n) {
		w.inlines(n)
		return
	}
	w.WriteString("\\href{" + latexURL(url) + "}{")
	w.inlines(n)
	w.WriteString("}")
}

// inLink reports whether n stands in another link.
func (w *latexWriter) inLink(n ast.Node) bool {
	for p := n.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

// text writes a text node with its tokens replaced.
func (w *latexWriter) text(n *ast.Text) {
	s := string(n.Segment.Value(w.source))
	if n.IsRaw() {
		w.WriteString(escapeLaTeX(s))
	} else {
		w.tokens.each(s, func(_ int, plain string) {
			w.WriteString(escapeLaTeX(markdownText(plain)))
		}, func(_ int, t token) {
			w.token(t)
		})
	}
	switch {
	case n.HardLineBreak():
		w.WriteString("\\newline{}\n")
	case n.SoftLineBreak():
		w.WriteByte('\n')
	}
}

// token writes what a token stands for.
func (w *latexWriter) token(t token) {
	switch {
	case t.marker == nil && isHarmlessMath(t.math):
		w.WriteString(t.math)
	case t.marker == nil:
		w.WriteString(escapeLaTeX(t.math))
	case w.r.Marker != nil:
		w.WriteString(w.r.Marker(*t.marker))
	default:
		keys := make([]string, len(t.marker.Items))
		for i, it := range t.marker.Items {
			keys[i] = w.r.citeKey(it)
		}
		w.WriteString("\\cite{" + strings.Join(keys, ",") + "}")
	}
}

// plain returns the text below n.
func (w *latexWriter) plain(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(w.source))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// citeKey returns the key under which the bibliography has a source.
func (r *rendering) citeKey(it MarkerItem) string {
	if !r.ByID || it.Source.ID == "" {
		return r.prefix + "source-" + strconv.Itoa(it.Number)
	}
	return r.prefix + strings.Map(func(c rune) rune {
		if isASCIIAlnum(c) || c == '-' || c == '.' || c == ':' {
			return c
		}
		return '-'
	}, it.Source.ID)
}

// latexList writes the list of sources as a bibliography.
func (r *rendering) latexList(b *strings.Builder, cited, uncited []entry) {
	if len(cited)+len(uncited) == 0 {
		b.WriteString(r.noSources() + "\n")
		return
	}
	if len(cited) > 0 {
		widest := 0
		for _, e := range cited {
			widest = max(widest, e.Number)
		}
		fmt.Fprintf(b, "\\begin{thebibliography}{%d}\n", widest)
		for _, e := range cited {
			label := strconv.Itoa(e.Number)
			if r.ByID {
				label = "{" + escapeLaTeX(r.label(e.MarkerItem)) + "}"
			}
			fmt.Fprintf(b, "\\bibitem[%s]{%s} %s\n", label, r.citeKey(e.MarkerItem), latexEntry(&e))
		}
		b.WriteString("\\end{thebibliography}\n")
	}
	if len(uncited) > 0 {
		b.WriteString("\\paragraph*{" + uncitedHeading + "}\n\\begin{itemize}\n")
		for _, e := range uncited {
			fmt.Fprintf(b, "\\item[%d.] %s\n", e.Number, latexEntry(&e))
		}
		b.WriteString("\\end{itemize}\n")
	}
}

// latexEntry returns a source in LaTeX, without its number.
func latexEntry(e *entry) string {
	out := escapeLaTeX(e.name)
	if e.url != "" {
		out = "\\href{" + latexURL(e.url) + "}{" + out + "}"
	}
	if e.detail != "" {
		out += " --- " + escapeLaTeX(e.detail)
	}
	for _, q := range e.quotes {
		out += " ``" + escapeLaTeX(q) + "''"
	}
	return out
}
