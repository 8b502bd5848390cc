// Package verify checks what agents say about where their claims come from: it reads the Citation-Source field of a
// response, fetches the manifests that it names, and looks at each source again. What it can look up it does not take
// on trust.
//
// # Terms
//
//   - A response announces manifests; a manifest lists claims, each with its sources and excerpts; an excerpt is a
//     stretch of a source's text that the claim rests on.
//   - A status is one word of docs/attribution-v1.md for what was found at one place. It counts as a pass, an info,
//     a warning, as unverifiable (it could not be looked at) or as a failure.
//   - A report has all of them, and comes to one state: [Invalid] if anything failed; else [Unverifiable] if a
//     manifest or a cited source could not be looked at; else [Trusted] if every manifest is signed by somebody whom
//     the verifier's user trusts; else [Valid].
//   - A level is what the manifest shows of itself: 1 an announcement, 2 claims with excerpts, 3 a chain and a good
//     signature. What its publisher promises is compared with it, and does not count.
//   - A bundle is a manifest as it was served with the keys and the proof that were seen, so that it can be verified
//     again without a network.
//   - An incident is the record of one failure. Records are chained by hashes.
//
// # What a result means
//
// That an excerpt was found means that its words stand in the source. Whether they say what the claim says is the
// claim's own status; only a configured judge calls a claim unsupported whose excerpt is there. A good signature means
// that the publisher said so, and not that it is true. A report speaks of one moment and of what this machine was
// served: a site can show other pages to other visitors.
//
// # Cost and safety
//
// Every URL here is named by data, so all fetching is [snapshot.Fetcher]'s, which reaches no private network. A job has
// [Limits]; what goes beyond them is unverifiable and says so. Each URL is fetched once in a job.
package verify
