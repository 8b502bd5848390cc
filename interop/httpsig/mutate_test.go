package httpsig

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// mutate makes one change to the message and returns a description of it.
func mutate(r *rand.Rand, m *message) string {
	kinds := []struct {
		name string
		f    func(*rand.Rand, *message)
	}{
		{"header", mutateHeader},
		{"header", mutateHeader},
		{"component", mutateComponent},
		{"component", mutateComponent},
		{"param", mutateParam},
		{"signature", mutateSignature},
		{"url", mutateURL},
		{"start", mutateStart},
		{"body", mutateBody},
		{"label", mutateLabel},
	}
	kind := pick(r, kinds)
	kind.f(r, m)
	return kind.name
}

func mutateHeader(r *rand.Rand, m *message) {
	fields := pick(r, []map[string][]string{m.header, m.header, m.trailer, m.request})
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	name := pick(r, names)
	lines := slices.Clone(fields[name])
	i := r.IntN(len(lines))
	switch line := lines[i]; r.IntN(14) {
	case 0: // another character
		if line != "" {
			at := r.IntN(len(line))
			lines[i] = line[:at] + pick(r, []string{"x", "=", `"`, ",", "0"}) + line[at+1:]
		}
	case 1:
		delete(fields, name)
		return
	case 2:
		lines = append(lines, line)
	case 3:
		lines = append(lines, "x=1")
	case 4: // white space around it
		lines[i] = pick(r, []string{" ", "\t", "  "}) + line + pick(r, []string{"", " ", "\t"})
	case 5: // white space in it
		lines[i] = strings.Replace(line, ",", " ,\t", 1)
	case 6: // folded
		lines[i] = strings.Replace(line, " ", pick(r, []string{"\r\n ", "\n\t", " \r\n  "}), 1)
	case 7:
		lines[i] = strings.ToUpper(line)
	case 8:
		lines[i] = ""
	case 9: // a field that is not covered
		name, lines = "X-Other", []string{"heron"}
	case 10:
		lines[i] = line + pick(r, []string{"ä", "\x00", "\x7f", "\r", "\nx: y", "\u00a0", "\v"})
	case 11:
		slices.Reverse(lines)
	case 12: // in two lines what was in one
		if a, b, ok := strings.Cut(line, ", "); ok {
			lines = []string{a, b}
		}
	case 13: // a member twice, or spelt otherwise
		lines[i] = line + pick(r, []string{`, u=1`, `, one="https://other.example"`, `, i=?1`, `;x;x`, `, sha-256=:AAAA:`, ", md5=:AAAA:"})
	}
	fields[name] = lines
}

func mutateComponent(r *rand.Rand, m *message) {
	i := 0
	if len(m.components) > 0 {
		i = r.IntN(len(m.components))
	}
	insert := func(text string) { m.components = slices.Insert(m.components, i, text) }
	if r.IntN(2) == 0 || len(m.components) == 0 {
		insert(pick(r, []string{
			`"@method"`, `"@target-uri"`, `"@authority"`, `"@scheme"`, `"@request-target"`, `"@path"`, `"@query"`, `"@status"`,
			`"@query-param";name="q"`, `"@query-param";name="twice"`, `"@query-param";name="sp%20ace"`, `"@query-param";name="tilde"`, `"@query-param"`,
			`"@query-param";name="star"`, `"@query-param";name="plus"`, `"@query-param";name="absent"`, `"@query-param";name=""`,
			`"@method";req`, `"@target-uri";req`, `"@authority";req`, `"@path";req`, `"@status";req`, `"@query-param";name="q";req`,
			`"content-type"`, `"content-type";req`, `"etag"`, `"etag";req`, `"x-list"`, `"x-list";bs`, `"x-empty"`, `"x-empty";bs`,
			`"priority"`, `"priority";sf`, `"priority";key="u"`, `"priority";key="i"`, `"priority";key="zz"`, `"priority";sf;key="u"`,
			`"priority";sf;bs`, `"priority";key="u";bs`, `"x-list";sf`, `"cache-status";sf`, `"example-dict";key="a"`, `"example-dict";sf`,
			`"expires";tr`, `"expires"`, `"content-type";tr`, `"@method";tr`, `"@method";sf`, `"@method";key="a"`, `"@method";bs`,
			`"signature-agent";key="one"`, `"signature-agent";key="two"`, `"Content-Type"`, `"@body"`, `"@signature-params"`, `"@Method"`,
			`content-type`, `1`, `:AAAA:`, `"content-type";x`, `"content-type";x="y"`, `"content-type";sf=?0`, `"content-type";bs=1`, `"x\"y"`, `""`,
			`"content-type";optional`, `"content-digest"`, `"content-digest";key="sha-256"`, `"content-digest";req`, `"x-list";name="q"`, `"signature"`,
		}))
		return
	}
	switch r.IntN(8) {
	case 0:
		m.components = slices.Delete(m.components, i, i+1)
	case 1:
		insert(m.components[i])
	case 2:
		r.Shuffle(len(m.components), func(i, j int) { m.components[i], m.components[j] = m.components[j], m.components[i] })
	case 3:
		m.components[i] += pick(r, []string{";req", ";sf", ";bs", ";tr", `;key="u"`, `;name="q"`, ";x", ";req=?0", ";req=?1", ";req;req", `;req="a"`})
	case 4:
		name, _, _ := strings.Cut(m.components[i], ";")
		m.components[i] = name
	case 5:
		m.components[i] = strings.ToUpper(m.components[i])
	case 6:
		m.components[i] = pick(r, []string{" ", "  ", "\t"}) + m.components[i]
	case 7:
		insert(strings.Replace(m.components[i], ";", " ;", 1))
	}
}

func mutateParam(r *rand.Rand, m *message) {
	i := r.IntN(len(m.params))
	switch r.IntN(6) {
	case 0:
		m.params = slices.Delete(m.params, i, i+1)
		if len(m.params) == 0 {
			m.params = []string{";created=1"}
		}
	case 1:
		m.params = append(m.params, m.params[i])
	case 2:
		r.Shuffle(len(m.params), func(i, j int) { m.params[i], m.params[j] = m.params[j], m.params[i] })
	default:
		text := pick(r, []string{
			";created=1", ";created=-5", ";created=01", ";created=1.0", `;created="1"`, ";created", ";created=@1", ";created=1000000000000000",
			";expires=2", `;expires="2"`, ";expires=never", `;keyid="other"`, ";keyid=other", ";keyid=:AAAA:", `;alg="ed25519"`,
			`;alg="ecdsa-p256-sha256"`, `;alg="hmac-sha256"`, `;alg="rsa-v1_5-sha256"`, `;alg=""`, ";alg=ed25519", `;tag="other"`, ";tag", `;tag=""`,
			`;nonce="n"`, ";nonce=1", `;heron="x"`, ";heron", ";heron=?0", ";heron=?1", "; heron", " ;heron", ";heron=1.50", `;heron=%"%c3%a4"`, ";Heron",
			`;heron="ä"`, ";", `;heron="`, `;heron=""`,
		})
		if r.IntN(2) == 0 {
			m.params[i] = text
		} else {
			m.params = slices.Insert(m.params, i, text)
		}
	}
}

func mutateSignature(r *rand.Rand, m *message) {
	s := m.signature
	if len(s) < 8 {
		return // it was mutated before
	}
	at := 1 + r.IntN(len(s)-2)
	switch r.IntN(9) {
	case 0, 1:
		m.signature = s[:at] + pick(r, []string{"A", "B", "+", "/", "z", "="}) + s[at+1:]
	case 2: // bits after the end, which decode to nothing
		m.signature = strings.Replace(s, "==", "=", 1)
		if i := strings.Index(s, "=="); i > 0 {
			m.signature = s[:i-1] + string(s[i-1]+1) + s[i:]
		}
	case 3:
		m.signature = s[:at] + ":"
	case 4:
		m.signature = ":" + strings.Repeat("A", 86) + "==:"
	case 5:
		m.signature += pick(r, []string{";x", ";x=1", " ", "\t", ", other=:AAAA:", ", sig=:AAAA:", ","})
	case 6:
		m.signature = pick(r, []string{"::", `""`, "?1", "1", "(:AAAA:)", "", "(" + s + ")", strings.ReplaceAll(s, ":", `"`)})
	case 7:
		m.signature = s[:len(s)-1] + "AAAA:"
	case 8:
		m.signature = " " + s
	}
}

func mutateURL(r *rand.Rand, m *message) {
	switch r.IntN(14) {
	case 0:
		m.uri = strings.Replace(m.uri, "agent.example", "other.example", 1)
	case 1:
		m.uri = strings.Replace(m.uri, "agent.example", "Agent.Example", 1)
	case 2:
		m.uri = strings.Replace(m.uri, "agent.example", "agent.example:443", 1)
	case 3:
		m.uri = strings.Replace(m.uri, "agent.example", "agent.example:8443", 1)
	case 4:
		m.uri = strings.Replace(m.uri, "https:", pick(r, []string{"http:", "HTTPS:", "ftp:", ""}), 1)
	case 5:
		m.uri += pick(r, []string{"&q=2", "?q=2", "&", "?", "&%zz=1", "&a;b"})
	case 6:
		m.uri += pick(r, []string{"#", "#a", " ", "ä", "\n", "%", "[", "|", "%2f"})
	case 7:
		m.uri = strings.Replace(m.uri, "//", "//me@", 1)
	case 8:
		m.uri = strings.Replace(m.uri, "/runs", "/%72uns", 1)
	case 9:
		m.uri = strings.Replace(m.uri, "/runs", pick(r, []string{"/./runs", "//runs", "/a b", "/a%20b", "/\"a", "/é"}), 1)
	case 10:
		m.uri, _, _ = strings.Cut(m.uri, "?")
	case 11:
		m.uri = "https://agent.example" + pick(r, []string{"", "/", "?q=1"})
	case 12:
		m.uri = pick(r, []string{"", "/", "//agent.example/", "https:///x", "mailto:a@b"})
	case 13:
		m.uri = strings.Replace(m.uri, "q=", pick(r, []string{"Q=", "q=%71", "q=a+", "q=%C3%A4", "q=%FF"}), 1)
	}
}

func mutateStart(r *rand.Rand, m *message) {
	if m.status != 0 && r.IntN(4) > 0 {
		m.status = pick(r, []int{200, 201, 404, 99, 1000, 20, 503})
		return
	}
	if m.status != 0 && r.IntN(2) == 0 {
		m.noRequest = true
		return
	}
	m.method = pick(r, []string{"GET", "POST", "get", "OPTIONS", "CONNECT", "G T", "", "M-SEARCH", "G\nT"})
}

func mutateBody(r *rand.Rand, m *message) {
	switch r.IntN(4) {
	case 0:
		m.body = nil
	case 1:
		m.body = append(m.body, '\n')
	default:
		if len(m.body) > 0 {
			m.body[r.IntN(len(m.body))] ^= 1
		}
	}
}

func mutateLabel(r *rand.Rand, m *message) {
	switch r.IntN(4) {
	case 0:
		m.label = pick(r, []string{"other", "Sig", "", "sig ", " sig", "*sig"})
	default:
		m.extra = pick(r, []string{", other=()", ", sig=()", ", other", ",", "\t, other=()", ", other=(1)", `, other=("date";x)`, ", other=();a;a", ` , other=("a"   "b")`, ", ä"})
	}
}

// describe returns the message for the report of a failing test.
func (m *message) describe() string {
	return fmt.Sprintf("%d %s %s %q request %q trailer %q\nSignature-Input: %s\nSignature: %s", m.status, m.method, m.uri, m.header, m.request, m.trailer, m.input(), m.signature)
}
