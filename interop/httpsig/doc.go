// Package httpsig only has tests: it compares ibid's message signatures with an independent implementation of RFC 9421,
// github.com/yaronf/httpsign. Each verifies what the other signs, and they agree on many thousand mutated messages
// except for known differences.
package httpsig
