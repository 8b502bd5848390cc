// Package trail says how an agent arrived at its answer: which sources each step of a run used, and which steps and
// passages each sentence of the final answer rests on.
//
// [Read] takes a run from JSON, a [Recorder] writes one down while a Go program runs, [Reason] runs one.
// [Trail.Summary] adds up what was used, [Trail.Link] ties the sentences of the answer to steps and passages.
// docs/trail.md describes the JSON.
//
// # Terms
//
//   - A run is one question to an agent and what it did to answer it. Its trail is what is known of that.
//   - A step is one thing that a run did: a question it asked itself, a tool it called. Steps form a directed graph
//     without cycles: each comes after those that it builds on.
//   - A source is a document that a step drew on, and one passage of it. A step has retrieved a source if a search
//     returned it, used it if the step worked with it, and cited it if the step's answer names it.
//   - A passage is a piece of a source's text, which can be checked against.
//   - Relevance says how well a source fits its step. It is the number that somebody gave, with its origin; nil means
//     that nobody did.
//   - A sentence rests on a passage if it cites it, marks it, or, failing these, a checker of package support infers
//     it.
//   - A span is a half-open range of UTF-8 bytes of the final answer, on rune boundaries.
//
// # What can be relied on
//
// Nothing is lost: what cannot be understood is kept as it is, and reported as an issue. No score is invented; the one
// heuristic, a score made of the place in a list, is used for bare context strings only and says so in its origin.
// Nothing panics, whatever the input; a cycle of steps is reported and walked once. Everything is linear in the size of
// the trail, but for linking, whose limits have names.
package trail
