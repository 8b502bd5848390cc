// Package interop contains only tests. They run the providers' official SDKs, unchanged except for their base URL,
// against a real ibid serve in front of a simulated upstream that speaks the providers' wire formats. It is a separate
// module so that users of ibid do not depend on the SDKs. The SDKs for Go are tested here, those for JavaScript in
// npm/. In python/, LangChain and LlamaIndex read what package export writes, and ask as RAG programs do, with numbered
// passages in the prompt that the model cites. Agents of five frameworks, in python/ and npm/, are run with the lines of
// docs/agents.md. Package kinds compares the SDKs' types with the vectors.
//
// Every request is made three times: directly to the upstream, through the gateway, and directly with [tee.Transport]
// under the SDK. The SDK must not see a difference, and the answer that ibid stores must be the one the upstream meant.
//
// [tee.Transport]: https://pkg.go.dev/github.com/ibidhq/ibid/tee#Transport
package interop
