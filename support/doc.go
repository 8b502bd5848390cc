// Package support checks whether passages support a claim: text in, verdicts out. By default it works offline, without
// a model, in about a millisecond per pair, and never invents a number.
//
// The terms:
//
//   - A claim is a statement in an answer: a sentence, or the text that a citation covers.
//   - A passage is a text that may support it. A pair is one claim with its passages, which are judged together.
//   - A term is a word or a number of a claim, reduced to its stem; stop words (the, however) are not terms. Its weight
//     is how rare it is in English: 0 to 1, on the logarithm of its frequency.
//   - The evidence is the part of the passages that supports the claim: the window of one to three sentences that
//     contains most of the claim, and further sentences with terms that the window lacks. It is reported whether or not
//     it suffices.
//   - A missing term is a term of the claim that no passage contains.
//   - A verdict is the label, the closeness, the evidence and the missing terms. Its word is how it is shown in public.
//   - Closeness is how near the passages are to the claim, to rank them by. It is not the probability that they say it.
//   - Words alone say supported, differs or unjudged; only a judge says unsupported or contradicted.
//   - A value is a number with its unit, a date, a name or a negation. The claim differs if it is worded like the
//     evidence and one value is another.
//   - A possible conflict is the same between two passages. Rules compare words, not meaning, so it is not a
//     contradiction.
//
// # The default checker
//
// [Lexical] compares the terms of a claim with those of the passages, by six features: how much of the claim is in the
// best three sentences; which of its neighbouring terms are neighbours there too; how many numbers and how many words
// of names are missing; words such as I and you; how long the passages are. Words match by their stem, shortened to six
// letters, and count less if only their first five letters agree. A logistic regression turns the features into a
// closeness; more support never lowers it. `make eval` measures how good it is, and fails if a measure got worse.
//
// [Finder] finds the evidence of claims in whole texts: it chooses the passages of a text to show a checker.
//
// [Lexical.Check] reads each passage and each claim of its pairs once and compares them without allocating. Work and
// memory are linear in the text. It reads 64 KiB of a claim and 8 MiB of a passage, and the verdict reports what was
// left out.
//
// What the package knows about words, signs and units is in words.txt.
//
// It compares words, not meaning: it takes "A beat B" and "B beat A" for nearly the same, knows few synonyms, and
// recognises a summary of a passage less well than a sentence from it. So it never reports that a passage contradicts a
// claim, and leaves what is not close wording to a judge, if there is one: see [WithJudge].
//
// In other languages the method is the same, with words weighted by how rare they are in the passages of the call. Its
// quality there has not been measured, and each verdict says so (language-unmeasured).
package support
