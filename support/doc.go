// Package support says whether passages support a claim: text in, verdicts out. By default it works offline, without a
// model, in microseconds per pair, and never invents a number.
//
// The terms:
//
//   - A claim is a statement of an answer: a sentence, or what a citation stands for.
//   - A passage is a text that may support it. A pair is one claim with its passages, which count together.
//   - A term is a word or a number of a claim, by its stem; stop words (the, however) are none. Its weight says
//     how rare it is in English: 0 to 1, in the logarithm of its frequency.
//   - The evidence is where in the passages the support stands: the window of one to three sentences that has
//     most of the claim, and further sentences that have what the window lacks. It is found whether or not it
//     suffices.
//   - What is missing is a term of the claim that no passage has.
//   - A verdict is the label, the score, the evidence and what is missing. Its word is what is shown of it in
//     public.
//   - A score is P(supported): of pairs with the score .8, people call about four in five supported. It is
//     calibrated for English sentences and the passages that were cited for them, half of which support them.
//   - A checker abstains (unverified) where the score lies between its floor and its threshold.
//   - A value is a number with its unit, a date, a name or a negation. It is changed where claim and evidence
//     speak of the same thing and give different values: then the claim is suspect, whatever the score.
//   - A possible conflict is the same between two passages. Rules see words and not meaning, so it is no
//     contradiction.
//
// # The default checker
//
// [Lexical] compares the terms of a claim with those of the passages, by six features: how much of the claim stands in
// the best three sentences; which of its neighbouring terms are neighbours there too; how many numbers and how many
// words of names are missing; words such as I and you; how long the passages are. Words meet by their stem, shortened
// to six letters, and count less where only their first five letters agree. A logistic regression turns the features
// into a score; more support never lowers it. `make eval` says how good it is, and fails where something is worse than
// it was.
//
// [Finder] finds the evidence of claims in whole texts: it chooses the passages of a text that a checker is shown.
//
// [Lexical.Check] reads each passage and each claim of its pairs once and compares them without allocating. Work and
// memory are linear in the text. Of a claim 64 KiB are read, of a passage 8 MiB, and the verdict says what was left
// out.
//
// What the package knows of words, signs and units stands in words.txt.
//
// It knows words, not meaning: it takes "A beat B" and "B beat A" for nearly the same, knows few synonyms, and finds an
// abstract of a passage harder to recognise than a sentence of it. So it never says that a passage contradicts a claim,
// and leaves what it is unsure of to a stronger checker, if one is configured: see [Cascade].
//
// In other languages the method is the same, with words weighed by how rare they are in the passages of the call.
// Nobody measured how good it is there, and each verdict says so (language-unmeasured).
package support
