// Package export writes answers in the formats of other programs, which represent citations in their own ways: see
// [Formats].
//
// What a format cannot represent is left out, and nothing is made up to fill a field: an unknown score is null, and an
// annotation for a citation without a place has no offsets, or those that mean so to its readers. A format has a single
// text. If it has offsets, the messages of an answer follow each other as in [ibid.Answer].Text, with only the blank
// lines of [Parted] between them; alternatives, issues and what a provider requires to be shown are left out.
package export
