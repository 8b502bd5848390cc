package page

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// Days are summed up by weeks unless they are few, without gaps.
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
		want       string // the passed counts of the spans
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

// The chart states the years of its weeks, and a week without a check has no share.
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

// Citations that could not be checked do not count against the others.
func TestVerifiedChartUnreachable(t *testing.T) {
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	c := verifiedChart([]store.CheckedDay{{Day: at, Passed: 3, Failed: 1, Unverifiable: 6}, {Day: at.AddDate(0, 0, 1), Unverifiable: 2}})
	want := [][]string{{"2 March 2026", "3", "6", "1", "75 %"}, {"3 March 2026", "0", "2", "0", "none could be checked"}}
	if diff := cmp.Diff(want, c.Rows); diff != "" {
		t.Error(diff)
	}
}

// Badges agree with how verify counts a status.
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
		t.Errorf("no words were looked for, but it says %q", b.Title)
	}
}

// A report states its result in a sentence: failures before doubts, and doubts before what was not read.
func TestVerdictOfReport(t *testing.T) {
	claim := func(finding support.Label, statuses ...verify.Status) verify.ClaimReport {
		c := verify.ClaimReport{Finding: finding, Status: verify.Status(finding)}
		for _, s := range statuses {
			c.Sources = append(c.Sources, verify.SourceReport{Result: verify.SourceResult{Status: s}})
		}
		return c
	}
	const good, doubt, none = support.Supported, support.Differs, support.Unjudged
	const found, altered, missing, gone = verify.Verified, verify.ExcerptAltered, verify.ExcerptMissing, verify.Gone
	for _, test := range []struct {
		state      verify.State
		claims     []verify.ClaimReport
		kind, want string
	}{
		{verify.Valid, nil, badgeNone, "There is no quote to check"},
		{verify.Pending, nil, badgeLost, "The answer is not published yet"},
		{verify.Trusted, []verify.ClaimReport{claim(good, found)}, badgeGood, "The quote is still in its source, and supports the sentence"},
		{verify.Valid, []verify.ClaimReport{claim(good, found), claim(none, found)}, badgeFound, "All 2 quotes are still in their sources"},
		{verify.Valid, []verify.ClaimReport{claim(doubt, found, found)}, badgeClose, "All 2 quotes are still in their sources; 1 sentence differs"},
		{verify.Unverifiable, []verify.ClaimReport{claim(good, found, gone)}, badgeLost, "1 of 2 quotes could not be checked"},
		{verify.Unverifiable, []verify.ClaimReport{claim(good, found)}, badgeLost, "The quote is still in its source; something else could not be checked"},
		{verify.Valid, []verify.ClaimReport{claim(none, verify.VerifiedHashOnly)}, badgeFound, "1 source is unchanged"},
		{verify.Valid, []verify.ClaimReport{claim(good, found), claim(none, verify.VerifiedHashOnly)}, badgeFound, "The quote is still in its source"},
		{verify.Invalid, []verify.ClaimReport{claim(none, altered)}, badgeBad, "The quote has changed"},
		{verify.Invalid, []verify.ClaimReport{claim(none, missing), claim(good, found), claim(doubt, missing)}, badgeBad, "2 of 3 quotes are missing from their sources; 1 sentence differs"},
		{verify.Invalid, []verify.ClaimReport{claim(none, missing, altered)}, badgeBad, "All 2 quotes are not in their sources"},
		{verify.Invalid, []verify.ClaimReport{claim(good, found)}, badgeBad, "What was published is about another answer"},
	} {
		r := &verify.Report{State: test.state, Claims: test.claims}
		for i := range r.Claims {
			switch r.Claims[i].Finding {
			case good:
				r.Findings.Claims.Supported++
			case doubt:
				r.Findings.Claims.Differs++
			}
		}
		if test.state == verify.Invalid {
			r.Failure = []verify.Finding{{Code: verify.OutputMismatch}}
		}
		if b := (&reportView{Report: r}).Verdict(); b.Kind != test.kind || b.Word != test.want {
			t.Errorf("%s %q, want %s %q", b.Kind, b.Word, test.kind, test.want)
		}
	}
}

// The reason why an address could not be read is shown without the underlying error: which resolver is used here must
// not leak.
func TestUnreadable(t *testing.T) {
	beneath := errors.New("lookup nobody.example on 10.9.9.9:53: no such host")
	for want, e := range map[string]*snapshot.FetchError{
		"No such host: nobody.example.":             {URL: "https://nobody.example/x", Kind: snapshot.Unreachable, Reason: "dns", Err: beneath},
		"There is no answer at this address (404).": {Kind: snapshot.Gone, Status: 404},
		"This address is not public (401).":         {Kind: snapshot.AccessDenied, Status: 401},
		"Its server does not accept connections.":   {Kind: snapshot.Unreachable, Reason: "connect", Err: beneath},
		"The response is too large for an answer.":  {Kind: snapshot.TooLarge, Reason: "sent"},
	} {
		if got := unreadableWords(&verify.Report{Unread: e}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The result of checking the chain is a sentence, whatever the number.
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
		{1, true, "the first incident is in order, and a later one was changed"},
		{5, true, "the first 5 incidents are in order, and a later one was changed"},
	} {
		if got := chainWords(test.n, test.broken); !strings.Contains(got, test.want) {
			t.Errorf("%d %v: %s", test.n, test.broken, got)
		}
	}
}

// Columns are proportional to their counts, and never invisible.
func TestDraw(t *testing.T) {
	bars := draw([]column{{parts: []int{1, 1}, kinds: []string{"a", "b"}}, {parts: []int{0}, kinds: []string{"a"}}, {parts: []int{1, 100000}, kinds: []string{"a", "b"}}}, 0)
	if p := bars[0].Parts; len(p) != 2 || p[0].Height != p[1].Height || p[0].Y != p[1].Y+p[1].Height {
		t.Errorf("halves: %+v", p)
	}
	if len(bars[1].Parts) != 0 || bars[2].Parts[0].Height < 1 {
		t.Errorf("%+v", bars)
	}
}

// A digest is valid for a minute, and their number is limited: the oldest is dropped.
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

// A search lists first the answers whose question has the words, then those whose sources' titles do; others keep their
// order.
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
