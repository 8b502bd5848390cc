// Package biblio writes the sources of an answer as a bibliography: as data for reference managers (BibTeX, RIS,
// CSL-JSON) and as the finished entries of three styles (APA, MLA, Chicago).
//
// # What an entry says
//
// Nothing is invented. A source that names no author, date, site or title gets none: a data format leaves the field
// out, a style does what it prescribes for that case. The one exception is a file without a title, which goes by its
// file name. Words are never recased, so the titles of an APA list are in sentence case only if the sources wrote them
// so.
//
// A source's kind follows from how it can be reached and from its name:
//
//	             example                      CSL       RIS   BibTeX    described as
//	dataset      data.csv, …/rates.parquet    dataset   DATA  @dataset  Data set (APA)
//	document     an uploaded file, …/a.pdf    document  GEN   @misc
//	webpage      anything else with a URL     webpage   ELEC  @online
//	unpublished  a document of the caller's   document  GEN   @misc     Unpublished document
//	             a tool's result              document  GEN   @misc     Tool output
//	             an image, a place on a map   document  GEN   @misc     Image, Map
//
// A name ending in .csv, .tsv, .xlsx, .parquet, .json and the like makes a dataset: the file name, else the last part
// of the URL's path, else a title that is nothing but a file name. A PDF is a document and not a report, because a
// source never says who commissioned it.
//
// Authors are split into given and family names only where that is safe: "Ada Lovelace", "Lovelace, Ada", "Ludwig van
// Beethoven", "Smith J." Organisations, single words, names in scripts without capitals (Chinese, Japanese, Korean,
// Arabic and others) and whatever is in doubt are kept whole.
//
// A date is the published date to the precision the source gives. The day of access is [Entry].Accessed, else the day
// the source was retrieved, and only for what has a URL. Page numbers say where a citation points, not what the source
// is, and are left out, except for a file of which one single page range was used.
//
// # Styles
//
// [APA] is the 7th edition, [MLA] the 9th, [Chicago] the 17th edition's bibliography (of its notes and bibliography
// system; not author-date). Where they leave a choice, the choice is that of the styles' common CSL definitions:
//
//   - No author: the title comes first, but the site does before a web page in Chicago.
//   - No date: "n.d." in APA, and in Chicago unless the day of access stands for it; nothing in MLA.
//   - Day of access: only for undated sources. The data formats have it always.
//   - No title: a description, "Untitled webpage", which APA puts in brackets.
//   - Particles: "van der Berg, A." in APA and MLA, "Berg, Ada van der" in Chicago.
//
// Entries with numbers keep their order and begin with the number in brackets, as the marks in an answer's text do.
// Entries without numbers are sorted, as all three styles want, and works that APA would otherwise cite alike get a
// letter after the year. Names that repeat are not replaced by dashes.
//
// # Hostile words
//
// Titles and names come from the web by way of a model. Every format loses their control, bidirectional and other
// invisible characters, and line breaks become spaces; what is special in a format is escaped. Characters that may not
// stand in a URL are percent-encoded. A URL with a scheme that does not name a place (javascript, data) is left out.
package biblio
