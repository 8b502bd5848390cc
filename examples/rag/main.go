// Rag is a chat with a folder of documents. Every sentence of its answers names the passage it rests on, or says that
// there is none.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// chat is a conversation about a folder of documents.
type chat struct {
	library    *library
	api, model string         // api "" means answering with sentences of the documents
	numbers    ibid.Numbering // the same throughout the conversation
}

func main() {
	docs := flag.String("docs", "rag/docs", "the `folder` of documents")
	question := flag.String("question", "", "answer this, and end")
	c := &chat{}
	flag.StringVar(&c.api, "api", "", "the base `URL` of a model's API in OpenAI's format, such as http://127.0.0.1:8080/openai/v1; none: no model")
	flag.StringVar(&c.model, "model", "gpt-5", "the model")
	flag.Parse()
	if err := c.run(context.Background(), *docs, *question); err != nil {
		fmt.Fprintln(os.Stderr, "rag:", err)
		os.Exit(1)
	}
}

func (c *chat) run(ctx context.Context, docs, question string) error {
	var err error
	if c.library, err = read(docs); err != nil {
		return err
	}
	if question != "" {
		return c.answer(ctx, question)
	}
	fmt.Printf("%d documents, %d passages. Ask; an empty line ends it.\n\n> ", len(c.library.docs), len(c.library.passages))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan() && lines.Text() != ""; {
		if err := c.answer(ctx, lines.Text()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Print("\n> ")
	}
	return nil
}

// answer answers a question and shows, for each sentence, what it rests on.
func (c *chat) answer(ctx context.Context, question string) error {
	hits, docs := c.library.search(question, maxPassages)
	var a *ibid.Answer
	var err error
	if c.api == "" {
		a, err = c.extract(ctx, question, hits)
	} else {
		a, err = c.ask(ctx, question, docs)
	}
	if err != nil {
		return err
	}
	if a.Text == "" {
		fmt.Println("The documents do not say anything about that.")
		return nil
	}
	found, err := support.Attribute(ctx, a, docs, nil)
	if err != nil {
		return err
	}
	text := found.Answer.Render(&ibid.RenderOptions{Style: ibid.StylePlain, List: true, Quotes: true, Numbering: &c.numbers})
	fmt.Println(strings.TrimRight(text, "\n"))
	for i := range found.Sentences {
		if s := &found.Sentences[i]; s.Uncited() {
			fmt.Printf("\nNo document supports: %s\n", found.Answer.Text[s.Span.Start:s.Span.End])
		}
	}
	return nil
}
