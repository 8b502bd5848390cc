package ibid

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRenderLaTeX(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"marker", "③«①«It rained».» Yes", `It rained.\cite{source-1,source-2} Yes`},
		{"special characters", `100% of $5 & #1_a {b} \ ^ ~ [c] "d" ` + "\\`", `100\% of \$5 \& \#1\_a \{b\} \textbackslash{} \textasciicircum{} \textasciitilde{} {[}c{]} \textquotedbl{}d\textquotedbl{} \textasciigrave{}`},
		{"emphasis", "*a* **b** ~~c~~ `d_e`", `\emph{a} \textbf{b} \sout{c} \texttt{d\_e}`},
		{"heading", "## A *b*", `\subsection*{A \emph{b}}`},
		{"link", "[a](https://l.example/x_y?z=%20#f) [b](javascript:x)", `\href{https://l.example/x\_y?z=\%20\#f}{a} b`},
		{"image", "![alt](https://i.example/p.png)", "alt"},
		{"raw HTML", "a <b>c</b>", `a \textless{}b\textgreater{}c\textless{}/b\textgreater{}`},
		{"break", "a  \nb", "a\\newline{}\nb"},
		{"list", "- a\n- [x] b", "\\begin{itemize}\n\\item \na\n\\item \n{[}x{]} b\n\\end{itemize}"},
		{"numbered list", "3. a\n4. b", "\\begin{enumerate}\n\\item[3.] \na\n\\item[4.] \nb\n\\end{enumerate}"},
		{"quote", "> a", "\\begin{quote}\na\n\\end{quote}"},
		{"code", "```\n\\x{ %\n```", "\\begin{verbatim}\n\\x{ %\n\\end{verbatim}"},
		{"code that ends verbatim", "```\n\\end{verbatim} \\input{x}\n```", "\\begin{quote}\\ttfamily\n\\noindent\\mbox{}\\textbackslash{}end\\{verbatim\\}~\\textbackslash{}input\\{x\\}\\par\n\\end{quote}"},
		{"table", "| a | b |\n|:-:|--:|\n| c & d | e |", "\\begin{tabular}{cr}\n\\hline\na & b \\tabularnewline\n\\hline\nc \\& d & e \\tabularnewline\n\\hline\n\\end{tabular}"},
		{"math", `$\frac{a_1}{2} \leq \sqrt{x^2}$`, `$\frac{a_1}{2} \leq \sqrt{x^2}$`},
		{"dangerous math", `$\input{/etc/passwd}$`, `\$\textbackslash{}input\{/etc/passwd\}\$`},
		{"rule", "a\n\n---", "a\n\n\\par\\noindent\\hrulefill\\par"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := annotated(tt.text).Render(&RenderOptions{Style: StyleLaTeX})
			if diff := cmp.Diff(tt.want+"\n", got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkLaTeX(t, got)
		})
	}
}

func TestRenderLaTeXKeys(t *testing.T) {
	a := annotated("③«It» rained.")
	a.Sources[2].ID, a.Citations[0].Refs[0].Source = "doc:0}{x", "doc:0}{x"
	want := "It\\cite{m-doc:0--x} rained.\n\n\\begin{thebibliography}{1}\n\\bibitem[{doc:0\\}\\{x}]{m-doc:0--x} c.pdf\n\\end{thebibliography}\n"
	if diff := cmp.Diff(want, a.Render(&RenderOptions{Style: StyleLaTeX, ByID: true, List: true, IDPrefix: "m-"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
