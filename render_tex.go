package ibid

import "strings"

// escapeLaTeX escapes s for LaTeX text. Brackets are escaped too: after \item they would be its argument.
func escapeLaTeX(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '\\':
			b.WriteString(`\textbackslash{}`)
		case '{', '}', '$', '&', '#', '%', '_':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '^':
			b.WriteString(`\textasciicircum{}`)
		case '~':
			b.WriteString(`\textasciitilde{}`)
		case '<':
			b.WriteString(`\textless{}`)
		case '>':
			b.WriteString(`\textgreater{}`)
		case '|':
			b.WriteString(`\textbar{}`)
		case '"':
			b.WriteString(`\textquotedbl{}`)
		case '`':
			b.WriteString(`\textasciigrave{}`)
		case '[':
			b.WriteString(`{[}`)
		case ']':
			b.WriteString(`{]}`)
		default:
			if r = latexRune(r); r >= 0 {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// latexRune drops the characters that TeX refuses.
func latexRune(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' || r == 0x7F || 0xFDD0 <= r && r <= 0xFDEF {
		return -1
	}
	return r
}

// latexURL escapes a safe URL for the first argument of \href, wherever that stands.
func latexURL(url string) string {
	return strings.NewReplacer("%", `\%`, "#", `\#`, "&", `\&`, "_", `\_`, "[", `\%5B`, "]", `\%5D`).Replace(url)
}

// isHarmlessMath reports whether math may be handed to TeX as it is: everything in it that opens closes, commands have
// their arguments, and there are only commands that set formulas.
func isHarmlessMath(math string) bool {
	body := strings.Trim(math, "$")
	if strings.HasPrefix(math, `\`) {
		body = math[2 : len(math)-2]
	}
	m := mathChecker{rest: body}
	return strings.TrimSpace(body) != "" && m.list(0) && m.rest == ""
}

// mathChecker reads a formula.
type mathChecker struct{ rest string }

// list reads atoms with their scripts up to a closing brace or the end.
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
				return false // a double script, or one of nothing
			}
			seen += script
		}
	}
}

func (m *mathChecker) space() { m.rest = strings.TrimLeft(m.rest, " \t\r\n") }

// atom reads one character, group or command.
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

// group reads a list in braces.
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

// command reads a command with its arguments.
func (m *mathChecker) command(depth int) bool {
	n := 1
	for n < len(m.rest) && isASCIIAlpha(m.rest[n]) {
		n++
	}
	if n == 1 {
		if len(m.rest) < 2 || strings.IndexByte(`,;:!{}|%`, m.rest[1]) < 0 {
			return false
		}
		m.rest = m.rest[2:]
		return true
	}
	arguments := mathArguments(m.rest[1:n])
	m.rest = m.rest[n:]
	for range arguments {
		if !m.group(depth) {
			return false
		}
	}
	return arguments >= 0
}

func isASCIIAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// mathArguments returns how many arguments the command \name takes; -1 for one that may do more than set a formula.
func mathArguments(name string) int {
	switch name {
	case "frac", "binom", "dfrac", "tfrac":
		return 2
	case "sqrt", "hat", "bar", "vec", "dot", "ddot", "tilde", "overline", "underline", "text",
		"mathbf", "mathrm", "mathit", "mathcal", "mathbb", "mathsf":
		return 1
	case "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota",
		"kappa", "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi",
		"omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega", "sum", "prod", "int",
		"oint", "lim", "infty", "partial", "nabla", "cdot", "times", "div", "pm", "mp", "ast", "star", "circ", "bullet",
		"oplus", "otimes", "leq", "geq", "le", "ge", "neq", "ne", "approx", "equiv", "sim", "simeq", "propto", "ll",
		"gg", "in", "notin", "subset", "subseteq", "supset", "cup", "cap", "emptyset", "forall", "exists", "neg",
		"land", "lor", "to", "rightarrow", "leftarrow", "leftrightarrow", "Rightarrow", "Leftarrow", "Leftrightarrow",
		"mapsto", "implies", "iff", "sin", "cos", "tan", "log", "ln", "exp", "min", "max", "sup", "inf", "det", "dim",
		"gcd", "arg", "quad", "qquad", "ldots", "cdots", "dots", "vdots", "prime", "angle", "mid", "parallel", "perp":
		return 0
	}
	return -1
}
