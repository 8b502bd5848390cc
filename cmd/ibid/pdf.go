package main

import (
	"fmt"
	"os"

	"github.com/ibidhq/ibid/internal/pdf"
)

// pdfCommand is the command, not shown in the help, by which ibid starts itself to read a PDF.
const pdfCommand = "read-pdf"

// isolatePDFs makes this program read PDFs in processes of its own, so that a bug of their reader costs one source.
func isolatePDFs() {
	const self = "/proc/self/exe" // on Linux, and still this program when its file was replaced
	path := self
	if _, err := os.Stat(self); err != nil {
		if path, err = os.Executable(); err != nil {
			return
		}
	}
	pdf.Isolate(path, os.Args[0], pdfCommand)
}

// servePDF reads the PDF on standard input, and returns the exit code.
func servePDF(args []string) int {
	if err := pdf.Serve(os.Stdin, os.Stdout, args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}
