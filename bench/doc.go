// Package bench measures ibid from outside: whole responses, from bytes to answer, compared with other ways to read the
// same bytes. It contains only benchmarks; make bench runs them and prints the ratios of those that differ in /by=….
//
//   - by=ibid reads a response to its Answer, with somebody listening to the events.
//   - by=json only asks encoding/json whether each document is valid: the least that reading it with a library costs.
//   - by=struct decodes each document with encoding/json into small structs that hold the text and the citations and
//     nothing else, and joins the text: what a program would do by hand, before any offset is converted.
//
// The streams are made here, in the shapes that the providers send: 2,000 pieces of text of 20 to 60 characters, a
// citation for every twelfth, forty sources. Benchmarks named Recording… read recorded responses instead, where there
// are any (IBID_SHARED, see CONTRIBUTING.md).
//
// Benchmarks named Linear… grow one thing to 100,000 or to 100 MB and report the time for ten times as much over the
// time for one (x/10x); where that is near 10, reading is linear.
package bench
