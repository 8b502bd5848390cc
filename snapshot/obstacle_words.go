package snapshot

import (
	_ "embed" // of the phrases
	"strings"
	"sync"
)

//go:embed obstacle_words.txt
var obstacleWords string

// phrases returns the phrases of titles and of texts, in their order.
var phrases = sync.OnceValue(func() (of struct{ head, body []phrase }) {
	for line := range strings.Lines(obstacleWords) {
		where, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, words, _ := strings.Cut(rest, " ")
		for one := range strings.SplitSeq(words, "|") {
			p := phrase{strings.TrimSpace(one), Obstacle(kind)}
			switch where {
			case "title":
				of.head = append(of.head, p)
			case "text":
				of.body = append(of.body, p)
			}
		}
	}
	return of
})
