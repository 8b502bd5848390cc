package support

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// shownValues renders the values of a kind as "text=value".
func shownValues(text string, kind ValueKind) []string {
	var out []string
	for _, v := range Values(text) {
		if v.Kind != kind {
			continue
		}
		s := text[v.Span.Start:v.Span.End] + "="
		switch kind {
		case ValueNumber:
			s += fmt.Sprintf("%.6g", v.Number)
			if v.High != v.Number {
				s += fmt.Sprintf("..%.6g", v.High)
			}
			if v.Unit != (Unit{}) {
				s += " " + strings.TrimSpace(string(v.Unit.Kind)+" "+v.Unit.Name)
			}
			if v.Approximate {
				s += " about"
			}
			s += map[int]string{1: " or more", -1: " or less"}[v.Bound]
		case ValueDate:
			s += fmt.Sprintf("%d-%d-%d", v.Date.Year, v.Date.Month, v.Date.Day)
			if v.Date.LastYear != v.Date.Year {
				s += fmt.Sprintf("..%d", v.Date.LastYear)
			}
			if v.Date.Swappable {
				s += " swappable"
			}
		case ValueNegation:
			s += text[v.Scope.Start:v.Scope.End]
		default:
			s += strings.Join(v.Words, " ")
		}
		out = append(out, s)
	}
	return out
}

func TestValueNumbers(t *testing.T) {
	for text, want := range map[string][]string{
		"The tower is 330 m tall and weighs 10,100 tonnes.":      {"330 m=330 length m", "10,100 tonnes=1.01e+07 mass tonnes"},
		"It cost about $1.2 million (€900k).":                    {"$1.2 million=1.2e+06 money USD about", "€900k=900000 money EUR"},
		"US$5bn, 7 euros and 1.234,5 Euro":                       {"US$5bn=5e+09 money USD", "7 euros=7 money EUR", "1.234,5 Euro=1234.5 money EUR"},
		"twenty-one goals, two hundred and five thousand fans":   {"twenty-one goals=21 count goal", "two hundred and five thousand fans=205000 count fan"},
		"two million three hundred thousand people":              {"two million three hundred thousand people=2.3e+06 count people"},
		"nearly half, 48%, 48 per cent and 0.48":                 {"half=0.5 about", "48%=0.48 percent %", "48 per cent=0.48 percent %", "0.48=0.48"},
		"up by 3.5 percentage points":                            {"3.5 percentage points=0.035 points points"},
		"between 5 and 10 km/h, 5-10 miles per hour":             {"5 and 10 km/h=1.38889..2.77778 speed km/h", "5-10 miles per hour=2.2352..4.4704 speed miles/hour"},
		"−40 °C is -40 °F":                                       {"−40 °C=233.15 temperature c", "-40 °F=233.15 temperature f"},
		"40 square kilometres, 3 km², 2 cubic metres":            {"40 square kilometres=4e+07 area square kilometres", "3 km²=3e+06 area square km", "2 cubic metres=2 volume cubic metres"},
		"120 kWh, 5 MW, 5 mW, 16 GB":                             {"120 kWh=4.32e+08 energy kwh", "5 MW=5e+06 power mw", "5 mW=0.005 power mw", "16 GB=1.6e+10 data gb"},
		"more than 300 people, at least 5 dogs, under 7 cats":    {"300 people=300 count people or more", "5 dogs=5 count dog or more", "7 cats=7 count cat or less"},
		"2½ hours, 3/4 of voters, two thirds, a quarter":         {"2½ hours=9000 time hours", "3/4=0.75", "Two thirds=0.666667"},
		"the 21st place, his second goal":                        {"21st=21 ordinal", "second=2 ordinal"},
		"from 5 to 10 million dollars":                           {"5 to 10 million dollars=5e+06..1e+07 money USD"},
		"13 professional football seasons":                       {"13 professional football seasons=13 count season"},
		"at 10:30 sharp":                                         {"10:30=10.5 clock"},
		"COVID-19, B12, version 1.2.3, [4], no one, one of them": {"1.2.3=1.2 version"},
		"9 p.m., 9:30 am, 09:00, 12 AM and 12:15 P.M.":           {"9 p.m.=21 clock", "9:30 am=9.5 clock", "09:00=9 clock", "12 AM=0 clock", "12:15 P.M.=12.25 clock"},
		"v3.2 of release 2.10 and a V8 engine of 5 W. It is":     {"3.2=3.2 version", "2.10=2.1 version", "5 W=5 power w"},
		"標高は3,776メートル、面積２，１９４平方キロメートル、約1億2000万人。":          {"3,776メートル=3776 length メートル", "２，１９４平方キロメートル=2.194e+09 area 平方キロメートル", "1億2000万人=1.2e+08 count people"},
		"长600米，造价1.5亿元，重39000吨，有3条":                        {"600米=600 length 米", "1.5亿元=1.5e+08 money CNY", "39000吨=3.9e+07 mass 吨", "3条=3 count 条"},
		"약600미터, １４００ ft, ١٢٣٤":                            {"600미터=600 count 미터", "１４００ ft=426.72 length ft", "١٢٣٤=1234"},
		"3 776 m, 3\u00a0776 m and 12 34, 1999 300, 0 500": {"3 776 m=3776 length m", "3\u00a0776 m=3776 length m", "12=12", "34=34", "300=300", "0=0", "500=500"},
		"1\u202f234\u202f567 Einwohner":                    {"1\u202f234\u202f567=1.23457e+06"},
	} {
		got := shownValues(text, ValueNumber)
		if strings.Contains(text, "two thirds, a quarter") {
			want = []string{"2½ hours=9000 time hours", "3/4=0.75", "two thirds=0.666667", "a quarter=0.25"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestValueDates(t *testing.T) {
	for text, want := range map[string][]string{
		"born June 26, 1980; 26 June 1980; the 26th of June 1980":      {"June 26, 1980=1980-6-26", "26 June 1980=1980-6-26", "26th of June 1980=1980-6-26"},
		"on 2020-05-12 and 12/05/2020 and 13.05.2020":                  {"2020-05-12=2020-5-12", "12/05/2020=2020-5-12 swappable", "13.05.2020=2020-5-13"},
		"in May 2010, on June 26, Sept. 2011":                          {"May 2010=2010-5-0", "June 26=0-6-26", "Sept. 2011=2011-9-0"},
		"in 1889, since 2004 (1999)":                                   {"1889=1889-0-0", "2004=2004-0-0", "1999=1999-0-0"},
		"the 1980s, the '60s, the 19th century":                        {"1980s=1980-0-0..1989", "'60s=1960-0-0..1969", "19th century=1800-0-0..1900"},
		"44 BC and the season 1995–98":                                 {"44 BC=-44-0-0", "1995–98=1995-0-0..1998"},
		"1500 people may march on; 3000 m; $2000; 2000 km":             nil,
		"Der Turm wurde am 19. März 1932 eröffnet und ist nicht hoch":  {"19. März 1932=1932-3-19"},
		"Le pont a été ouvert le 1er août 1932 dans la ville de Paris": {"1er août 1932=1932-8-1"},
		"El puente fue abierto el 3 de mayo de 1932 y es la obra de":   {"3 de mayo de 1932=1932-5-3"},
		"February 31, 1999":                                            {"February=0-2-0", "1999=1999-0-0"},

		"于1932年3月19日，1707年に、３月19日、2000年前": {"1932年3月19日=1932-3-19", "1707年=1707-0-0", "３月19日=0-3-19"},
	} {
		if diff := cmp.Diff(want, shownValues(text, ValueDate)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestValueNames(t *testing.T) {
	for text, want := range map[string][]string{
		"He met President Barack Obama and J. R. R. Tolkien.": {"President Barack Obama=barack obama", "J. R. R. Tolkien=tolkien"},
		"She left the University of California, Berkeley.":    {"University of California=university california", "Berkeley=berkeley"},
		"We saw Noël Coward’s play and Ludwig van Beethoven.": {"Noël Coward=noel coward", "Ludwig van Beethoven=ludwig beethoven"},
		"In the U.S. and the EU, COVID-19 spread.":            {"U.S.=us", "EU=eu", "COVID-19=covid-19"},
		"At 5 °C on Monday, May 3, nothing was there.":        nil,
	} {
		if diff := cmp.Diff(want, shownValues(text, ValueName)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestValueNegationsAndDegrees(t *testing.T) {
	for text, want := range map[string][]string{
		"He did not win, but she won.":             {"not=win"},
		"The bank didn’t fail to pay.":             {"didn’t=fail", "fail to=pay"},
		"Not only that, no doubt, no more than 5.": nil,
		"It cannot fly without wings.":             {"cannot=fly", "without=wings"},
		"No one ever lacked water.":                {"No one=ever lacked water", "lacked=water"},
	} {
		got := shownValues(text, ValueNegation)
		if text == "The bank didn’t fail to pay." {
			want = []string{"didn’t=fail to pay", "fail to=pay"}
		}
		if text == "It cannot fly without wings." {
			want = []string{"cannot=fly without wings", "without=wings"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	want := []string{"rose=rise fall", "fewer=less more"}
	if diff := cmp.Diff(want, shownValues("Prices rose by more than 5 percent with fewer buyers.", ValueDegree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// checkValues holds what is promised of any text.
func checkValues(tb testing.TB, text string) {
	tb.Helper()
	values := Values(text)
	for i, v := range values {
		for _, s := range []int{v.Span.Start, v.Span.End, v.Scope.Start, v.Scope.End} {
			if s < 0 || s > len(text) || s < len(text) && !utf8.RuneStart(text[s]) && utf8.ValidString(text) {
				tb.Fatalf("%q: %+v does not stand in the text", text, v)
			}
		}
		if v.Span.Start >= v.Span.End || v.Scope.Start > v.Scope.End {
			tb.Fatalf("%q: %+v is empty or turned round", text, v)
		}
		if v.Kind == ValueNumber && (v.Number != v.Number || v.High < v.Number) {
			tb.Fatalf("%q: %+v is no number", text, v)
		}
		if i > 0 && values[i-1].Span.Start > v.Span.Start {
			tb.Fatalf("%q: values are out of order", text)
		}
	}
}

func FuzzValues(f *testing.F) {
	for _, seed := range []string{
		"", "The tower is 330 m tall; it cost about $1.2 million in 1889.", "12.05.2020 12/05/2020 '60s 1995–98 44 BC", "two hundred and five thousand and",
		"-−5°C\xff\xfe 3½ 1/2 １２ ½", "U.S.A. J. R. R. O’Brien's didn’t n't", "9999999999999999999999999999 1e400 1,2,3,4 1.2.3.4", "between and to - % $",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkValues(t, text)
		Changed(text, text)
		half := len(text) / 2
		Changed(text[:half], text[half:])
		Conflicts([]Passage{{Text: text[:half]}, {Text: text[half:]}}, nil)
	})
}

func TestValuesOfLongTexts(t *testing.T) {
	for name, text := range map[string]string{
		"digits":   strings.Repeat("7", 1<<18),
		"words":    strings.Repeat("million ", 1<<15),
		"names":    strings.Repeat("Verrin ", 1<<15),
		"nots":     strings.Repeat("not ", 1<<15),
		"hyphens":  strings.Repeat("two-", 1<<15),
		"initials": strings.Repeat("A.", 1<<15),
		"commas":   strings.Repeat("1,", 1<<15),
		"lines":    strings.Repeat("5 km in 1999\n", 1<<14),
	} {
		t.Run(name, func(t *testing.T) { checkValues(t, text) })
	}
}

func BenchmarkValues(b *testing.B) {
	text := strings.Repeat("The Verrin Bridge, which opened on 26 June 1980, is 1,420 m long and cost $35 million. It was not closed. ", 14)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Values(text)
	}
}
