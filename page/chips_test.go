package page_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// shownChip matches a chip: the numbers of its sources, its kind, and the class of its name.
var shownChip = regexp.MustCompile(
	`<ibid-cite [^>]*data-n="([^"]*)"><a class="chip (\w+)[^>]*>(?:<span class="unseen">[^<]*</span>)?<span class="n">\d+</span> <bdi([^>]*)>`,
)

// A model that cites word by word gets one chip where one source goes on, which says no more than what is true of all of
// its citations, and names the source once in a paragraph.
func TestNeighbouringChips(t *testing.T) {
	w := newWorld(t, nil)
	for i, test := range []struct {
		text  string
		cites []string // words, of the first source, or of the second one if they begin with a *
		want  []string
	}{
		{"Ginger is a root. It is used in ale.", []string{"Ginger is a root", "It is used in ale"}, []string{"1 good named"}},
		{
			"Ginger is a root and used in soup and used in ale.",
			[]string{"a root", "*soup", "used in ale"},
			[]string{"1 none named", "2 none named", "1 none"},
		},
		{"Ginger is a root.\n\nIt is used in ale.", []string{"a root", "used in ale"}, []string{"1 good named", "1 good named"}},
		{
			"Ginger is a root. Nobody knows who planted it here. It is used in ale.",
			[]string{"Ginger is a root", "It is used in ale"},
			[]string{"1 good named", "1 good"},
		},
		{"Ginger is a root and loved by dragons.", []string{"a root", "loved by dragons"}, []string{"1 none named"}},
	} {
		c := talked(fmt.Sprintf("ans_%d", i), "What is ginger?", test.text)
		a := c.Answer
		a.Sources = []ibid.Source{
			{ID: "one", Kind: ibid.DocumentKind, Title: "Ginger", Content: "Ginger is a root. It is used in ale."},
			{ID: "two", Kind: ibid.DocumentKind, Title: "Soups"},
		}
		for _, words := range test.cites {
			source := "one"
			if strings.HasPrefix(words, "*") {
				source, words = "two", words[1:]
			}
			at := strings.Index(a.Text, words)
			testenv.OK(t, a.Cite(ibid.Span{Start: at, End: at + len(words)}, ibid.Ref{Source: source}))
		}
		w.put(t, c)
		var got []string
		body := w.get(t, "/ui/answers/"+c.AnswerID).body
		for _, m := range shownChip.FindAllStringSubmatch(body, -1) {
			named := ""
			if m[3] == "" {
				named = " named"
			}
			got = append(got, m[1]+" "+m[2]+named)
		}
		testenv.Equal(t, test.text, test.want, got)
		// Each citation is still named by a chip, and each chip that a card leads to is there.
		for _, m := range regexp.MustCompile(`href="#(m-\d+)"`).FindAllStringSubmatch(body, -1) {
			if !strings.Contains(body, `id="`+m[1]+`"`) {
				t.Errorf("%s: there is no chip %s", test.text, m[1])
			}
		}
		for i := range a.Citations {
			if n := len(regexp.MustCompile(`<ibid-cite [^>]*data-cites="[^"]*\b`+a.Citations[i].ID+`\b`).FindAllString(body, -1)); n != 1 {
				t.Errorf("%s: %d chips have the citation %d", test.text, n, i)
			}
		}
	}
}
