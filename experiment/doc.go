// Package experiment compares two ways of attributing answers to their sources.
//
// A [Strategy] is such a way: which checker decides whether a passage supports a sentence, from which probability on it
// counts, and whether sentences without a citation are given one. It has a name and a version, and a run remembers
// under which it was attributed.
//
// Two strategies are compared on the same runs, each attributed again by both ([Measure]), or on live traffic: a
// [Split] gives every run one of the two, by a hash of its id, so that all nodes agree and a run never changes sides
// ([Observe]). Either way a run gives an [Outcome], which is nothing but counts, and [Compare] makes a [Report] of
// them.
//
// The shares of a report:
//
//   - coverage: sentences that rest on a source, of all sentences that claim something;
//   - supported: cited sentences that their sources support, of the cited sentences that were checked; those whose
//     citations the judge inferred itself are not, and where all are such it is nil;
//   - verified: citations whose source was fetched again and still says it, of those that were fetched;
//   - feedback: citations that people called right, of those that people judged.
//
// Every share comes with a 95 % confidence interval. Sentences of one run are not independent of each other, so the
// intervals count runs as clusters: see [Estimate].
package experiment
