// Package manifest reads, checks, writes and serves manifests, the records of what an answer claims and from which
// sources.
//
// A manifest is the record of one answer as JSON. Its terms:
//
//   - A claim is a statement of the answer that has sources. Its span is its place in the answer's normalised text.
//   - A source is a document that was consulted, as it was read once: its URL, the time, and the hashes of its octets
//     and its text.
//   - An excerpt is the passage of a source's text that a claim rests on, with its offset and some of the surrounding
//     text.
//   - The chain is the steps that led to the answer, each with the outputs that it builds on.
//   - The output binds the manifest to the response that it is about.
//   - The header, Citation-Source, announces a response's sources and manifests: an [Announcement] each.
//
// Offsets are half-open and count Unicode code points of text as snapshot.Extract and snapshot.Normalize make it.
// Hashes are "sha256:" and 64 lower-case hexadecimal digits. Times are in UTC.
//
// A manifest is checked in this order. [Parse] checks the form and refuses what two readers could read differently.
// [Manifest.Problems] returns its contradictions. [Manifest.Level] tells how much of what a verifier needs it has. None
// of them fetches anything or relies on what the publisher says of itself; whether a manifest is true is for package
// verify to find out. [Lint] reports the same to authors of manifests, with advice and exact places.
//
// [Builder] makes a manifest from an answer and its trail, [Sign] and [Unsigned] turn it into what is served, and
// [Publisher] serves it.
package manifest
