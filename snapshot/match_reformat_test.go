package snapshot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/snapshot"
)

// What changes a number, a word or a question is not set in another way: it is another text.
func TestFindReformatted(t *testing.T) {
	for _, test := range []struct {
		text, quote string
		want        bool
	}{
		{"winters of –5 °C are common", "winters of 5 °C are common", false},
		{"winters of ‑5 °C are common", "winters of 5 °C are common", false},
		{"winters of －5 °C are common", "winters of 5 °C are common", false},
		{"winters of –5 °C are common", "winters of -5 °C are common", true},
		{"over the year:-5 percent in all", "over the year: 5 percent in all", false},
		{"the interval is [-5, 3] for all", "the interval is [5, 3] for all", false},
		{"the loss was (5) million then", "the loss was 5 million then", false},
		{"the loss was (5) million then", "the loss – was (5) million, then", true},
		{"take 1-2 tablets of it daily", "take 1/2 tablets of it daily", false},
		{"take 1-2 tablets of it daily", "take 1–2 tablets of it daily", true},
		{"grew by 2–3 of the total", "grew by 2/3 of the total", false},
		{"the dose was 1·5 mg per day", "the dose was 1/5 mg per day", false},
		{"the dose was 1٫5 mg per day", "the dose was 1 5 mg per day", false},
		{"the 10−3 ratio of all", "the 10 3 ratio of all", false},
		{"a ratio of 2:3 for all", "a ratio of 2 3 for all", false},
		{"in the years 1874, 1889 and later", "in the years 1874; 1889 and later", true},
		{"the share is 5٪ of all", "the share is 5 of all", false},
		{"the man is 6′ tall or so", "the man is 6″ tall or so", false},
		{"the drug is not able to help", "the drug is notable to help", false},
		{"the drug is NOT ABLE to help", "the drug is NOTABLE to help", false},
		{"لا يمكن للدواء أن يساعد", "لايمكن للدواء أن يساعد", false},
		{"in the environ- ment of the town", "in the environment of the town", true},
		{"a well- known long-term study", "a well-known long-term study", true},
		{"they say — it is safe — so it is", "they say - it is safe—so it is", true},
		{"Home Iron tower The bridge", "HomeIron towerThe bridge", true},
		{"東京 タワーは高い、とても。", "東京タワーは高い とても", true},
		{"อาคาร สูงมาก และ เก่า", "อาคารสูงมากและเก่า", true},
		{"is the vaccine safe for all? No.", "is the vaccine safe for all. No", false},
		{"the vaccine is safe? Hardly anyone", "the vaccine – is safe.", false},
		{"the vaccine is safe. Hardly anyone", "the vaccine – is safe.", true},
	} {
		if m, ok := snapshot.Find(snapshot.Normalize(test.text), &snapshot.Quote{Exact: test.quote}); ok != test.want {
			t.Errorf("%q in %q: %+v, %v", test.quote, test.text, m, ok)
		}
	}
}

// A quote that begins or ends inside a number says something else, also where it stands in its place.
func TestFindCut(t *testing.T) {
	const text = "The trial cured 15 percent of all, –5 more (7) than 1/2 of the unable; it was 10.5 of them."
	for _, test := range []struct {
		quote string
		cut   bool
	}{
		{"15 percent of all", false},
		{"5 percent of all", true},
		{"5 more (7) than", true},
		{"7) than 1/2", true},
		{"2 of the unable", true},
		{"able; it was", true},
		{"it was 10", true},
		{"trial cured 1", true},
		{"it was 10.5", false},
		{"the un", false}, // quotes are cut to a length
	} {
		start := len([]rune(text[:strings.Index(text, test.quote)]))
		q := snapshot.Quote{Exact: test.quote, Start: start, End: start + len([]rune(test.quote))}
		m, ok := snapshot.Find(text, &q)
		if !ok || m.How != snapshot.MatchExact || m.Cut != test.cut || snapshot.IsCut(text, q.Start, q.End) != test.cut {
			t.Errorf("%q in place: %+v, %v", test.quote, m, ok)
		}
		q = snapshot.QuoteAt(text, q.Start, q.End)
		q.Start, q.End = 0, 0
		if m, ok := snapshot.Find(text, &q); !ok || m.Cut != test.cut {
			t.Errorf("%q by what stands around it: %+v, %v", test.quote, m, ok)
		}
		if m, ok := snapshot.Find(text, &snapshot.Quote{Exact: test.quote}); ok == test.cut {
			t.Errorf("%q anywhere: %+v, %v", test.quote, m, ok)
		}
	}
	if snapshot.IsCut(text, 5, 4) || snapshot.IsCut(text, 9000, 9001) {
		t.Error("a place that is none is cut")
	}
}

// Runs of points cost no more than other texts.
func TestFindPoints(t *testing.T) {
	start := time.Now()
	for _, run := range []string{".", ",", ".,", "-", "("} {
		snapshot.Find(strings.Repeat(run, 400_000), &snapshot.Quote{Exact: run})
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Of a copy without its octets nobody knows the text.
func TestTextsWithoutOctets(t *testing.T) {
	hash := snapshot.Hash([]byte("Some page."))
	texts := &snapshot.Texts{}
	if _, _, err := texts.Of(&snapshot.Snapshot{MediaType: "text/plain", Hash: hash}); err == nil {
		t.Error("the text of nothing was read")
	}
	text, _, err := texts.Of(&snapshot.Snapshot{MediaType: "text/plain", Hash: hash, Octets: []byte("Some page.")})
	if err != nil || text.Content != "Some page." {
		t.Errorf("%v, %v", text, err)
	}
}
