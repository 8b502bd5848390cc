package passage_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestQuestion(t *testing.T) {
	const passages = "[1] The mill\nThe mill on the Orre was built in 1612.\n\n[2] The bridge\nThe bridge has six arches of granite.\n\n"
	for prompt, want := range map[string]string{
		"How old is the mill?": "How old is the mill?",
		"Context:\n" + passages + "Question: How old is the mill?":                                  "How old is the mill?",
		"Context:\n" + passages + "**Query:** How old?\n\nHelpful answer:":                          "How old?",
		"Answer from the sources, and cite them.\n\nSources:\n" + passages + "How old is the mill?": "How old is the mill?",
		"Quellen:\n" + passages + "Frage: Wie alt ist die Mühle?\nAntwort:":                         "Wie alt ist die Mühle?",
		"<documents>\n<document index=\"1\">\n<source>mill.pdf</source>\n<document_content>\nBuilt in 1612 on the Orre.\n" +
			"</document_content>\n</document>\n</documents>\n\nHow old is it?": "How old is it?",
		"Question: How old is the mill?\n\nContext:\n" + passages: "How old is the mill?",
		"Which is it?\n1. The mill\n2. The bridge":                "Which is it?\n1. The mill\n2. The bridge",
	} {
		testenv.Equal(t, prompt, want, passage.Question(prompt))
	}
	long := strings.Repeat(passages, 100_000)
	testenv.Equal(t, "a text that is too long to be read", len(long), len(passage.Question(long)))
}
