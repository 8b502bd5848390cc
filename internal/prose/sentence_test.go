package prose

import (
	"strings"
	"testing"

	uax29 "github.com/clipperhouse/uax29/v2/sentences"
	"github.com/google/go-cmp/cmp"
)

// sentences returns the sentences of text as strings.
func sentences(text string) []string {
	var all []string
	for start, end := range Sentences(text) {
		all = append(all, text[start:end])
	}
	return all
}

// Every case is its sentences, with the bars between them left out of the text.
func TestSentences(t *testing.T) {
	tests := map[string][]string{
		"plain": {
			"One cat. |Two dogs! |Three birds?",
			"No stop at the end",
			"It ended.\n|Then it began.",
			"A line\nbroken in two. |Next.",
			"Really?! |Yes!! |No...|",
			"So it is!|Is it?|Yes, an http.Handler.",
			"Wait... |Then he left. |He said ... nothing.",
			"Wait… |Then he left… and came back.",
		},
		"titles and initials": {
			"Dr. Smith met Mr. J. Doe at 3.5 p.m. in the U.S. |He left.",
			"Mrs. Dalloway and Prof. Lee met St. Nicholas. |Ms. Fox too.",
			"J. R. R. Tolkien and J.-P. Sartre wrote. |So did G.B. Shaw.",
			"We chose plan B. |The rest agreed.",
			"It was J. La Rue who called.",
			"It needs 5 V. |Water boils at 100 °C. |Ice melts.",
			"Roe v. Wade was decided. |Brown vs. Board too.",
		},
		"abbreviations": {
			"Use fruit, e.g. Apples, i.e. the red ones, cf. Fig. 3 and Eq. (4). |Done.",
			"See No. 5 and vol. 2, pp. 3 ff. |The rest is new.",
			"The answer is No. |Berlin disagrees.",
			"Apple Inc. Chief Tim spoke. |He works at Apple Inc. |The firm grew.",
			"It opened at 3 p.m. |Trains ran late. |At 5 p.m. Eastern it closed.",
			"Cats, dogs, etc. |Birds are out. |Cats etc. are in.",
			"On Jan. 5 and Dec. 24 we met. |It was in Jan. |The snow fell.",
			"In Washington D.C. |The vote passed. |Jane Roe Ph.D. Candidate spoke.",
			"Lee et al. Report 7 says so. |It was shown by Lee et al. |The data agree.",
			"The U.S. Congress and the U.K. Parliament met. |They talked.",
		},
		"numbers": {
			"Version 4.0.6. is out. |It costs 3.14 dollars. |5 million saw it.",
			"In 2019. |The year went by. |It was 12. |Then 13.",
			"It rose by 5%. |$5 was spent.",
			"Take 1 ... 5 steps.",
			"Cold. |.NET froze.",
		},
		"German": {
			"Am 3. Oktober 1990, d.h. vor Jahren, z.B. Berlin bzw. Bonn. |Es war Herbst.",
			"Der 2. Weltkrieg endete im 20. Jahrhundert. |Danach kam Frieden.",
			"Es gilt z. B. Die Regel, d. h. Abs. 3 Nr. 4. |Mehr nicht.",
			"Am 3. 10. 2024 war Feiertag, u. a. Berlin feierte. |Er sagte: „Gut.“ |Dann ging er.",
			"Das kostet ca. 5 Mio. Euro usw. |Er zahlte inkl. Steuer.",
			"Cäsar starb 44 v. Chr. |Er war Diktator.",
		},
		"French, Spanish, Italian": {
			"M. Dupont et Mme. Curie arrivent. |L’heure est là ! |Pourquoi ? |Parce que.",
			"« Bonjour. » |Il part. |Voir p. 12, art. 5.",
			"¿Qué hora es? |¡Tarde! |La Sra. López y el Dr. Ruiz salen. |EE.UU. Norte.",
			"Il sig. Rossi e il dott. Bianchi, ecc. |Poi vanno via. |È tardi.",
		},
		"quotes and brackets": {
			"He said “Go.” |Then she went. |(He stayed.) |She called.",
			"\"Why?\" he asked. |\"Because.\" |She left.",
			"He left (see below. the rest) and so on. |Next.",
			"It is so (as he said.). |Next.",
			"It is done.” |And more.",
			"Yahoo! is a firm. |Ask: what? no way.",
		},
		"words written small": {
			"It sold well. |iPhone sales rose. |mRNA works. |`foo` is code. |https://a.example is a site.",
			"Use npm. it works.",
		},
		"addresses and names of files": {
			"See https://a.example/b?c=d!e.f and www.b.example. |Then main.go and example.com.",
			"Call a.b.c() and x!y?z now. |Visit .NET. |.NET is old.",
		},
		"citation marks": {
			"One.[1] |Two.[2][3] |Three. [4] |Four [5]. |Five.[^6] |Six.【7†source】 |Seven.",
			"One. ([a.example](https://a.example/x?y=z.w)) |Two ([b. C d](https://b.example)). |Three.[[1]](https://c.example) |Four.",
			"One. ([a](u), [b](v)) |Two.<sup>[1](u)</sup> |Three.¹² |Four. [Site](https://d.example)\n",
			"See it. |[Go](https://go.example) is a language.",
			"One.\n[1]\n|Two.",
			"Lee et al. [1] showed it. |Done.",
		},
		"markdown lines": {
			"# |A title\n|Text under it.\n\n- |one item\n- |two. |Three\n  goes on\n1. |first\n2) |second\n> |quoted\n> |again",
			"**A bold line**\n|Text. |**Bold.** |More *text.* |_End._ |Now.",
			"Title\n=====\n|Text\n---\n|More\n* * *\n|Rest",
			"| |City | People |\n|---|:---:|\n| |Bonn | 0.3 million. |About |\n| |Rome | 3 |\n|After.",
			"Text:\n|```go\nx := a.b. C\n\n// Not a sentence. No.\n```\n|After. |Code `a. B` stays.",
			"- [ ] |to do\n- [x] |done\n• |bullet\n[^1]: |a note\n[2]: |https://b.example",
			"in the year\n1989. |The wall fell.\n|",
			"~~~\nopen. Code",
			"A\r\nb.\r\n\r\n|C d.\r\n- |e\r\n",
			"One\u2029|two\f|three",
		},
		"other scripts": {
			"今天天气很好。|我们去公园！|你呢？|好的……走吧。",
			"「そうです。」と言った。|次の文。",
			"他说：“你好。”|然后走了。|价格是3.5元。[1]|好。 [2]|完",
			"他走了.|她来了!|好",
			"هل أنت بخير؟ |نعم. |وداعا۔ |تم",
			"यह एक वाक्य है। |दूसरा वाक्य॥ |अंत",
			"Это Москва. |Он тут! |Да?",
			"שלום עולם. |מה שלומך? |טוב",
			"안녕하세요. |반갑습니다! |네.",
			"Γεια σου. |Τι κάνεις;",
		},
		"emoji and marks": {
			"Great.🎉 |Next 👍🏽! |👩‍👩‍👧 came.",
			"👍",
			"Done. ✅ \n|Is it? 🎉🎉",
			"Cafe\u0301. |E\u0301t\u00e9!\ufe0f |Fin.",
			"Done.\u200b |Next.",
		},
		"nothing": {"", " \n\t ", "---", "***\n\n- \n1. ", "|---|"},
	}
	for name, cases := range tests {
		t.Run(name, func(t *testing.T) {
			for _, c := range cases {
				text, want := sample(c)
				if diff := cmp.Diff(want, sentences(text)); diff != "" {
					t.Errorf("%q (-want +got):\n%s", text, diff)
				}
			}
		})
	}
}

// Plain prose, with nothing in it that this package treats in its own way, is cut where UAX 29 cuts it.
func TestSentencesFollowUAX29(t *testing.T) {
	text := "The river rises in the hills. It falls 300 m (in three steps) to the sea! Who found it? Nobody knows; " +
		"maps of 1.5 million show it. “That is odd.” So they say. Der Fluss ist lang. Größe zählt nicht! Où va-t-il ? Ça va. " +
		"¿Dónde está? Está aquí. Река длинная. Она холодная! Ο ποταμός. Είναι μακρύς. Գետը երկար է։ Այո։ Հա։ " +
		"河很长。水很冷！谁知道？没人。川は長い。水は冷たい！नदी लंबी है। ठीक है। هل هو طويل؟ نعم. הנהר ארוך. כן! " +
		"강은 길다. 물은 차다! ወንዙ ረጅም ነው። አዎ። မြစ်ရှည်။ ဟုတ်။"
	var want []string
	for it := uax29.FromString(text); it.Next(); {
		want = append(want, strings.TrimSpace(it.Value()))
	}
	if diff := cmp.Diff(want, sentences(text)); diff != "" {
		t.Errorf("(-UAX 29 +got):\n%s", diff)
	}
}

// sample takes the bars that stand before a word out of c: they say where a sentence starts. A bar with a space or a
// dash after it is one of a table.
func sample(c string) (text string, want []string) {
	var b strings.Builder
	cut := []int{0}
	for i := 0; i < len(c); i++ {
		if c[i] == '|' && (i+1 == len(c) || strings.IndexByte(" -:\n|", c[i+1]) < 0) {
			cut = append(cut, b.Len())
			continue
		}
		b.WriteByte(c[i])
	}
	text = b.String()
	cut = append(cut, len(text))
	for i := range len(cut) - 1 {
		if s := markers(text[cut[i]:cut[i+1]]); s != "" {
			want = append(want, s)
		}
	}
	return text, want
}

// markers takes off a piece what belongs to the block of the piece after it.
func markers(s string) string {
	lines := strings.Split(s, "\n")
	for len(lines) > 0 {
		last := strings.TrimSpace(lines[len(lines)-1])
		switch strings.Trim(last, "-=*:| ") {
		case "", "#", ">", "1.", "2)", "•", "[ ]", "[x]", "[^1]", "[2]":
			lines = lines[:len(lines)-1]
			continue
		}
		break
	}
	return strings.TrimRight(strings.TrimSpace(strings.Join(lines, "\n")), "| ")
}

func TestSentenceAt(t *testing.T) {
	testOffsets(t, func(text string, at int) string {
		start, end := SentenceAt(text, at)
		return text[start:end]
	}, []offsetTest{
		{"inside", "One cat. Two ^dogs. Three.", "Two dogs."},
		{"at the start", "One cat. ^Two dogs.", "Two dogs."},
		{"at the end", "One cat.^ Two dogs.", "One cat."},
		{"in the space after", "One cat. ^ Two dogs.", "One cat."},
		{"between ideographs", "一。^二。", "一。"},
		{"in a list item", "Text.\n- one. Two ^three\n- four", "Two three"},
		{"in the marker", "Text.\n-^ one", ""},
		{"on a blank line", "One.\n\n^\nTwo.", ""},
		{"before the text", "^ One.", ""},
		{"in nothing", "^", ""},
		{"in a table row", "| a | b |\n|---|---|\n| c | ^d |", "c | d"},
		{"at the end of the text", "One. Two^", "Two"},
	})
}

// A block longer than the window must not make the result depend on its far start, nor the time.
func TestSentenceAtLongBlock(t *testing.T) {
	text := strings.Repeat("Some words stand here. ", 1000)
	at := strings.Index(text[12000:], "words") + 12000
	start, end := SentenceAt(text, at)
	if got, want := text[start:end], "Some words stand here."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	start, end = SentenceBefore(text, at+len("words"))
	if got, want := text[start:end], "Some words"; got != want {
		t.Errorf("before: got %q, want %q", got, want)
	}
	long := strings.Repeat("word ", 4000)
	start, end = SentenceAt(long, 10000)
	if start < 10000-Window || end > 10000+Window || start >= 10000 || end <= 10000 {
		t.Errorf("a sentence without end: got %d to %d", start, end)
	}
}

// offsetTest is a text with a ^ where an offset is, and what a function returns for that.
type offsetTest struct{ name, text, want string }

// testOffsets runs f for each of tests, the ^ taken out of its text.
func testOffsets(t *testing.T, f func(text string, at int) string, tests []offsetTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before, after, ok := strings.Cut(tt.text, "^")
			if !ok {
				t.Fatalf("no ^ in %q", tt.text)
			}
			if got := f(before+after, len(before)); got != tt.want {
				t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

func TestSentenceBefore(t *testing.T) {
	testOffsets(t, func(text string, at int) string {
		start, end := SentenceBefore(text, at)
		if s, e := SentenceBefore(text[:at], at); s != start || e != end {
			t.Errorf("%q without what follows: %d, %d, want %d, %d", text, s, e, start, end)
		}
		return text[start:end]
	}, []offsetTest{
		{"a link in parentheses", "A b. C d (^[x](u))", "C d"},
		{"at the parenthesis", "A b. C d ^([x](u))", "C d"},
		{"after the full stop", "A b. C d. ^[1]", "C d."},
		{"close after the full stop", "A b. C d.^[1]", "C d."},
		{"the second mark", "A b. C d.[1]^[2]", "C d."},
		{"the second mark apart", "A b. C d [1], ^[2]", "C d"},
		{"the second link of a group", "A b. C d ([x](u), ^[y](v))", "C d"},
		{"after a group", "A b. C d. ([x](u)) ^([y](v))", "C d."},
		{"the next sentence's", "A b.[1] C d ^[2]", "C d"},
		{"after a linked number", "A b. C d [1](u)^[2](v)", "C d"},
		{"after a site's name", "A b. C d [a.example](https://a.example) ^[b.example](v)", "C d"},
		{"a link that is a part of the sentence", "A b. See [the long story](u) ^[1]", "See [the long story](u)"},
		{"in a raised element", "A b.<sup>^[1](u)</sup>", "A b."},
		{"after a raised element", "A b.<sup>[1](u)</sup> C d<sup>^", "C d"},
		{"after 【】", "A b. C d【1†s】^【2†s】", "C d"},
		{"after a comma", "A b. C d, ^[1]", "C d"},
		{"after a dash", "A b. C d – ^[1]", "C d"},
		{"an abbreviation", "A b. By Lee et al. ^[1]", "By Lee et al."},
		{"a quote", "A b. He said “C.” ^[1]", "He said “C.”"},
		{"an open quote", "A b. He said \"^", "He said"},
		{"emphasis", "A b. **C d.** ^[1]", "**C d.**"},
		{"before emphasis", "A b. C d **^[1]**", "C d"},
		{"code", "A b. Use `c` ^[1]", "Use `c`"},
		{"a percentage", "A b. It is 5% ^[1]", "It is 5%"},
		{"brackets that are a part", "A b. C d (of 2020) ^[1]", "C d (of 2020)"},
		{"a list item", "Text.\n- one two ^[1]", "one two"},
		{"a star item", "Text.\n*   **Wind:** 5 km/h ^[1]", "**Wind:** 5 km/h"},
		{"a numbered item", "Text.\n12. one two ^[1]", "one two"},
		{"a heading", "Text\n## One two ^[1]", "One two"},
		{"a quoted line", "Text\n> One two ^[1]", "One two"},
		{"a table row", "| a |\n|---|\n| Bonn | 0.3 | ^[1] |", "Bonn | 0.3"},
		{"the next line of an item", "- one two\n  ^([x](u))", "one two"},
		{"after a blank line", "A b.\n\n^[1]", ""},
		{"an empty item", "A b.\n- ^[1]", ""},
		{"the start of the text", "^[1]", ""},
		{"only marks", "[1]^[2]", ""},
		{"after ideographs", "甲乙。丙丁。^[1]", "丙丁。"},
		{"inside a sentence of ideographs", "甲乙。丙丁^[1]。", "丙丁"},
		{"after Arabic", "مرحبا. كيف حالك؟ ^[1]", "كيف حالك؟"},
		{"after an emoji", "A b. C d 🎉 ^[1]", "C d 🎉"},
		{"what follows does not count", "A b. C^ d", "C"},
		{"a question with an answer", "Is it so? Yes ^[1].", "Yes"},
		{"a number", "It grew. It is 3.14 ^[1]", "It is 3.14"},
	})
}
