package ibid

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ExampleAnswer_Cite() {
	a := &Answer{
		Text:    "The tower was built in 1889. It is open on Mondays.",
		Sources: []Source{{ID: "guide", Kind: File, Filename: "guide.pdf"}},
	}
	fmt.Println(a.Cite(Span{29, 51}, Ref{Source: "guide", Quote: "Closed on Tuesdays."}))
	fmt.Println(a.Cite(Span{0, 28}, Ref{Source: "guide", Locator: &Locator{Page: 2}}))
	fmt.Println(a.Cite(Span{0, 99}, Ref{Source: "guide"}))
	for _, c := range a.Citations {
		fmt.Println(a.Text[c.Span.Start:c.Span.End], c.Anchor, c.Origin)
	}
	// Output:
	// <nil>
	// <nil>
	// citing bytes 0 to 99: the text has 51 bytes
	// The tower was built in 1889. exact inferred
	// It is open on Mondays. exact inferred
}

func TestCite(t *testing.T) {
	a := &Answer{Text: "né 🎉 fin", Sources: []Source{{ID: "a", Kind: Web}, {ID: "b", Kind: Web}}}
	nan := math.NaN()
	for _, test := range []struct {
		span Span
		refs []Ref
		want string
	}{
		{Span{-1, 2}, []Ref{{Source: "a"}}, "the text has 12 bytes"},
		{Span{0, 13}, []Ref{{Source: "a"}}, "the text has 12 bytes"},
		{Span{13, 13}, []Ref{{Source: "a"}}, "the text has 12 bytes"},
		{Span{3, 1}, []Ref{{Source: "a"}}, "the end is before the start"},
		{Span{0, 2}, []Ref{{Source: "a"}}, "not on a character boundary"},
		{Span{5, 8}, []Ref{{Source: "a"}}, "not on a character boundary"},
		{Span{0, 3}, nil, "no source is given"},
		{Span{0, 3}, []Ref{{Source: "a"}, {Source: "c"}}, `the answer has no source "c"`},
		{Span{0, 3}, []Ref{{Source: "a", Confidence: &nan}}, "is not a number"},
	} {
		if err := a.Cite(test.span, test.refs...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Cite(%v) = %v, want an error with %q", test.span, err, test.want)
		}
	}
	if len(a.Citations) != 0 {
		t.Fatalf("an invalid citation was added: %v", a.Citations)
	}

	refs := []Ref{{Source: "b"}, {Source: "a", Quote: "1"}, {Source: "a", Quote: "2"}}
	for _, s := range []Span{{9, 12}, {4, 8}, {8, 8}, {0, 8}, {4, 8}, {0, 0}} {
		if err := a.Cite(s, refs...); err != nil {
			t.Fatal(err)
		}
	}
	if refs[0].Source != "b" {
		t.Error("the caller's refs were sorted")
	}
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	var got []string
	for _, c := range a.Citations {
		got = append(got, fmt.Sprintf("%v %s %s%s%s", c.Span, c.Covers, c.Refs[0].Source+c.Refs[0].Quote, c.Refs[1].Source+c.Refs[1].Quote, c.Refs[2].Source))
	}
	want := []string{
		"{0 0} point a1a2b", "{0 8} claim a1a2b", "{4 8} claim a1a2b", "{4 8} claim a1a2b", "{8 8} point a1a2b", "{9 12} claim a1a2b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if first, second := a.Citations[2].ID, a.Citations[3].ID; second != first+"-2" {
		t.Errorf("the ids of two equal citations are %s and %s", first, second)
	}
}

func TestCitationID(t *testing.T) {
	const text = "Tides follow the moon. Tides follow the moon."
	page, other := 2, 3
	base := func() *Citation {
		return &Citation{
			Span: Span{0, 22}, Claim: Span{0, 22}, Covers: CoversClaim, Anchor: AnchorExact,
			Refs: []Ref{{Source: "s", Quote: "q", Locator: &Locator{Page: page, Block: &page}}},
		}
	}
	keyOf := func(id string) string { return "key of " + id }
	id := func(change func(*Citation)) string {
		c := base()
		change(c)
		return citationID(text, c, keyOf)
	}
	want := id(func(*Citation) {})
	for name, change := range map[string]func(*Citation){
		"anchor":         func(c *Citation) { c.Anchor = AnchorMoved },
		"origin":         func(c *Citation) { c.Origin = OriginInferred },
		"support":        func(c *Citation) { c.Support = &Support{Label: "partial"} },
		"inferred claim": func(c *Citation) { c.Claim, c.ClaimInferred = Span{0, 45}, true },
	} {
		if got := id(change); got != want {
			t.Errorf("another %s changed the id from %s to %s", name, want, got)
		}
	}
	seen := map[string]string{want: "nothing"}
	for name, change := range map[string]func(*Citation){
		"place":   func(c *Citation) { c.Span, c.Claim = Span{23, 45}, Span{23, 45} },
		"cover":   func(c *Citation) { c.Covers = CoversBlock },
		"claim":   func(c *Citation) { c.Claim = Span{0, 45} },
		"source":  func(c *Citation) { c.Refs[0].Source = "t" },
		"quote":   func(c *Citation) { c.Refs[0].Quote = "r" },
		"page":    func(c *Citation) { c.Refs[0].Locator = &Locator{Page: other, Block: &page} },
		"block":   func(c *Citation) { c.Refs[0].Locator = &Locator{Page: page, Block: &other} },
		"refs":    func(c *Citation) { c.Refs = append(c.Refs, Ref{Source: "t"}) },
		"unplace": func(c *Citation) { c.Span, c.Claim, c.Anchor = Span{}, Span{}, AnchorNone },
	} {
		got := id(change)
		if former, taken := seen[got]; taken {
			t.Errorf("changing %s and %s gives the same id %s", name, former, got)
		}
		seen[got] = name
	}
	moved := base()
	if got := citationID(strings.Replace(text, "Tides", "Waves", 1), moved, keyOf); got == want {
		t.Error("other words have the same id")
	}
	for id := range seen {
		if len(id) != len("c-0123456789ab") || !strings.HasPrefix(id, "c-") {
			t.Errorf("id %q", id)
		}
	}
}

func TestOrder(t *testing.T) {
	a := &Answer{Text: "abcdefghij"}
	for _, id := range []string{"unused1", "z", "y", "x", "unused2"} {
		a.Sources = append(a.Sources, Source{ID: id, Kind: Web})
	}
	shared := []Ref{{Source: "y"}, {Source: "x"}, {Source: "z", Quote: "1"}, {Source: "z", Quote: "2"}}
	a.Citations = []Citation{
		{Anchor: AnchorNone, Refs: []Ref{{Source: "z"}}},
		{Anchor: AnchorExact, Span: Span{5, 9}, Refs: shared},
		{Anchor: AnchorExact, Span: Span{0, 9}, Refs: []Ref{{Source: "z"}, {Source: "ghost"}}},
		{Anchor: AnchorExact, Span: Span{0, 4}, Refs: []Ref{{Source: "x"}}},
	}
	order(a)
	var sources, cites []string
	for _, s := range a.Sources {
		sources = append(sources, s.ID)
	}
	for _, c := range a.Citations {
		line := fmt.Sprint(c.Span)
		for _, r := range c.Refs {
			line += " " + r.Source + r.Quote
		}
		cites = append(cites, line)
	}
	if diff := cmp.Diff([]string{"x", "z", "y", "unused1", "unused2"}, sources); diff != "" {
		t.Errorf("sources: %s", diff)
	}
	want := []string{"{0 4} x", "{0 9} z ghost", "{5 9} x z1 z2 y", "{0 0} z"}
	if diff := cmp.Diff(want, cites); diff != "" {
		t.Errorf("citations: %s", diff)
	}
	if shared[0].Source != "y" {
		t.Error("shared refs were sorted in place")
	}
}

func TestOrderIsIdempotent(t *testing.T) {
	for seed := range uint64(500) {
		a := randomAnswer("abcdefgh", rand.New(rand.NewPCG(seed, 9)))
		sources, citations := slices.Clone(a.Sources), slices.Clone(a.Citations)
		order(a)
		if diff := cmp.Diff(sources, a.Sources); diff != "" {
			t.Fatalf("seed %d: sources: %s", seed, diff)
		}
		if diff := cmp.Diff(citations, a.Citations); diff != "" {
			t.Fatalf("seed %d: citations: %s", seed, diff)
		}
	}
}
