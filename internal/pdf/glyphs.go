package pdf

import (
	"strconv"
	"strings"
)

// glyphTexts says what glyphs say by their names, standardEncoding what codes say in Adobe's standard encoding.
var glyphTexts, standardEncoding = readGlyphNames()

func readGlyphNames() (texts map[string]string, standard [256]string) {
	texts = map[string]string{}
	code := rune(' ')
	for name := range strings.FieldsSeq(asciiNames) {
		texts[name] = string(code)
		standard[code] = string(code)
		code++
	}
	code = 0xA1
	for name := range strings.FieldsSeq(latinNames) {
		texts[name] = string(code)
		code++
	}
	hex := func(digits string) rune {
		n, _ := strconv.ParseUint(digits, 16, 32) // all of them are numbers
		return rune(n)
	}
	for entry := range strings.FieldsSeq(otherNames) {
		name, codes, _ := strings.Cut(entry, "=")
		for digits := range strings.SplitSeq(codes, "+") {
			texts[name] += string(hex(digits))
		}
	}
	standard['\''], standard['`'] = "’", "‘"
	for entry := range strings.FieldsSeq(standardNames) {
		digits, name, _ := strings.Cut(entry, "=")
		standard[hex(digits)] = texts[name]
	}
	return texts, standard
}

// textOfGlyph returns what a glyph says by its name: "eacute", "uni00E9", "u1F600", "f_i", "a.alt".
func textOfGlyph(name string) string {
	if text, ok := glyphTexts[name]; ok {
		return text
	}
	name, _, _ = strings.Cut(name, ".")
	if text, ok := glyphTexts[name]; ok {
		return text
	}
	for _, form := range [...]struct {
		prefix string
		most   int
	}{{"uni", 4}, {"u", 6}} {
		if digits, ok := strings.CutPrefix(name, form.prefix); ok && len(digits) >= 4 {
			if n, err := strconv.ParseUint(digits[:min(len(digits), form.most)], 16, 32); err == nil && n <= 0x10FFFF {
				return string(rune(n))
			}
		}
	}
	if strings.Contains(name, "_") && len(name) < 40 {
		var b strings.Builder
		for part := range strings.SplitSeq(name, "_") {
			b.WriteString(glyphTexts[part])
		}
		return b.String()
	}
	return ""
}

// The names of glyphs as the Adobe Glyph List has them: those of ASCII from the space on, those of Latin-1 from U+00A1 on, and others
// with their code points.
const (
	asciiNames = `space exclam quotedbl numbersign dollar percent ampersand quotesingle parenleft parenright asterisk plus comma
hyphen period slash zero one two three four five six seven eight nine colon semicolon less equal greater question at
A B C D E F G H I J K L M N O P Q R S T U V W X Y Z bracketleft backslash bracketright asciicircum underscore grave
a b c d e f g h i j k l m n o p q r s t u v w x y z braceleft bar braceright asciitilde`

	latinNames = `exclamdown cent sterling currency yen brokenbar section dieresis copyright ordfeminine guillemotleft logicalnot
softhyphen registered macron degree plusminus twosuperior threesuperior acute mu paragraph periodcentered cedilla onesuperior
ordmasculine guillemotright onequarter onehalf threequarters questiondown Agrave Aacute Acircumflex Atilde Adieresis Aring AE
Ccedilla Egrave Eacute Ecircumflex Edieresis Igrave Iacute Icircumflex Idieresis Eth Ntilde Ograve Oacute Ocircumflex Otilde
Odieresis multiply Oslash Ugrave Uacute Ucircumflex Udieresis Yacute Thorn germandbls agrave aacute acircumflex atilde adieresis
aring ae ccedilla egrave eacute ecircumflex edieresis igrave iacute icircumflex idieresis eth ntilde ograve oacute ocircumflex
otilde odieresis divide oslash ugrave uacute ucircumflex udieresis yacute thorn ydieresis`

	otherNames = `bullet=2022 emdash=2014 endash=2013 quoteleft=2018 quoteright=2019 quotedblleft=201C quotedblright=201D
quotesinglbase=201A quotedblbase=201E dagger=2020 daggerdbl=2021 ellipsis=2026 perthousand=2030 guilsinglleft=2039
guilsinglright=203A fraction=2044 Euro=20AC euro=20AC trademark=2122 minus=2212 fi=66+69 fl=66+6C ff=66+66 ffi=66+66+69
ffl=66+66+6C OE=152 oe=153 Scaron=160 scaron=161 Zcaron=17D zcaron=17E Ydieresis=178 Lslash=141 lslash=142 dotlessi=131
circumflex=2C6 caron=2C7 breve=2D8 dotaccent=2D9 ring=2DA ogonek=2DB tilde=2DC hungarumlaut=2DD florin=192 Amacron=100 amacron=101
Abreve=102 abreve=103 Aogonek=104 aogonek=105 Cacute=106 cacute=107 Ccaron=10C ccaron=10D Dcaron=10E dcaron=10F Dcroat=110
dcroat=111 Emacron=112 emacron=113 Edotaccent=116 edotaccent=117 Eogonek=118 eogonek=119 Ecaron=11A ecaron=11B Gbreve=11E
gbreve=11F Idotaccent=130 Imacron=12A imacron=12B Iogonek=12E iogonek=12F Lacute=139 lacute=13A Lcaron=13D lcaron=13E Nacute=143
nacute=144 Ncaron=147 ncaron=148 Omacron=14C omacron=14D Ohungarumlaut=150 ohungarumlaut=151 Racute=154 racute=155 Rcaron=158
rcaron=159 Sacute=15A sacute=15B Scedilla=15E scedilla=15F Tcaron=164 tcaron=165 Umacron=16A umacron=16B Uring=16E uring=16F
Uhungarumlaut=170 uhungarumlaut=171 Uogonek=172 uogonek=173 Zacute=179 zacute=17A Zdotaccent=17B zdotaccent=17C Alpha=391 Beta=392
Gamma=393 Delta=394 Epsilon=395 Zeta=396 Eta=397 Theta=398 Iota=399 Kappa=39A Lambda=39B Mu=39C Nu=39D Xi=39E Omicron=39F Pi=3A0
Rho=3A1 Sigma=3A3 Tau=3A4 Upsilon=3A5 Phi=3A6 Chi=3A7 Psi=3A8 Omega=3A9 alpha=3B1 beta=3B2 gamma=3B3 delta=3B4 epsilon=3B5 zeta=3B6
eta=3B7 theta=3B8 iota=3B9 kappa=3BA lambda=3BB nu=3BD xi=3BE omicron=3BF pi=3C0 rho=3C1 sigma1=3C2 sigma=3C3 tau=3C4 upsilon=3C5
phi=3C6 chi=3C7 psi=3C8 omega=3C9 infinity=221E partialdiff=2202 summation=2211 product=220F integral=222B radical=221A
approxequal=2248 notequal=2260 lessequal=2264 greaterequal=2265 lozenge=25CA arrowright=2192 arrowleft=2190 arrowup=2191
arrowdown=2193 nbspace=A0 sfthyphen=AD middot=B7 checkmark=2713 filledbox=25A0 circle=25CB blackcircle=25CF prime=2032
second=2033 element=2208 intersection=2229 union=222A logicaland=2227 logicalor=2228 similar=223C equivalence=2261 proportional=221D
asteriskmath=2217 dotmath=22C5 bardbl=2016 visiblespace=20`

	// standardNames are the codes above ASCII of Adobe's standard encoding.
	standardNames = `A1=exclamdown A2=cent A3=sterling A4=fraction A5=yen A6=florin A7=section A8=currency A9=quotesingle
AA=quotedblleft AB=guillemotleft AC=guilsinglleft AD=guilsinglright AE=fi AF=fl B1=endash B2=dagger B3=daggerdbl B4=periodcentered
B6=paragraph B7=bullet B8=quotesinglbase B9=quotedblbase BA=quotedblright BB=guillemotright BC=ellipsis BD=perthousand
BF=questiondown C1=grave C2=acute C3=circumflex C4=tilde C5=macron C6=breve C7=dotaccent C8=dieresis CA=ring CB=cedilla
CD=hungarumlaut CE=ogonek CF=caron D0=emdash E1=AE E3=ordfeminine E8=Lslash E9=Oslash EA=OE EB=ordmasculine F1=ae F5=dotlessi
F8=lslash F9=oslash FA=oe FB=germandbls`
)
