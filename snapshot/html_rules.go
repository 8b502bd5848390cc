package snapshot

import (
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// startTag applies the rules of the HTML standard's parser to a start tag.
func (f *fastHTML) startTag() {
	a := f.tag.atom
	if f.phase < inBody && f.head(a) || f.failed {
		return
	}
	if f.tag.facts && f.skipped == 0 && a != atom.Script {
		f.meta.element(f.tag.node())
	}
	if len(f.tables) > 0 && f.tableStart(a) || f.failed {
		return
	}
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Details, atom.Dialog, atom.Dir,
		atom.Div, atom.Dl, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Header, atom.Hgroup,
		atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Search, atom.Section, atom.Summary, atom.Ul, atom.Pre:
		f.closeP()
		f.push()
	case atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Textarea:
		f.rawElement()
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.S, atom.Small, atom.Strike, atom.Strong,
		atom.Tt, atom.U:
		if a == atom.A && f.open1(atom.A) {
			f.giveUp() // a link in a link ends the first
			return
		}
		f.push()
	case atom.Area, atom.Br, atom.Embed, atom.Img, atom.Keygen, atom.Wbr, atom.Param, atom.Source, atom.Track,
		atom.Base, atom.Basefont, atom.Bgsound, atom.Link, atom.Meta:
		f.void()
	case atom.Svg:
		f.svg()
	default:
		f.rareStart(a)
	}
}

// rareStart applies the rules for elements that have some of their own.
func (f *fastHTML) rareStart(a atom.Atom) {
	switch a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		f.closeP()
		if isHeading(f.top()) {
			f.closeTo(len(f.stack) - 1)
		}
		f.push()
	case atom.Li, atom.Dd, atom.Dt:
		f.item(a)
	case atom.Form:
		if !f.form {
			f.closeP()
			f.push()
			f.form = true
		}
	case atom.Table:
		if !f.strict && f.find(buttonScope, is(atom.P)) >= 0 {
			f.giveUp() // only old pages may have it in a paragraph
			return
		}
		f.closeP()
		f.push()
	case atom.Hr:
		f.closeP()
		f.noSelect()
		f.void()
	case atom.Input:
		f.noSelect()
		f.void()
	case atom.Select, atom.Button:
		f.once(a)
	case atom.Option, atom.Optgroup:
		f.option(a)
	case atom.Rb, atom.Rtc, atom.Rp, atom.Rt:
		if f.find(anyScope, is(atom.Ruby)) >= 0 {
			f.closeImplied(exceptRtc(a))
		}
		f.push()
	case atom.Caption, atom.Col, atom.Colgroup, atom.Tbody, atom.Td, atom.Tfoot, atom.Th, atom.Thead, atom.Tr:
		// Outside of a table they are nothing.
	case atom.Html, atom.Head, atom.Body, atom.Frame, atom.Frameset, atom.Template, atom.Object, atom.Applet,
		atom.Marquee, atom.Math, atom.Title, atom.Noframes, atom.Noembed, atom.Xmp, atom.Plaintext, atom.Listing,
		atom.Image, atom.Nobr:
		f.giveUp()
	default:
		f.push()
	}
}

// noSelect gives up in a select element, which some elements end.
func (f *fastHTML) noSelect() {
	if f.open1(atom.Select) {
		f.giveUp()
	}
}

// once opens an element that is not to be in another of its kind.
func (f *fastHTML) once(a atom.Atom) {
	if f.open1(a) {
		f.giveUp()
		return
	}
	f.push()
}

// open1 reports whether an element is open, anywhere.
func (f *fastHTML) open1(a atom.Atom) bool {
	for i := range f.stack {
		if f.stack[i].atom == a {
			return true
		}
	}
	return false
}

func (f *fastHTML) option(a atom.Atom) {
	if f.find(anyScope, is(atom.Select)) >= 0 {
		but := atom.Atom(0)
		if a == atom.Option {
			but = atom.Optgroup
		}
		f.closeImplied(but)
	} else if f.top() == atom.Option {
		f.closeTo(len(f.stack) - 1)
	}
	f.push()
}

func exceptRtc(a atom.Atom) atom.Atom {
	if a == atom.Rp || a == atom.Rt {
		return atom.Rtc
	}
	return 0
}

// item opens an item of a list, and closes the one before.
func (f *fastHTML) item(a atom.Atom) {
	for i, open := range slices.Backward(f.stack) {
		o := open.atom
		if o == a || a != atom.Li && (o == atom.Dd || o == atom.Dt) {
			f.closeTo(i)
			break
		}
		if o != atom.Address && o != atom.Div && o != atom.P && isSpecial(o) {
			break
		}
	}
	f.closeP()
	f.push()
}

// rawElement goes behind an element in which there is no markup, and nothing visible.
func (f *fastHTML) rawElement() {
	var n *html.Node
	if f.tag.facts && f.skipped == 0 {
		n = f.tag.node()
	}
	inside := f.rawText()
	if n != nil && !f.failed {
		if len(inside) > 0 {
			n.AppendChild(&html.Node{Type: html.TextNode, Data: string(inside)})
		}
		f.meta.element(n)
	}
}

// head reads a start tag before the body. False: it is of the body.
func (f *fastHTML) head(a atom.Atom) bool {
	f.phase = max(f.phase, beforeHead)
	switch a {
	case atom.Html, atom.Head:
		if f.tag.hidden || f.phase > beforeHead || f.open1(a) {
			f.giveUp()
			return true
		}
		f.stack = append(f.stack, openTag{atom: a}) // only to know it again
		if f.tag.facts {
			f.meta.element(f.tag.node())
		}
		if a == atom.Html && f.open1(atom.Head) {
			f.giveUp()
		}
	case atom.Base, atom.Basefont, atom.Bgsound, atom.Link, atom.Meta:
		if f.tag.facts {
			f.meta.element(f.tag.node())
		}
	case atom.Script, atom.Style, atom.Noscript:
		if a == atom.Noscript && f.phase == afterHead {
			f.giveUp() // it is of the body
			return true
		}
		f.rawElement()
	case atom.Title:
		if inside := f.rawText(); len(inside) > 0 {
			first(&f.meta.title, html.UnescapeString(string(inside)))
		}
	case atom.Body:
		if f.tag.hidden {
			f.giveUp()
			return true
		}
		f.body()
	case atom.Template, atom.Frameset, atom.Noframes:
		f.giveUp()
	default:
		f.body()
		return false
	}
	return true
}

// endTag applies the rules to an end tag.
func (f *fastHTML) endTag() {
	a := f.tag.atom
	if f.phase < inBody {
		switch {
		case a == atom.Head && f.open1(atom.Head) && f.phase == beforeHead:
			f.phase = afterHead
		default:
			f.giveUp()
		}
		return
	}
	if len(f.tables) > 0 && f.tableEnd(a) || f.failed {
		return
	}
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Button, atom.Center, atom.Details, atom.Dialog,
		atom.Dir, atom.Div, atom.Dl, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Header, atom.Hgroup,
		atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.Pre, atom.Search, atom.Section, atom.Select, atom.Summary,
		atom.Ul, atom.Dd, atom.Dt:
		if i := f.find(anyScope, is(a)); i >= 0 {
			f.closeTo(i)
		}
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.S, atom.Small, atom.Strike, atom.Strong,
		atom.Tt, atom.U:
		if f.top() == a {
			f.closeTo(len(f.stack) - 1)
		} else if f.open1(a) {
			f.giveUp()
		}
	case atom.P:
		i := f.find(buttonScope, is(atom.P))
		if i < 0 {
			f.open(atom.P, false)
			i = len(f.stack) - 1
		}
		f.closeTo(i)
	case atom.Li:
		if i := f.find(itemScope, is(atom.Li)); i >= 0 {
			f.closeTo(i)
		}
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		if i := f.find(anyScope, isHeading); i >= 0 {
			f.closeTo(i)
		}
	case atom.Form:
		f.endForm()
	case atom.Br, atom.Template, atom.Object, atom.Applet, atom.Marquee, atom.Nobr, atom.Listing:
		f.giveUp()
	case atom.Body, atom.Html:
		// What follows still belongs to the body.
	default:
		f.endOther()
	}
}

func (f *fastHTML) endForm() {
	was := f.form
	f.form = false
	i := f.find(anyScope, is(atom.Form))
	if !was || i < 0 {
		return
	}
	if f.closeImplied(0); f.failed || f.top() != atom.Form {
		f.giveUp() // the form ends, and what is open in it does not
		return
	}
	f.closeTo(len(f.stack) - 1)
}

// endOther closes an element that has no rules of its own.
func (f *fastHTML) endOther() {
	for i := len(f.stack) - 1; i >= 0; i-- {
		o := &f.stack[i]
		if o.atom == f.tag.atom && (o.atom != 0 || o.name == string(f.tag.lower)) {
			f.closeTo(i)
			return
		}
		if isSpecial(o.atom) {
			return
		}
	}
}

func isHeading(a atom.Atom) bool {
	switch a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	default:
		return false
	}
}

// isSpecial reports whether the standard calls an element special: of those that are ever open here.
func isSpecial(a atom.Atom) bool {
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Button, atom.Caption, atom.Center,
		atom.Colgroup, atom.Dd, atom.Details, atom.Dir, atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption,
		atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header,
		atom.Hgroup, atom.Html, atom.Li, atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section,
		atom.Select, atom.Summary, atom.Table, atom.Tbody, atom.Td, atom.Tfoot, atom.Th, atom.Thead, atom.Tr, atom.Ul:
		return true
	default:
		return false
	}
}
