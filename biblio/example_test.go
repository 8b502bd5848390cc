package biblio_test

import (
	"fmt"
	"os"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
)

func ExampleWrite() {
	sources := []ibid.Source{{
		Kind: ibid.Web, Title: "How salt marshes grow", Site: "Marsh Journal", Authors: []string{"Ada van der Berg"},
		URL: "https://marsh.example/grow", PublishedAt: "2024-03-05",
	}, {
		Kind: ibid.File, Title: "Gauge levels", Filename: "levels.csv",
	}}
	var entries []biblio.Entry
	for i, s := range sources {
		entries = append(entries, biblio.Entry{Number: i + 1, Source: s})
	}
	if err := biblio.Write(os.Stdout, biblio.APA, entries, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [1] van der Berg, A. (2024, March 5). How salt marshes grow. Marsh Journal. https://marsh.example/grow
	// [2] Gauge levels [Data set]. (n.d.).
}

func ExampleWrite_bibTeX() {
	entry := biblio.Entry{
		Source: ibid.Source{
			Kind: ibid.Web, Title: "Salt & {light}: 50% more", Site: "Marsh Journal", URL: "https://marsh.example/salt",
		},
		Accessed: time.Date(2025, time.January, 2, 0, 0, 0, 0, time.UTC),
	}
	if err := biblio.Write(os.Stdout, biblio.BibTeX, []biblio.Entry{entry}, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// @online{marshjournalndsalt,
	//   title        = {{Salt \& \{light\}: 50\% more}},
	//   organization = {{Marsh Journal}},
	//   url          = {https://marsh.example/salt},
	//   urldate      = {2025-01-02},
	// }
}

func ExampleWrite_markdown() {
	entry := biblio.Entry{Source: ibid.Source{
		Kind: ibid.Web, Title: "How salt marshes grow", Site: "Marsh Journal", URL: "https://marsh.example/grow", PublishedAt: "2024",
	}}
	for _, style := range []biblio.Format{biblio.MLA, biblio.Chicago} {
		if err := biblio.Write(os.Stdout, style, []biblio.Entry{entry}, &biblio.Options{Markup: biblio.Markdown}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// “How salt marshes grow.” *Marsh Journal*, 2024, <https://marsh.example/grow>.
	// Marsh Journal. “How salt marshes grow,” 2024. <https://marsh.example/grow>.
}

func ExampleFormats() {
	for _, f := range biblio.Formats() {
		fmt.Println(f)
	}
	// Output:
	// bibtex
	// ris
	// csl-json
	// apa
	// mla
	// chicago
}
