package biblio

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestParseName(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/names.txt", 1) {
		want := name{whole: row[0]}
		if len(row) > 1 {
			want = name{given: row[1], particle: row[2], family: row[3], suffix: row[4]}
		}
		testenv.Equal(t, row[0], want, parseName(row[0]), cmp.AllowUnexported(name{}))
	}
}

func TestInitials(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/initials.txt", 2) {
		testenv.Equal(t, row[0], row[1], initials(row[0]))
	}
}

func TestParseDate(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/dates.txt", 2) {
		testenv.Equal(t, row[0], row[1], parseDate(row[0]).iso())
	}
	far := time.FixedZone("far", 14*60*60)
	if got, want := dateOf(time.Date(2025, 1, 2, 1, 0, 0, 0, far)).iso(), "2025-01-02"; got != want {
		t.Errorf("a day is its own location's: %s, want %s", got, want)
	}
	if got := dateOf(time.Date(12025, 1, 2, 1, 0, 0, 0, time.UTC)).iso(); got != "" {
		t.Errorf("a day beyond ISO 8601: %s", got)
	}
}

func TestClassify(t *testing.T) {
	classes := map[string]class{"webpage": webpage, "document": document, "dataset": dataset}
	for _, test := range testenv.Table[struct {
		Source       ibid.Source
		Class, Genre string
	}](t, "testdata/classes.txt") {
		class, genre := classify(&test.Source, cleanURL(test.Source.URL))
		if class != classes[test.Class] || genre != test.Genre {
			t.Errorf("%+v: class %d, genre %q; want %s, %q", test.Source, class, genre, test.Class, test.Genre)
		}
	}
}

func TestPageRange(t *testing.T) {
	at := func(page int, pages ...int) ibid.Chunk {
		return ibid.Chunk{Locator: &ibid.Locator{Page: page, Pages: pages}}
	}
	for _, test := range []struct {
		about  string
		chunks []ibid.Chunk
		want   []int
	}{
		{"none", []ibid.Chunk{{}}, nil},
		{"one", []ibid.Chunk{at(0, 3, 7), {}}, []int{3, 7}},
		{"the same twice", []ibid.Chunk{at(3, 3, 7), at(0, 3, 7)}, []int{3, 7}},
		{"two", []ibid.Chunk{at(0, 3, 7), at(0, 8, 9)}, nil},
		{"a range and a page", []ibid.Chunk{at(0, 3, 7), at(5)}, nil},
		{"one page", []ibid.Chunk{at(0, 3, 3)}, nil},
		{"backwards", []ibid.Chunk{at(0, 7, 3)}, nil},
	} {
		testenv.Equal(t, test.about, test.want, pageRange(test.chunks))
	}
}

func TestKeys(t *testing.T) {
	for _, test := range testenv.Table[struct {
		Source ibid.Source
		Want   string
	}](t, "testdata/keys.txt") {
		it := newItem(&Entry{Source: test.Source})
		if got := it.baseKey(); got != test.Want {
			t.Errorf("key of %+v: %s, want %s", test.Source, got, test.Want)
		}
	}

	taken := map[string]bool{"ka": true}
	var got []string
	for range 30 {
		got = append(got, uniqueKey("k", taken))
	}
	want := []string{
		"k", "kb", "kc", "kd", "ke", "kf", "kg", "kh", "ki", "kj", "kk", "kl", "km", "kn", "ko", "kp", "kq", "kr", "ks", "kt", "ku", "kv",
		"kw", "kx", "ky", "kz", "kaa", "kab", "kac", "kad",
	}
	testenv.Equal(t, "unique keys", want, got)
}

func TestCleanURL(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/urls.txt", 2) {
		testenv.Equal(t, row[0], row[1], cleanURL(row[0]))
	}
}

func TestDOI(t *testing.T) {
	for _, row := range testenv.Cases(t, "testdata/dois.txt", 2) {
		testenv.Equal(t, row[0], row[1], doi(row[0]))
	}
}
