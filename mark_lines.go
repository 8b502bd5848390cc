package ibid

import (
	"strings"

	"github.com/ibidhq/ibid/internal/text"

	"github.com/ibidhq/ibid/internal/markdown"
)

// listReader follows the lines of a text to find lists of sources that the model itself printed: a heading such as
// "Sources:", and the entries below it.
type listReader struct {
	at     int  // start of the first line that has not been read
	within bool // the last line read is a heading of such a list, or in it
}

// entry reports whether the line that contains offset at is an entry of a printed list.
func (l *listReader) entry(text string, at int) bool {
	for l.at < at {
		n := strings.IndexByte(text[l.at:at], '\n')
		if n < 0 {
			break
		}
		line := text[l.at : l.at+n]
		l.at += n + 1
		switch {
		case strings.TrimSpace(line) == "":
		case l.within && isEntry(line):
		default:
			l.within = isListHeading(line)
		}
	}
	return l.within && isEntry(text[l.at:])
}

// entryMark matches the number or bullet with which an entry of a printed list begins, and what it is called by.
var entryMark = text.Pattern(`^[ \t>]{0,16}(?:[-*+•·–] +)?(?:\*\*)?(?:` +
	`\[{1,2}\^?([^\]\n]{1,160}?)\^?\]{1,2}|【([^】\n]{1,160})】|［([^］\n]{1,160})］|\(?(\d{1,4})[.):]` + // [1] 【1】 1. (1)
	`|([⁰¹²³⁴-⁹]{1,4}))(?:\*\*)?[ \t]*[:.)–—-]?[ \t]*`)

// isEntry reports whether a line in a printed list is an entry of it.
func isEntry(line string) bool {
	line, _, _ = strings.Cut(line, "\n")
	return entryMark().MatchString(line) || markdown.ItemMark(strings.TrimLeft(line, " \t>")) > 0 ||
		strings.HasPrefix(strings.TrimSpace(line), "•")
}

// isListHeading reports whether a line is the heading of a list of sources.
func isListHeading(line string) bool {
	const longest = 64 // bytes
	if len(line) > longest {
		return false
	}
	line = strings.ToLower(strings.Trim(line, " \t\r#*_:：>=-📚🔗【】"))
	return listHeadings[line]
}

// listHeadings are the headings that models give to lists of sources.
var listHeadings = headings(`sources|source list|source|list of sources|sources used|sources cited|cited sources|
sources consulted|sources and references|references|references used|reference list|list of references|citations|
bibliography|works cited|footnotes|notes|further reading|source documents|documents cited|documents used|literature|
quellen|quellenangaben|quellenverzeichnis|verwendete quellen|quellen und verweise|literatur|literaturverzeichnis|belege|
nachweise|einzelnachweise|referenzen|fußnoten|sources utilisées|références|bibliographie|sources et références|
notes de bas de page|fuentes|referencias|bibliografía|fuentes consultadas|fuentes citadas|fonti|riferimenti|
bibliografia|fontes|referências|bronnen|referenties|bronvermelding|källor|referenser|kilder|referanser|referencer|
lähteet|viitteet|źródła|bibliografia i źródła|přípisy|zdroje|kaynaklar|kaynakça|источники|список источников|
литература|ссылки|джерела|
来源|资料来源|参考资料|参考文献|参考来源|引用来源|引用|参考|信息来源|來源|資料來源|參考資料|參考文獻|出典|参照|参照元|情報源|출처|참고문헌|참고 자료|
المصادر|المراجع|מקורות`)

func headings(list string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.SplitSeq(list, "|") {
		all[strings.TrimSpace(name)] = true
	}
	return all
}
