package support

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// The limits of what is read around a statement to see whether it is denied there.
const (
	maxLead = 300 // bytes before it
	maxTail = 120 // and after it
	maxGoes = 8   // words after it among which the denial stands
)

var (
	deniedBefore  = lists["denied-before"]
	deniedAfter   = lists["denied-after"]
	reportedBy    = lists["reported-by"]    // words between a denial and what it denies
	notedBefore   = lists["noted-before"]   // a notice of what was said earlier
	demonstrative = lists["demonstrative"]  // with which a next sentence refers to it
	startOfTalk   = "\"'“”„‘‚«»「『（(:： \t\n" // before a statement that is quoted
)

// denial returns the words by which a text denies what it says between two offsets, or an empty span: "It is not true
// that …", "contrary to reports that …", "“…” is a myth", "an earlier version said: “…”". The denial governs the
// statement: a conjunction such as that, a colon or a quotation mark stands between them, or nothing does.
func denial(text string, at ibid.Span) ibid.Span {
	from := max(0, at.Start-maxLead)
	for from < at.Start && !utf8.RuneStart(text[from]) {
		from++
	}
	to := min(len(text), at.End+maxTail)
	for to > at.End && to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	lead, tail := readPhrases(text, from, at.Start), readPhrases(text, at.End, to)
	bare := strings.TrimRight(text[from:at.Start], startOfTalk)
	quoted := strings.ContainsAny(text[from+len(bare):at.Start], "\"“”„‘‚«»「『")
	colon := strings.ContainsAny(text[from+len(bare):at.Start], ":：")
	lead = lastSentence(lead)
	n := len(lead)
	if n > 0 {
		between := text[lead[n-1].span.End : from+len(bare)]
		if strings.ContainsAny(between, ".!?。！？") || strings.ContainsAny(between, ",;") && !quoted && !colon {
			n = 0 // another sentence or clause
		}
	}
	reported := n > 0 && reportedBy.has(lead[n-1].word)
	for i := range n {
		for _, list := range []wordList{deniedBefore, notedBefore} {
			k := phraseAt(lead[:n], i, list)
			if k == 0 || isDenied(lead[:i]) {
				continue
			}
			if i+k == n || reported || colon || quoted {
				return ibid.Span{Start: lead[i].span.Start, End: lead[i+k-1].span.End}
			}
		}
	}
	if !reported && !quoted && !colon {
		return ibid.Span{}
	}
	for i := range min(len(tail), maxGoes) {
		if tail[i].sentence > 0 && !demonstrative.has(firstOf(tail, tail[i].sentence)) {
			break
		}
		if k := phraseAt(tail, i, deniedAfter); k > 0 && !isDenied(tail[:i]) {
			return ibid.Span{Start: tail[i].span.Start, End: tail[i+k-1].span.End}
		}
	}
	return ibid.Span{}
}

// phraseWord is a word of a text around a statement.
type phraseWord struct {
	word     string
	span     ibid.Span
	sentence int
}

// readPhrases returns the words of a part of a text, folded.
func readPhrases(text string, from, to int) (all []phraseWord) {
	sentence := 0
	for at := from; at < to; {
		c, n := utf8.DecodeRuneInString(text[at:to])
		if !unicode.IsLetter(c) {
			if strings.ContainsRune(".!?。！？", c) {
				sentence++
			}
			at += n
			continue
		}
		end := at
		for end < to {
			c, n := utf8.DecodeRuneInString(text[end:to])
			if !unicode.IsLetter(c) && !unicode.IsMark(c) && c != '\'' && c != '’' {
				break
			}
			end += n
		}
		word := strings.ReplaceAll(foldWord(strings.ToLower(text[at:end])), "’", "'")
		if bare := strings.TrimRight(word, "'"); bare != word {
			end, word = end-(len(word)-len(bare)), bare
		}
		all = append(all, phraseWord{word, ibid.Span{Start: at, End: end}, sentence})
		at = max(end, at+n)
	}
	return all
}

// lastSentence returns the words of the last sentence, which the statement is part of or which introduces it.
func lastSentence(words []phraseWord) []phraseWord {
	if len(words) == 0 {
		return nil
	}
	last := words[len(words)-1].sentence
	i := slices.IndexFunc(words, func(w phraseWord) bool { return w.sentence == last })
	return words[i:]
}

func firstOf(words []phraseWord, sentence int) string {
	i := slices.IndexFunc(words, func(w phraseWord) bool { return w.sentence == sentence })
	return words[i].word
}

// maxPhraseWords is the length of the longest phrase of the lists.
const maxPhraseWords = 4

// phraseAt returns how many words the longest phrase of a list has that begins at an index, or 0.
func phraseAt(words []phraseWord, at int, list wordList) int {
	found, phrase := 0, ""
	for k := range min(maxPhraseWords, len(words)-at) {
		if k > 0 {
			phrase += " "
		}
		if phrase += words[at+k].word; list.has(phrase) {
			found = k + 1
		}
	}
	return found
}

// isDenied reports whether a negation stands among the last three words: "did not deny that".
func isDenied(words []phraseWord) bool {
	for _, w := range words[max(0, len(words)-3):] {
		if denyingBy.has(w.word) || strings.HasSuffix(w.word, "n't") {
			return true
		}
	}
	return false
}
