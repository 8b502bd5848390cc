// Frameworks reads a provider's response and writes its answer in the formats of other programs.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "frameworks:", err)
		os.Exit(1)
	}
}

func run(r io.Reader, w io.Writer) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	answer, err := ibid.Decode(body, nil)
	if err != nil {
		return err
	}
	for _, format := range export.Formats() { // openai, langchain, llamaindex
		if err := export.Write(w, format, answer, nil); err != nil {
			return err
		}
	}
	return nil
}
