package prose

import (
	"strings"
	"testing"
)

// article returns mixed prose: English and German markdown with links and marks, some Chinese, Hindi, Arabic and emoji.
func article() string {
	const piece = `## The harbour bridge

Dr. Amina Roth (b. 1961) designed the bridge for the city of Lund, e.g. its two towers and approx. 3.4 km of cable. [1] It
was opened on 3 May 1998 at 9 a.m. by the mayor, who said “It will stand for 200 years.” Was it worth $40 million?! Most
people in the area think so ([lund.example](https://lund.example/bridge?from=a.b&x=1)). The U.S. firm Steel & Sons Inc. made
the cables; the towers came from Malmö, see Fig. 2 and [the report](https://report.example/v2.1/index.html#c.3).

* **Length:** 3,412 m, the second longest in the north.[2][3]
* **Traffic:** 41,000 cars a day in 2019. It fell to 28,500 in 2020 🚗.

| Year | Cars |
|------|------|
| 2019 | 41,000 |

Am 3. Oktober 2004 wurde die Brücke, d. h. der nördliche Teil, gesperrt. Der Stadtrat sagte: „Es gibt keine Gefahr.“ Die
Arbeiten dauerten ca. 14 Monate und kosteten 2,5 Mio. Euro. Danach stieg der Verkehr wieder.

这座桥于1998年开放。每天约有四万辆汽车通过！它有多长？大约三公里。 यह पुल बहुत लंबा है। هل الجسر طويل؟ نعم.

`
	return strings.Repeat(piece, 16)
}

func BenchmarkSentences(b *testing.B) {
	text := article()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for range Sentences(text) {
		}
	}
}

func BenchmarkWords(b *testing.B) {
	text := article()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for range Words(text) {
		}
	}
}

// BenchmarkAt calls each function that takes an offset, at offsets across the text.
func BenchmarkAt(b *testing.B) {
	text := article()
	run := func(name string, call func(at int) int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			at := 0
			for b.Loop() {
				at = (at + 797) % len(text)
				call(at)
			}
		})
	}
	run("SentenceBefore", func(at int) int { _, end := SentenceBefore(text, at); return end })
	run("SentenceAt", func(at int) int { _, end := SentenceAt(text, at); return end })
	run("WordEnd", func(at int) int { return WordEnd(text, at) })
	run("GraphemeEnd", func(at int) int { return GraphemeEnd(text, at) })
	run("AfterPunctuation", func(at int) int { return AfterPunctuation(text, at) })
}

// BenchmarkHostile measures texts with the highest cost per byte.
func BenchmarkHostile(b *testing.B) {
	for name, piece := range map[string]string{
		"stops": ".", "stops apart": ". ", "stops and brackets": ".(", "brackets": "[", "links": "[](", "groups": ". ([](",
		"bullets": "- ", "ticks": "`` ` ", "bars": "|\n", "raised": ".<sup>", "marks": ". [1]", "lines": "\n",
		"initials": "A. ", "rules": "- \n", "bold": "**\n", "ideographs": "一.", "notes": ". 【", "flags": "🇩",
	} {
		text := strings.Repeat(piece, 1<<18/len(piece))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for range Sentences(text) {
				}
			}
		})
		b.Run(name+" before", func(b *testing.B) {
			for b.Loop() {
				SentenceBefore(text, len(text))
			}
		})
	}
}
