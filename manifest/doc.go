// Package manifest reads, checks, writes and serves manifests: who claimed what, and from where.
//
// A manifest is the record of one answer as JSON. Its terms:
//
//   - A claim is something the answer says and gives sources for. Its span is where it stands in the answer's
//     normalised text.
//   - A source is a document that was consulted, as it was read once: its URL, when, and the hashes of its octets and
//     its text.
//   - An excerpt is the stretch of a source's text that a claim rests on, with its offset and some of what stands
//     around it.
//   - The chain is the steps that led to the answer, each with the outputs it follows from.
//   - The output binds the manifest to the response that it is about.
//   - The header, Citation-Source, announces a response's sources and manifests: an [Announcement] each.
//
// Offsets are half-open and count Unicode code points of text as snapshot.Extract and snapshot.Normalize make it.
// Hashes are "sha256:" and 64 hexadecimal digits in small letters. Times are in UTC.
//
// A manifest is checked in this order. [Parse] looks at the form and refuses what two readers could read differently.
// [Manifest.Problems] says what contradicts itself. [Manifest.Level] says how much of what a verifier needs is there.
// None of them fetches anything or believes what the publisher says of itself; whether a manifest is true is for
// package verify. [Lint] says the same to those who write manifests, with advice and exact places.
//
// [Builder] makes a manifest of an answer and its trail, [Sign] and [Unsigned] make it what is served, and [Publisher]
// serves it.
package manifest
