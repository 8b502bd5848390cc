package prose_test

import (
	"fmt"
	"strings"

	"github.com/ibidhq/ibid/internal/prose"
)

func ExampleSentences() {
	text := "# Bridges\n\n- Dr. Roth built it, e.g. the towers. [1] It stands at 3.5 km.\n- Er wurde am 3. Oktober geöffnet."
	for start, end := range prose.Sentences(text) {
		fmt.Println(text[start:end])
	}
	// Output:
	// Bridges
	// Dr. Roth built it, e.g. the towers. [1]
	// It stands at 3.5 km.
	// Er wurde am 3. Oktober geöffnet.
}

func ExampleSentenceBefore() {
	text := "It is old. It has two towers ([roth.example](https://roth.example))."
	start, end := prose.SentenceBefore(text, strings.Index(text, "["))
	fmt.Println(text[start:end])
	// Output: It has two towers
}

// A provider's citation ends inside a word; the marker goes after the punctuation of the sentence.
func ExampleAfterPunctuation() {
	text := "She said “it stands.” Then she left."
	at := strings.Index(text, "ands")
	at = prose.AfterPunctuation(text, prose.WordEnd(text, at))
	fmt.Println(text[:at] + "[1]" + text[at:])
	// Output: She said “it stands.”[1] Then she left.
}
