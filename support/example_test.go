package support_test

import (
	"context"
	"fmt"

	"github.com/ibidhq/ibid/support"
)

// The default checker needs no model, and reports the evidence and the values that differ.
func ExampleLexical() {
	guide := support.Passage{Text: "The bridge was opened in 1932. It is 503 metres long and carries eight lanes of traffic."}
	pairs := []support.Pair{
		{Claim: "It is 503 metres long.", Passages: []support.Passage{guide}},
		{Claim: "The bridge was opened in 1933.", Passages: []support.Passage{guide}},
		{Claim: "Penguins breed on the island in winter.", Passages: []support.Passage{guide}},
	}
	verdicts, err := (&support.Lexical{}).Check(context.Background(), pairs)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, v := range verdicts {
		fmt.Printf("%s: %s, %s\n", pairs[i].Claim, v.Label, v.Word())
		for _, c := range v.Differences {
			fmt.Println(" ", c.Note)
		}
	}
	e := verdicts[0].Evidence[0]
	fmt.Println(guide.Text[e.Start:e.End])
	// Output:
	// It is 503 metres long.: supported, supported-verbatim
	// The bridge was opened in 1933.: differs, differs
	//   date: 1933, 1932
	// Penguins breed on the island in winter.: unjudged, unjudged
	// It is 503 metres long and carries eight lanes of traffic.
}

// synonyms is a checker that knows one synonym that [support.Lexical] does not. It has no scores.
type synonyms struct{}

func (synonyms) Info() support.Info { return support.Info{ID: "synonyms", Version: "1"} }

func (synonyms) Check(_ context.Context, in []support.Pair) ([]support.Verdict, error) {
	verdicts := make([]support.Verdict, len(in))
	for i := range in {
		verdicts[i] = support.Verdict{Label: support.Unjudged, By: "synonyms@1"}
		if in[i].Claim == "Doctors advise against it." {
			verdicts[i].Label = support.Supported
		}
	}
	return verdicts, nil
}

// A judge is asked only about claims that are not verbatim.
func ExampleWithJudge() {
	leaflet := []support.Passage{{Text: "Physicians recommend that nobody does it. It was first sold in 1998."}}
	checker := support.WithJudge(synonyms{})
	verdicts, err := checker.Check(context.Background(), []support.Pair{
		{Claim: "It was first sold in 1998.", Passages: leaflet},
		{Claim: "Doctors advise against it.", Passages: leaflet},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range verdicts {
		fmt.Println(v.Label, v.By, v.Escalated)
	}
	// Output:
	// supported lexical@2 false
	// supported synonyms@1 true
}

// A difference between two sources is a reason to look, not a contradiction.
func ExampleConflicts() {
	conflicts, issues, err := support.Conflicts(context.Background(), []support.Passage{
		{Text: "The Verrin Bridge is 503 metres long. It was opened in March 1932."},
		{Text: "Opened in March 1932, the Verrin Bridge is 530 m long."},
		{Text: "The Verrin Bridge is 0.503 km long."},
	}, nil)
	if err != nil {
		fmt.Println(err)
	}
	for _, c := range conflicts {
		fmt.Printf("%d and %d: %s\n", c.A.Passage, c.B.Passage, c.Note)
	}
	fmt.Println(len(issues))
	// Output:
	// 0 and 1: possible conflict: number: 503 metres, 530 m
	// 1 and 2: possible conflict: number: 530 m, 0.503 km
	// 0
}

// Numbers are in the base unit of their kind, here metres and dollars.
func ExampleValues() {
	text := "About 1.5 km of rail were laid by 26 June 1980 for $2 million."
	for _, v := range support.Values(text) {
		written := text[v.Span.Start:v.Span.End]
		switch v.Kind {
		case support.ValueNumber:
			fmt.Printf("%s: %g %s %s, approximate %t\n", written, v.Number, v.Unit.Kind, v.Unit.Name, v.Approximate)
		case support.ValueDate:
			fmt.Printf("%s: %d-%02d-%02d\n", written, v.Date.Year, v.Date.Month, v.Date.Day)
		default:
			fmt.Printf("%s: %s\n", written, v.Kind)
		}
	}
	// Output:
	// 1.5 km: 1500 length km, approximate true
	// 26 June 1980: 1980-06-26
	// $2 million: 2e+06 money USD, approximate false
}
