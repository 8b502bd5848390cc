// Package biblio writes the sources of an answer as a bibliography: as data for reference managers (BibTeX, RIS,
// CSL-JSON) and as the finished entries of three styles (APA, MLA, Chicago).
//
// # What an entry says
//
// Nothing is invented. If a source has no author, date, site or title, the entry has none either: a data format leaves
// the field out, a style follows its rule for that case. The one exception is a file without a title, which is listed
// by its file name. The case of words is never changed, so the titles of an APA list are in sentence case only if the
// sources wrote them so.
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
// A name ending in .csv, .tsv, .xlsx, .parquet, .json and the like makes a dataset. The name is the file name, else the
// last part of the URL's path, else a title that is just a file name. A PDF is a document rather than a report, because
// a source never names who commissioned it.
//
// Authors are split into given and family names only where that is safe: "Ada Lovelace", "Lovelace, Ada", "Ludwig van
// Beethoven", "Smith J." Organisations, single words, names in scripts without capitals (Chinese, Japanese, Korean,
// Arabic and others) and doubtful cases are kept whole.
//
// A date is the date of publication, as precise as in the source. The day of access is [Entry].Accessed, else the day
// the source was retrieved; only sources with a URL have one. Page numbers tell where a citation points, not what the
// source is, and are left out, except for a file of which a single page range was used.
//
// # Styles
//
// [APA] is the 7th edition, [MLA] the 9th, [Chicago] the bibliography of the 17th edition's notes and bibliography
// system (not author-date). Where they leave a choice, the common CSL definitions of the styles decide:
//
//   - No author: the title comes first, but for a web page in Chicago the site does.
//   - No date: "n.d." in APA, and in Chicago unless the day of access is given instead; nothing in MLA.
//   - Day of access: only for undated sources. The data formats always have it.
//   - No title: a description, "Untitled webpage", in brackets in APA.
//   - Particles: "van der Berg, A." in APA and MLA, "Berg, Ada van der" in Chicago.
//
// Entries with numbers keep their order and begin with the number in brackets, like the marks in an answer's text.
// Entries without numbers are sorted, as all three styles require, and works that APA would otherwise cite alike get a
// letter after the year. Repeated names are not replaced by dashes.
//
// # Hostile words
//
// Titles and names come from the web through a model. Every format drops their control, bidirectional and other
// invisible characters, turns line breaks into spaces, and escapes its special characters. Characters that are not
// allowed in a URL are percent-encoded. A URL with a scheme that does not name a place (javascript, data) is left out.
package biblio
