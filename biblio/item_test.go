package biblio

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestParseName(t *testing.T) {
	person := func(given, particle, family, suffix string) name {
		return name{given: given, particle: particle, family: family, suffix: suffix}
	}
	whole := func(s string) name { return name{whole: s} }
	for in, want := range map[string]name{
		"Ada Lovelace":              person("Ada", "", "Lovelace", ""),
		"Lovelace, Ada King":        person("Ada King", "", "Lovelace", ""),
		"Ludwig van Beethoven":      person("Ludwig", "van", "Beethoven", ""),
		"van Gogh, Vincent":         person("Vincent", "van", "Gogh", ""),
		"Ursula K. Le Guin":         person("Ursula K. Le", "", "Guin", ""),
		"Le Guin, Ursula K.":        person("Ursula K.", "", "Le Guin", ""),
		"Charles de la Vallée Oude": person("Charles", "de la", "Vallée Oude", ""),
		"José Ortega y Gasset":      person("José", "", "Ortega y Gasset", ""),
		"Jean d'Alembert":           person("Jean", "", "d'Alembert", ""),
		"Sinéad O’Connor":           person("Sinéad", "", "O’Connor", ""),
		"Martin King Jr.":           person("Martin", "", "King", "Jr."),
		"Martin King, Jr.":          person("Martin", "", "King", "Jr."),
		"King, Martin, Jr.":         person("Martin", "", "King", "Jr."),
		"King, Jr., Martin":         person("Martin", "", "King", "Jr."),
		"Петров И. И.":              person("И. И.", "", "Петров", ""),
		"Smith J.A.":                person("J.A.", "", "Smith", ""),
		"AJ Smith":                  person("AJ", "", "Smith", ""),
		"Smith, JA":                 person("JA", "", "Smith", ""),
		"Jean-Luc Picard":           person("Jean-Luc", "", "Picard", ""),

		"Google":                          whole("Google"),
		"World Health Organization":       whole("World Health Organization"),
		"ACME and Sons, Inc.":             whole("ACME and Sons, Inc."),
		"Ministry of Food":                whole("Ministry of Food"),
		"Reuters UK":                      whole("Reuters UK"),
		"Malcolm X":                       whole("Malcolm X"),
		"BBC News":                        whole("BBC News"),
		"Smith, J., Doe, A.":              whole("Smith, J., Doe, A."),
		"Jane Doe and John Roe":           whole("Jane Doe and John Roe"),
		"Jane Doe & John Roe":             whole("Jane Doe & John Roe"),
		"Ministry of Food, Agriculture":   whole("Ministry of Food, Agriculture"),
		"@handle":                         whole("@handle"),
		"User42 Name":                     whole("User42 Name"),
		"李明":                              whole("李明"),
		"村上 春樹":                           whole("村上 春樹"),
		"김, 민준":                           whole("김, 민준"),
		"محمد علي":                        whole("محمد علي"),
		"others":                          whole("others"),
		"van de":                          whole("van de"),
		",":                               whole(","),
		"Doe,":                            whole("Doe,"),
		"Jr., Jr.":                        whole("Jr., Jr."),
		"One Two Three Four Five Six Sev": whole("One Two Three Four Five Six Sev"),
	} {
		testenv.Equal(t, fmt.Sprintf("%q", in), want, parseName(in), cmp.AllowUnexported(name{}))
	}
}

func TestInitials(t *testing.T) {
	for in, want := range map[string]string{
		"Ada":           "A.",
		"Ada Mary":      "A. M.",
		"Jean-Paul":     "J.-P.",
		"J.-P.":         "J.-P.",
		"J.A.":          "J. A.",
		"JA":            "J. A.",
		"Jean Paul de":  "J. P.",
		"Élodie Ursula": "É. U.",
		"":              "",
	} {
		if got := initials(in); got != want {
			t.Errorf("initials(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseDate(t *testing.T) {
	for in, want := range map[string]string{
		"2024-03-05":                "2024-03-05",
		" 2024-03 ":                 "2024-03",
		"2024":                      "2024",
		"2024-03-05T23:59:00-11:00": "2024-03-05",
		"2024-03-05 10:00:00":       "2024-03-05",
		"2024-02-31":                "",
		"2024-13":                   "",
		"0000":                      "",
		"March 2024":                "",
		"3 days ago":                "",
		"":                          "",
	} {
		if got := parseDate(in).iso(); got != want {
			t.Errorf("parseDate(%q) = %q, want %q", in, got, want)
		}
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
	for in, want := range map[string]string{
		" https://a.example/b c\n":         "https://a.example/b%20c",
		"https://a.example/{x}\\^`|\"<>":   "https://a.example/%7Bx%7D%5C%5E%60%7C%22%3C%3E",
		"https://a.example/%7B?a=b&c#d~_$": "https://a.example/%7B?a=b&c#d~_$",
		"https://bücher.example/ü":         "https://bücher.example/ü",
		"https://a.example/\u202e\xff":     "https://a.example/%E2%80%AE%FF",
		"a.example/x:y":                    "a.example/x:y",
		"gs://bucket/a.pdf":                "gs://bucket/a.pdf",
		"javascript:alert(1)":              "",
		"java\nscript:alert(1)":            "",
		"data:text/html,x":                 "",
		"file:///etc/passwd":               "",
		"":                                 "",
	} {
		if got := cleanURL(in); got != want {
			t.Errorf("cleanURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDOI(t *testing.T) {
	for in, want := range map[string]string{
		"https://doi.org/10.1000/xyz_(1)":      "10.1000/xyz_(1)",
		"http://dx.doi.org/10.1000.10/a/b":     "10.1000.10/a/b",
		"https://doi.org/10.1000/a%20b":        "",
		"https://doi.org/10.1000/":             "",
		"https://doi.org/about":                "",
		"https://doi.example/10.1000/x":        "",
		"https://doi.org/10.1000/x?redirect=1": "",
	} {
		if got := doi(in); got != want {
			t.Errorf("doi(%q) = %q, want %q", in, got, want)
		}
	}
}
