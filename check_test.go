package ibid

import (
	"math"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	nan := math.NaN()
	score := 0.5
	tests := []struct {
		name  string
		spoil func(*Answer)
		want  string // empty if the answer is valid
	}{
		{"nothing", func(*Answer) {}, ""},
		{"no parts", func(a *Answer) { a.Parts = nil }, ""},
		{"empty block", func(a *Answer) { a.Citations[4].Span = Span{35, 35} }, ""},
		{"text", func(a *Answer) { a.Text = a.Text[:len(a.Text)-1] + "\xff" }, "the text is not valid UTF-8"},
		{"finish", func(a *Answer) { a.Finish = "tired" }, `the finish "tired" is unknown`},
		{"part kind", func(a *Answer) { a.Parts[0].Kind = "aside" }, `part 0: the kind "aside" is unknown`},
		{"gap between parts", func(a *Answer) { a.Parts[1].Start = 12 }, "part 1 begins at byte 12, not at 11"},
		{"first part", func(a *Answer) { a.Parts[0].Start = 3 }, "part 0 begins at byte 3, not at 0"},
		{"parts too short", func(a *Answer) { a.Parts = a.Parts[:1] }, "the parts end at byte 11 of 36"},
		{"part beyond the text", func(a *Answer) { a.Parts[1].End = 99 }, "part 1: bytes 11 to 99: the text has 36 bytes"},
		{"part's place", func(a *Answer) { a.Parts[1].Message = -1 }, "part 1: message -1, content 2: negative"},
		{"source without id", func(a *Answer) { a.Sources[2].ID = "" }, "source 2 has no id"},
		{"source id twice", func(a *Answer) { a.Sources[2].ID = "w" }, `source 2: the id "w" is taken`},
		{"source kind", func(a *Answer) { a.Sources[0].Kind = "" }, `source "w": the kind "" is unknown`},
		{"score origin", func(a *Answer) { a.Sources[1].ScoreOrigin = "guess" }, `the score origin "guess" is unknown`},
		{"score without origin", func(a *Answer) { a.Sources[0].Score = &score }, `source "w" has a score or its origin without the other`},
		{"origin without score", func(a *Answer) { a.Sources[1].Score = nil }, `source "f" has a score or its origin without the other`},
		{"score", func(a *Answer) { a.Sources[1].Score = &nan }, `source "f": the score is not a number`},
		{"chunk's score", func(a *Answer) { a.Sources[1].Chunks[0].Score = &nan }, `source "f": the chunk's score is not a number`},
		{"citation without id", func(a *Answer) { a.Citations[2].ID = "" }, "citation 2 has no id"},
		{"citation id twice", func(a *Answer) { a.Citations[2].ID = "c-1" }, "citation 2 (c-1): the id is taken"},
		{"order by end", func(a *Answer) { a.Citations[0].Span = Span{22, 25} }, "citation 1 (c-2) comes after one that ends later"},
		{"order by start", func(a *Answer) { a.Citations[1].Span = Span{15, 21} }, "citation 2 (c-3) comes after one"},
		{"without a place first", func(a *Answer) { a.Citations[0].Span, a.Citations[0].Anchor = Span{}, AnchorNone }, "citation 1 (c-2) comes after one"},
		{"span without anchor", func(a *Answer) { a.Citations[5].Span = Span{0, 3} }, "citation 5 (c-6) has no place, but the span 0 to 3"},
		{"cut character", func(a *Answer) { a.Citations[0].Span = Span{8, 11} }, "citation 0 (c-1): bytes 8 to 11: not on a character boundary"},
		{"backwards", func(a *Answer) { a.Citations[0].Span = Span{11, 7} }, "citation 0 (c-1): bytes 11 to 7: the end is before the start"},
		{"claim", func(a *Answer) { a.Citations[0].Claim = Span{0, 99} }, "citation 0 (c-1): claim: bytes 0 to 99: the text has 36 bytes"},
		{"long point", func(a *Answer) { a.Citations[3].Span = Span{25, 26} }, "citation 3 (c-4) is a point of 1 bytes"},
		{"empty link", func(a *Answer) { a.Citations[0].Span = Span{7, 7} }, "citation 0 (c-1) is an empty link"},
		{"no refs", func(a *Answer) { a.Citations[0].Refs = nil }, "citation 0 (c-1) names no source"},
		{"no such source", func(a *Answer) { a.Citations[0].Refs[0].Source = "x" }, `citation 0 (c-1): there is no source "x"`},
		{"confidence", func(a *Answer) { a.Citations[1].Refs[0].Confidence = &nan }, "citation 1 (c-2): the confidence is not a number"},
		{"support", func(a *Answer) { a.Citations[1].Support.Score = &nan }, "citation 1 (c-2): the score of its support is not a number"},
		{"cover", func(a *Answer) { a.Citations[0].Covers = "" }, `citation 0 (c-1): the cover "" is unknown`},
		{"anchor", func(a *Answer) { a.Citations[0].Anchor = "loose" }, `citation 0 (c-1): the anchor "loose" is unknown`},
		{"origin", func(a *Answer) { a.Citations[0].Origin = "me" }, `citation 0 (c-1): the origin "me" is unknown`},
		{"alternative", func(a *Answer) { a.Alternatives[0].Finish = "x" }, `alternative 0: the finish "x" is unknown`},
		{"nil alternative", func(a *Answer) { a.Alternatives[0] = nil }, "alternative 0 is nil"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := fullAnswer()
			test.spoil(a)
			err := a.Check()
			if test.want == "" {
				if err != nil {
					t.Errorf("Check() = %v, want nil", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Check() = %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestCheckListsTenBreaches(t *testing.T) {
	a := &Answer{Sources: make([]Source, 100)}
	err := a.Check()
	if err == nil {
		t.Fatal("Check() = nil")
	}
	if lines := strings.Count(err.Error(), "\n") + 1; lines != maxBreaches {
		t.Errorf("%d lines, want %d:\n%v", lines, maxBreaches, err)
	}
}
