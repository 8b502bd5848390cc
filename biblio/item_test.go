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
	for _, test := range []struct {
		source ibid.Source
		class  class
		genre  string
	}{
		{ibid.Source{Kind: ibid.Web, URL: "https://a.example/report.PDF?x=1"}, document, ""},
		{ibid.Source{Kind: ibid.Web, URL: "https://a.example/d.csv#row"}, dataset, ""},
		{ibid.Source{Kind: ibid.Web, URL: "https://a.example/", Title: "How to read data.csv"}, webpage, ""},
		{ibid.Source{Kind: ibid.Web}, webpage, ""},
		{ibid.Source{}, webpage, ""},
		{ibid.Source{Kind: ibid.File}, document, ""},
		{ibid.Source{Kind: ibid.File, Title: "Q3 sales.xlsx"}, dataset, ""},
		{ibid.Source{Kind: ibid.File, Filename: "a.pdf", Title: "About data.csv"}, document, ""},
		{ibid.Source{Kind: ibid.DocumentKind, Title: "rates.parquet"}, dataset, ""},
		{ibid.Source{Kind: ibid.DocumentKind, Title: "Ways to read data.csv"}, document, "Unpublished document"},
		{ibid.Source{Kind: ibid.DocumentKind, URL: "https://a.example/"}, webpage, ""},
		{ibid.Source{Kind: ibid.Tool, Title: "result.json"}, document, "Tool output"},
		{ibid.Source{Kind: ibid.Tool, URL: "https://a.example/"}, webpage, ""},
		{ibid.Source{Kind: ibid.Map}, document, "Map"},
		{ibid.Source{Kind: ibid.Map, URL: "https://maps.example/?cid=1"}, webpage, ""},
		{ibid.Source{Kind: ibid.Image}, document, "Image"},
		{ibid.Source{Kind: "other"}, document, "Unpublished document"},
	} {
		class, genre := classify(&test.source, cleanURL(test.source.URL))
		if class != test.class || genre != test.genre {
			t.Errorf("%+v: class %d, genre %q; want %d, %q", test.source, class, genre, test.class, test.genre)
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
	for _, test := range []struct {
		source ibid.Source
		want   string
	}{
		{ibid.Source{Authors: []string{"Jürgen Müller-Ørsted"}, Title: "Über die Straße", PublishedAt: "2020-01"}, "mullerorsted2020uber"},
		{ibid.Source{Authors: []string{"Ada van der Berg"}, Title: "What is 5G?"}, "vanderbergndwhat"},
		{ibid.Source{Authors: []string{"World Health Organization of the Nations"}, Title: "With What About Salt"}, "worldhealthorganizationndsalt"},
		{ibid.Source{Authors: []string{"Nguyễn Văn Đức"}, Title: "Phở"}, "ducndpho"},
		{ibid.Source{Site: "en.wikipedia.org", Title: "Cat"}, "wikipediandcat"},
		{ibid.Source{URL: "https://www.news.example.co.uk/x", Title: "don't panic"}, "examplenddont"},
		{ibid.Source{URL: "http://127.0.0.1/x"}, "127001nd"},
		{ibid.Source{Authors: []string{"李明"}, Site: "人民网", URL: "https://people.example/1", Title: "你好"}, "peoplend"},
		{ibid.Source{Authors: []string{"李明"}, Title: "你好"}, "source592647nd"},
		{ibid.Source{Authors: []string{"Donaudampfschifffahrtsgesellschaft"}, Title: "Antidisestablishmentarianism"}, "donaudampfschifffahrtsgendantidisestablish"},
		{ibid.Source{}, "source01ba47nd"},
	} {
		it := newItem(&Entry{Source: test.source})
		if got := it.baseKey(); got != test.want {
			t.Errorf("key of %+v: %s, want %s", test.source, got, test.want)
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
