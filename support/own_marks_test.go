package support

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

func harbour() []Document {
	return []Document{
		{
			Source: ibid.Source{ID: "mole", Kind: ibid.DocumentKind, Title: "The mole"},
			Text:   "The mole at Varberg was raised in 1874. Its lantern was moved inland in 1931.",
		},
		{
			Source: ibid.Source{ID: "ferry", Kind: ibid.Web, Title: "Ferry", URL: "https://ferry.example/times"},
			Text:   "The ferry leaves at noon. It carries forty cars and takes ninety minutes.",
		},
		{Source: ibid.Source{ID: "mole", Kind: ibid.DocumentKind, Title: "The mole"}, Text: "Eider ducks nest on the mole."},
	}
}

// The marks and links of a text cite the documents, and only sentences without them are searched for.
func TestOwnMarks(t *testing.T) {
	for name, tt := range map[string]struct {
		text, want string
		sources    string
	}{
		"numbers": {
			"It was raised in 1874 [1]. It carries forty cars [2].", "marker mole, marker ferry", "mole ferry",
		},
		"the rest": {
			"It was raised in 1874 [1]. The ferry leaves at noon.", "marker mole, inferred ferry", "mole ferry",
		},
		"a false one stays": {
			"The ferry takes ninety minutes [1].", "marker mole", "mole",
		},
		"a name": {"It leaves at noon [ferry].", "marker ferry", "ferry"},
		"a link": {
			"It [leaves at noon](https://ferry.example/times). Owls hunt voles.", "marker ferry", "ferry",
		},
		"pieces of one source": {
			"Eider ducks nest on the mole [3]. The lantern was moved inland in 1931.", "marker mole, inferred mole", "mole",
		},
		"a number of no document": {"The ferry leaves at noon [7].", "inferred ferry", "ferry"},
		"a printed list": {
			"It was raised in 1874 [1].\n\nSources:\n[1] The mole\n[2] The ferry leaves at noon\n", "marker mole", "mole",
		},
		"code": {"Call `times[1]` for it. Owls hunt voles.", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			docs := harbour()
			plain := testenv.Must(ibid.Decode([]byte(tt.text), &ibid.DecodeOptions{Format: ibid.Generic}))(t)
			marked := testenv.Must(WithMarks(t.Context(), plain, docs))(t)
			found := testenv.Must(Attribute(t.Context(), marked, docs, nil))(t)
			testenv.OK(t, found.Answer.Check())
			var got, ids []string
			for i := range found.Answer.Citations {
				c := &found.Answer.Citations[i]
				got = append(got, fmt.Sprintf("%s %s", c.Origin, c.Refs[0].Source))
			}
			for i := range found.Answer.Sources {
				ids = append(ids, found.Answer.Sources[i].ID)
			}
			testenv.Equal(t, "citations", tt.want, strings.Join(got, ", "))
			testenv.Equal(t, "sources", tt.sources, strings.Join(ids, " "))
			if len(plain.Citations) > 0 || len(plain.Sources) > 0 {
				t.Error("the answer was changed")
			}
		})
	}
}

// A citation by a mark has the document's text if that is short enough to be the passage that the model was given.
func TestOwnMarksContent(t *testing.T) {
	docs := harbour()
	docs[1].Text = strings.Repeat(docs[1].Text+"\n\n", maxGiven/len(docs[1].Text))
	plain := &ibid.Answer{Text: "It was raised in 1874 [1]. It carries forty cars [2].", Complete: true}
	marked := testenv.Must(WithMarks(t.Context(), plain, docs))(t)
	testenv.Equal(t, "content", []string{docs[0].Text, ""}, []string{marked.Sources[0].Content, marked.Sources[1].Content})
}

// An answer with sources or citations of its own has had its marks read with these.
func TestOwnMarksRead(t *testing.T) {
	a := &ibid.Answer{Text: "It was raised in 1874 [1].", Sources: []ibid.Source{{ID: "s", Title: "Other"}}, Complete: true}
	if got := testenv.Must(WithMarks(t.Context(), a, harbour()))(t); got != a {
		t.Errorf("%+v", got)
	}
}
