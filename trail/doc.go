// Package trail records how an agent arrived at its answer: which sources each step of a run used, and which steps and
// passages each sentence of the final answer rests on.
//
// [Read] reads a run from JSON, a [Recorder] records one while a Go program runs, and [Reason] runs one.
// [Trail.Summary] sums up the sources used, [Trail.Link] links the sentences of the answer to steps and passages.
// docs/trail.md describes the JSON.
//
// # Terms
//
//   - A run is one question to an agent and everything the agent did to answer it. Its trail is the record of that.
//   - A step is one thing that a run did, such as a question it asked itself or a tool it called. Steps form a directed
//     acyclic graph: each comes after the steps it builds on.
//   - A source is a document that a step drew on, and one passage of it. A step has retrieved a source if a search
//     returned it, used it if the step worked with it, and cited it if the step's answer names it.
//   - A passage is a piece of a source's text that sentences can be checked against.
//   - Relevance is the reported score of how well a source fits its step, with its origin; nil means it was not scored.
//   - A sentence rests on a passage if it cites the passage, marks it or, failing both, if a checker of package support
//     infers it.
//   - A span is a half-open range of UTF-8 bytes of the final answer, on rune boundaries.
//
// # Guarantees
//
// Nothing is lost: input that is not understood is kept unchanged and reported as an issue. No score is invented; the
// one heuristic, a score derived from the position in a list, applies only to bare context strings, and its origin says
// so. No input causes a panic; a cycle of steps is reported and walked once. Everything takes time linear in the size
// of the trail, except linking, which has limits.
package trail
