package support

import (
	"strings"
	"sync"
)

// The words that the reader treats apart. All are in lower case and without accents; contractions are read before.
const (
	// stopWords carry no information of their own, or speak of the answer and not of the world (according, mentioned).
	stopWords = `a about above after again against all am an and any are as at be because been before being below between both
but by can could did do does doing down during each few for from further had has have having he her here hers herself him
himself his how i if in into is it its itself just let me more most my myself no nor not now of off on once only or other
ought our ours ourselves out over own same she should so some such than that the their theirs them themselves then there these
they this those through to too under until up very was we were what when where which while who whom why will with would you
your yours yourself yourselves also may might must shall however therefore thus hence s t d ll m re ve upon within without
via per etc eg ie many much cannot
according context given provided mentioned stated source sources passage passages explanation additionally moreover
furthermore overall important note noted example including include includes included answer reference references although
though since like addition various certain specific specifically particular particularly generally typically usually often
sometimes known considered one ones based several different well even still yet among along around use used using make makes
made way`
	// sameWords are read as the word that stands behind each: irregular forms, people of a nation, a few synonyms.
	sameWords = `men man women woman children child people person won win wrote write written write began begin begun begin
became become took take taken take gave give given give went go gone go came come said say found find founded found2 founder
found2 founders found2 led lead held hold built build sold sell bought buy brought bring left leave lost lose met meet paid
pay ran run sang sing sung sing song sing sent send spent spend spoke speak spoken speak taught teach thought think told tell
known know knew know grew grow grown grow fell fall fallen fall felt feel kept keep died die death die dead die born birth
chose choose chosen choose drew draw drawn draw flew fly fought fight got get rose rise risen rise saw see seen see shot shoot
shown show stood stand threw throw wore wear worn wear feet foot teeth tooth mice mouse lives life wives wife leaves leaf
countries country american america americans america british britain french france german germany chinese china japanese
japan spanish spain italian italy russian russia canadian canada australian australia indian india mexican mexico better good
best good worse bad worst bad movie film movies film films film tv television jan january feb february mar march apr april
jun june jul july aug august sep september sept september oct october nov november dec december`
	numberWords = `two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 ten 10 eleven 11 twelve 12 thirteen 13 fourteen 14
fifteen 15 sixteen 16 seventeen 17 eighteen 18 nineteen 19 twenty 20 thirty 30 forty 40 fifty 50 sixty 60 seventy 70 eighty 80
ninety 90 second 2 third 3 fourth 4 fifth 5 sixth 6 seventh 7 eighth 8 ninth 9 tenth 10 twice 2 thrice 3`
	// personWords speak of the speaker or to the listener: small talk, no claim about the world.
	personWords   = `i you my your me we yeah yes oh hi do`
	negationWords = `not no never none nobody nothing neither nor without cannot nowhere`
	// clauseWords begin a new part of a claim.
	clauseWords = `and which who but while where because`
)

// word is what the reader knows about a word.
type word struct {
	raw   uint32 // key of the word as it stands; 0: a free place in the table
	key   uint32 // what it is read as; 0: its stem
	flags tokenFlags
}

const wordBits = 11

// wordTable has the words that the reader treats apart, with open addressing.
type wordTable [1 << wordBits]word

//nolint:gochecknoglobals // made once from the constants above, never written afterwards
var knownWords = sync.OnceValue(func() *wordTable {
	t := new(wordTable)
	t.flag(stopWords, flagStop)
	t.flag(personWords, flagPerson)
	t.flag(negationWords, flagNegation)
	t.flag(clauseWords, flagClause)
	for list, number := range map[string]bool{sameWords: false, numberWords: true} {
		fields := strings.Fields(list)
		for i := 0; i < len(fields); i += 2 {
			w := t.at(hashString(fields[i]) &^ 1)
			if w.key = stemKey([]byte(fields[i+1])); number {
				w.key = hashString(fields[i+1]) | 1
				w.flags |= flagNumber
			}
		}
	}
	return t
})

func (t *wordTable) flag(list string, flag tokenFlags) {
	for field := range strings.FieldsSeq(list) {
		t.at(hashString(field) &^ 1).flags |= flag
	}
}

// at returns the place of a word, which is taken if it was free.
func (t *wordTable) at(raw uint32) *word {
	w := t.find(raw)
	w.raw = raw
	return w
}

// find returns the place of a word, or the free one where it would be.
func (t *wordTable) find(raw uint32) *word {
	i := raw * 0x9E3779B1 >> (32 - wordBits)
	for t[i].raw != raw && t[i].raw != 0 {
		i = (i + 1) % uint32(len(t))
	}
	return &t[i]
}
