// Package interop has only tests: the providers' official SDKs, unchanged but for their base URL, against a real ibid
// serve in front of a made-up upstream that speaks the providers' wire formats. It is a module of its own, so that who
// uses ibid does not get the SDKs. Those for Go are tested here, those for JavaScript in npm/. In python/ LangChain
// and LlamaIndex read what package export writes. Package kinds holds the SDKs' types against the vectors.
//
// Every case is asked three times: at the upstream itself, through the gateway, and at the upstream with
// [tee.Transport] under the SDK. The SDK must not see a difference, and what ibid kept must be what the upstream meant.
//
// [tee.Transport]: https://pkg.go.dev/github.com/ibidhq/ibid/tee#Transport
package interop
