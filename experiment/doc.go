// Package experiment compares two ways of attributing answers to their sources.
//
// A [Strategy] is such a way: the checker that decides whether a passage supports a sentence, the closeness from
// which it counts, and whether sentences without a citation get one. It has a name and a version, which runs record.
//
// Two strategies are compared on the same runs, each attributed again by both ([Measure]), or on live traffic
// ([Observe]): a [Split] assigns every run to one of the two by a hash of its id, so that all nodes agree and a run
// never changes sides. Either way a run yields an [Outcome], which consists of counts, and [Compare] makes a [Report]
// from these.
//
// The shares of a report:
//
//   - coverage: sentences that rest on a source, of all sentences that claim something;
//   - supported: cited sentences that their sources support, of the cited sentences that were checked. Sentences whose
//     citations the judge inferred itself are not checked; if there are no others, the share is nil;
//   - verified: citations whose source still has the cited words when fetched again, of those that were fetched;
//   - feedback: citations that people found right, of those that people judged.
//
// Every share has a 95 % confidence interval. Sentences of one run are not independent, so the intervals treat runs as
// clusters: see [Estimate].
package experiment
