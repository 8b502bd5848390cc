// Package verify checks the citations that agents publish: it reads the Citation-Source field of a response, fetches
// the manifests that it names, and reads each cited source again. Nothing that can be looked up is taken on trust.
//
// # Terms
//
//   - A response announces manifests; a manifest lists claims, each with its sources and excerpts; an excerpt is the
//     passage of a source's text that the claim rests on.
//   - A status is the result of one check, one of the words in docs/attribution-v1.md. It counts as a pass, an info, a
//     warning, as unverifiable (the check could not be made) or as a failure.
//   - A report has all results, and an overall state: [Invalid] if anything failed; else [Unverifiable] if a manifest
//     or a cited source could not be read; else [Trusted] if every manifest is signed by a signer that the user trusts;
//     else [Valid].
//   - A level is what the manifest itself proves: 1 an announcement, 2 claims with excerpts, 3 a chain and a good
//     signature. The level that its publisher promises is compared with it, and does not count.
//   - A bundle is a manifest as it was served, with the keys and the proof that were seen, so that it can be verified
//     again without a network.
//   - An incident is the record of one failure. Records form a hash chain.
//
// # What a result means
//
// An excerpt that was found is in the source, word for word. Whether it supports the claim is the claim's own status;
// only a configured judge calls a claim unsupported whose excerpt was found. A good signature means that the publisher
// made the statement, not that it is true. A report is about one moment and about what this machine was served: a site
// can serve other visitors other pages.
//
// # Cost and safety
//
// Every URL here comes from untrusted data, so all fetching goes through [snapshot.Fetcher], which reaches no private
// network. A job has [Limits]; anything beyond them is reported as unverifiable. Each URL is fetched once per job.
package verify
