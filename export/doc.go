// Package export writes answers in the shapes of other programs, for those that know citations only in their own way:
// see [Formats].
//
// What a shape has no room for is left out, and nothing is made up to fill one: where no score is known it is null, and
// an annotation of a citation without a place has no offsets, or those by which its readers know that. A shape has one
// text. So where it has offsets, the messages of an answer follow each other without a break, as they do in
// [ibid.Answer].Text; alternatives are left out, and so are issues and what a provider wants to be shown.
package export
