package page

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// The words of a query are marked as the store finds them: in any case, without accents, of the last one the beginning.
func TestSpans(t *testing.T) {
	monday := time.Date(2026, 8, 31, 0, 0, 0, 0, time.UTC)
	each := func(step, n int) (days []store.CheckedDay) {
		for i := range n {
			days = append(days, store.CheckedDay{Day: monday.AddDate(0, 0, i*step), Passed: 1, Failed: 2})
		}
		return days
	}
	tests := []struct {
		name       string
		days       []store.CheckedDay
		want       string // the passed of each span
		weeks, cut bool
	}{
		{"nothing", nil, "", false, false},
		{"one day", each(1, 1), "1", false, false},
		{"days", each(1, 12), "1 1 1 1 1 1 1 1 1 1 1 1", false, false},
		{"days with gaps", each(3, 3), "1 0 0 1 0 0 1", false, false},
		{"weeks", each(1, 13), "7 6", true, false},
		{"weeks with gaps", each(20, 2), "1 0 1", true, false},
		{"the last weeks", each(1, 200), "7 7 7 7 7 7 7 7 7 7 7 4", true, true},
		{"years between", each(1000, 2), "0 0 0 0 0 0 0 0 0 0 0 1", true, true},
	}
	for _, test := range tests {
		spans, weeks, cut := spansOf(test.days)
		var got []string
		for i, s := range spans {
			got = append(got, fmt.Sprint(s.passed))
			if s.failed != 2*s.passed || weeks && s.from.Weekday() != time.Monday {
				t.Errorf("%s: %+v", test.name, s)
			}
			if i > 0 && !s.from.After(spans[i-1].from) {
				t.Errorf("%s: %v is not after %v", test.name, s.from, spans[i-1].from)
			}
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" || weeks != test.weeks || cut != test.cut {
			t.Errorf("%s: weeks %v, cut %v: %s", test.name, weeks, cut, diff)
		}
	}
}

// The chart says of which years its weeks are, and a week without a check has no share.
func TestVerifiedChart(t *testing.T) {
	day := func(month time.Month, day int) time.Time { return time.Date(2025, month, day, 0, 0, 0, 0, time.UTC) }
	c := verifiedChart([]store.CheckedDay{
		{Day: day(1, 1), Passed: 1}, {Day: day(12, 17), Passed: 299, Failed: 1}, {Day: day(12, 31), Failed: 1},
	})
	if !strings.Contains(c.Desc, "From 13 October 2025 to 4 January 2026. Earlier ones are not shown.") {
		t.Error(c.Desc)
	}
	got := c.Rows[len(c.Rows)-3:]
	want := [][]string{{"15 December 2025", "299", "0", "1", "over 99 %"}, {"22 December 2025", "0", "0", "0", "none was checked"}, {"29 December 2025", "0", "0", "1", "0 %"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What could not be looked at does not count against what could.
func TestVerifiedChartUnreachable(t *testing.T) {
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	c := verifiedChart([]store.CheckedDay{{Day: at, Passed: 3, Failed: 1, Unverifiable: 6}, {Day: at.AddDate(0, 0, 1), Unverifiable: 2}})
	want := [][]string{{"2 March 2026", "3", "6", "1", "75 %"}, {"3 March 2026", "0", "2", "0", "none could be looked at"}}
	if diff := cmp.Diff(want, c.Rows); diff != "" {
		t.Error(diff)
	}
}

// Only all is 100 %, and only nothing is 0 %.
func TestBadgesAgreeWithCounts(t *testing.T) {
	for status, want := range map[verify.Status]badge{
		verify.Verified:            {Kind: badgeFound, Word: "quote found"},
		verify.VerifiedFromArchive: {Kind: badgeFound, Word: "found in the archive"},
		verify.VerifiedHashOnly:    {Kind: badgeFound, Word: "unchanged"},
		verify.ExcerptReformatted:  {Kind: badgeFound, Word: "reformatted"},
		verify.ExcerptCut:          {Kind: badgeClose, Word: "cut"},
		verify.ExcerptAltered:      {Kind: badgeBad, Word: "changed"},
		verify.ExcerptMissing:      {Kind: badgeBad, Word: "missing"},
		verify.HashMismatch:        {Kind: badgeLost, Word: "changed, not compared"},
		verify.Gone:                {Kind: badgeLost, Word: "not reachable"},
		verify.NothingRecorded:     {Kind: badgeNone, Word: "not checked"},
	} {
		of := quoteBadge(&ibid.Verification{Status: string(status)})
		reported := sourceBadge(status)
		if of.Kind != want.Kind || of.Word != want.Word || of.Code != string(status) || of != reported {
			t.Errorf("%s: %+v, and in reports %+v", status, of, reported)
		}
	}
	if b := quoteBadge(&ibid.Verification{Status: "hash-mismatch"}); strings.Contains(b.Title, "does not have") {
		t.Errorf("nobody looked for words, and it says %q", b.Title)
	}
}

// What came of checking the chain is a sentence, whatever the number.
func TestChainWords(t *testing.T) {
	for _, test := range []struct {
		n      int
		broken bool
		want   string
	}{
		{0, false, "There are no incidents"},
		{1, false, "The only incident is in order"},
		{5, false, "All 5 incidents are in order"},
		{0, true, "The chain is broken: one of its first incidents was changed"},
		{1, true, "the first incident is in order, and one of those behind it was changed"},
		{5, true, "the first 5 incidents are in order, and one of those behind them was changed"},
	} {
		if got := chainWords(test.n, test.broken); !strings.Contains(got, test.want) {
			t.Errorf("%d %v: %s", test.n, test.broken, got)
		}
	}
}

// Columns are as high as their shares, and never invisible.
func TestDraw(t *testing.T) {
	bars := draw([]column{{parts: []int{1, 1}, kinds: []string{"a", "b"}}, {parts: []int{0}, kinds: []string{"a"}}, {parts: []int{1, 100000}, kinds: []string{"a", "b"}}}, 0)
	if p := bars[0].Parts; len(p) != 2 || p[0].Height != p[1].Height || p[0].Y != p[1].Y+p[1].Height {
		t.Errorf("halves: %+v", p)
	}
	if len(bars[1].Parts) != 0 || bars[2].Parts[0].Height < 1 {
		t.Errorf("%+v", bars)
	}
}

// A digest is good for a minute, and there is room for so many of them: the oldest goes.
func TestDigestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all digests
		all.keep("first", &digest{At: time.Now()})
		time.Sleep(digestFor - 1)
		good := func(tenant string) bool { _, good := all.get(tenant); return good }
		if !good("first") {
			t.Error("it is not good for a minute")
		}
		for i := range maxDigests {
			all.keep(fmt.Sprint(i), &digest{At: time.Now()})
		}
		if good("first") || len(all.kept) != maxDigests || !good("0") {
			t.Errorf("%d are kept", len(all.kept))
		}
		time.Sleep(digestFor)
		if good("0") {
			t.Error("it is good for longer than a minute")
		}
		all.setMaking("0", true)
		if !good("0") || good("unknown") {
			t.Error("it is not shown while the next is made")
		}
		all.setMaking("0", false)
		if good("0") {
			t.Error("it is good for longer than the next takes")
		}
	})
}

// A search has the answers first whose question has the words, then those whose sources are called so; others keep their order.
func TestRank(t *testing.T) {
	call := func(id, question, title, said string) *store.Call {
		return &store.Call{AnswerID: id, Prompt: []store.Message{{Role: "user", Text: question}}, Answer: &ibid.Answer{Text: said, Sources: []ibid.Source{{ID: "a", Title: title}}}}
	}
	calls := []*store.Call{
		call("text", "When?", "A page", "Herons and herons, herons and herons: herons."), call("later", "When?", "A page", "Herons, herons and herons."),
		call("title", "When?", "Herons of the valley", "In spring."), call("question", "How do HERONS nest?", "A page", "In trees."), call("both", "Do herons sleep?", "Herons", "Yes."),
	}
	rank(newFinder("heron"), calls)
	var got []string
	for _, c := range calls {
		got = append(got, c.AnswerID)
	}
	if diff := cmp.Diff([]string{"both", "question", "title", "text", "later"}, got); diff != "" {
		t.Error(diff)
	}
}
