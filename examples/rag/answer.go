package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// extract answers without a model, with the sentences that share the most words with the question, in the order of the
// passages. The answer is empty if no sentence shares enough.
func (c *chat) extract(ctx context.Context, question string, hits []place) (*ibid.Answer, error) {
	var sentences []string
	var said []support.Passage // the sentences under their titles and headings
	for _, p := range hits {
		text := c.library.text(p)
		cut, err := support.Attribute(ctx, &ibid.Answer{Text: text}, nil, nil) // also splits the text into sentences
		if err != nil {
			return nil, err
		}
		for _, s := range cut.Sentences {
			sentence := strings.Join(strings.Fields(text[s.Span.Start:s.Span.End]), " ")
			if s.Says() && sentence != c.library.heading(p) { // no question, no code
				sentences = append(sentences, sentence)
				said = append(said, support.Passage{Text: c.library.above(p) + sentence})
			}
		}
	}
	var best []int
	found := support.NewCorpus(said).Search(question, maxSentences)
	for _, h := range found {
		if h.Relevance >= minRelevance && h.Score >= found[0].Score*minShare {
			best = append(best, h.Passage)
		}
	}
	slices.Sort(best)
	var text []string
	for _, i := range best {
		text = append(text, sentences[i])
	}
	return &ibid.Answer{Text: strings.Join(text, " "), Complete: true}, nil
}

const (
	maxPassages  = 6   // retrieved per question
	maxSentences = 3   // in an answer without a model
	minRelevance = .15 // for a sentence to be part of one
	minShare     = .6  // of the best sentence's score
)

// ask answers with a model behind an API in OpenAI's format: a provider's, ibid's gateway, or a local server.
func (c *chat) ask(ctx context.Context, question string, docs []support.Document) (*ibid.Answer, error) {
	var sources []ibid.Source
	for _, d := range docs {
		s := d.Source
		for _, p := range d.Passages {
			s.Chunks = append(s.Chunks, ibid.Chunk{Content: d.Text[p.Span.Start:p.Span.End]})
		}
		sources = append(sources, s)
	}
	body, err := json.Marshal(map[string]any{"model": c.model, "messages": []map[string]string{
		{"role": "system", "content": "Answer in whole sentences, from these sources only. If they do not say it, say so.\n\n" + ibid.PromptSources(sources)},
		{"role": "user", "content": question},
	}})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.api, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	a, err := ibid.Decode(data, nil)
	if err == nil && a.Error != nil {
		err = fmt.Errorf("%s: %s", res.Status, a.Error.Message)
	}
	return a, err
}
