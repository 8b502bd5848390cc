package ibid_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// A truncated response yields a part of the whole answer and nothing else: no truncated URL, name or id, no citation
// that the whole answer lacks, no text but a prefix of the text.
func TestBreaksOff(t *testing.T) {
	t.Run("vectors", func(t *testing.T) {
		for _, file := range vectorFiles(t) {
			v := readVector(t, file)
			if v.options.decode.Limits.Document > 0 {
				continue // a document over the limit may be below it when truncated
			}
			for i, input := range append(v.streams, v.body) {
				t.Run(fmt.Sprintf("%s/%d", file, i), func(t *testing.T) {
					t.Parallel()
					checkBreaksOff(t, input, &v.options.decode, max(1, len(input)/300))
				})
			}
		}
	})
	t.Run("recordings", func(t *testing.T) {
		for _, r := range readRecordings(t) {
			t.Run(r.path, func(t *testing.T) {
				t.Parallel()
				checkBreaksOff(t, r.body, &ibid.DecodeOptions{Request: r.request}, max(1, len(r.body)/60))
			})
		}
	})
}

// checkBreaksOff truncates an input about every step bytes.
func checkBreaksOff(t *testing.T, input []byte, opts *ibid.DecodeOptions, step int) {
	t.Helper()
	whole, _ := ibid.Decode(input, opts)
	facts := answerFacts(whole)
	plain := bytes.Contains(input, []byte(`"`+whole.ID+`"`)) // not base64
	turns := len(whole.Parts) > 0 && whole.Parts[len(whole.Parts)-1].Message > 0
	corrected := slices.ContainsFunc(whole.Issues, func(is ibid.Issue) bool { return is.Code == "text-corrected" })
	for at := step / 2; at < len(input); at += step + at%7 {
		a, _ := ibid.Decode(input[:at], opts)
		if a.Format == ibid.Generic {
			continue // the bytes are the text
		}
		if !beginsAnswer(whole, a.Text) && !corrected && !isRevoked(input, at) {
			t.Errorf("truncated at %d: text %q is not a prefix of %q", at, a.Text, whole.Text)
		}
		for _, name := range []string{a.ID, a.Model} { // perhaps the last of several
			named := []byte(`"` + name + `"`)
			if plain && name != "" && !bytes.Contains(input, named) && !bytes.Contains(opts.Request, named) {
				t.Errorf("truncated at %d: %q is not an id or model of the response or its request", at, name)
			}
		}
		for _, fact := range answerFacts(a) {
			if _, known := slices.BinarySearch(facts, fact); !known && (!strings.HasPrefix(fact, "finish ") || !turns) {
				t.Errorf("truncated at %d: %s; it ends in %q", at, fact, input[max(0, at-60):at])
			}
		}
		if t.Failed() {
			return
		}
	}
}

// beginsAnswer reports whether text is a prefix of an answer or of an alternative, which may have come first.
func beginsAnswer(whole *ibid.Answer, text string) bool {
	return strings.HasPrefix(whole.Text, text) ||
		slices.ContainsFunc(whole.Alternatives, func(a *ibid.Answer) bool { return strings.HasPrefix(a.Text, text) })
}

// isRevoked reports whether the input states only after an offset that the first text was not the answer's.
func isRevoked(input []byte, at int) bool {
	thought := []byte(`"thought"`)
	return bytes.Index(input, thought)+len(thought) > at || bytes.Contains(input, []byte(`"summaryWithMetadata"`))
}

// answerFacts returns the contents of an answer besides its text, sorted.
func answerFacts(a *ibid.Answer) []string {
	facts := []string{"finish ", `source names ""`, `source says ""`}
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	add("finish %s", a.Finish)
	for _, other := range a.Alternatives {
		facts = append(facts, answerFacts(other)...)
	}
	for i := range a.Sources {
		s := &a.Sources[i]
		for _, name := range []string{s.URL, s.OriginalURL, s.Title, s.GlobalID, s.Filename, s.PublishedAt, s.License} {
			add("source names %q", name)
		}
		for _, c := range s.Chunks {
			add("source says %q", c.Content)
		}
	}
	for _, c := range a.Citations {
		for _, r := range c.Refs {
			s := a.Source(r.Source)
			locator, _ := json.Marshal(r.Locator)
			for _, name := range []string{s.URL, s.Title} {
				if name != "" { // else it is described later in the input
					add("citation of %q quotes %q at %s", name, r.Quote, locator)
				}
			}
		}
	}
	slices.Sort(facts)
	return facts
}

// Wherever a stream with several lists of grounding metadata is truncated, the citations of complete lists are kept.
func TestCutKeepsGrounding(t *testing.T) {
	for _, name := range []string{"lists-with-supports", "lists-that-grow", "other-list-without-supports"} {
		v := readVector(t, "testdata/gemini-generate/"+name+".txtar")
		input := slices.Concat(append(v.streams, v.body)...)
		first := bytes.Index(input, []byte("groundingChunkIndices"))
		first += bytes.Index(input[first:], []byte("candidates")) // the second document
		for at := first; at < len(input); at++ {
			a, _ := ibid.Decode(input[:at], nil)
			kept := slices.ContainsFunc(a.Citations, func(c ibid.Citation) bool {
				return c.Span.Start == 0 && c.Anchor == ibid.AnchorExact && a.Source(c.Refs[0].Source).URL == "https://a.example/"
			})
			if !kept {
				t.Fatalf("%s, truncated at %d: the first citation is lost; it ends in %q", name, at, input[max(0, at-60):at])
			}
		}
	}
}
