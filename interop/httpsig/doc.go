// Package httpsig has only tests: ibid's message signatures beside those of an independent implementation of RFC 9421,
// github.com/yaronf/httpsign. What one signs the other verifies; and of many thousand mutated messages both say the
// same, or the test knows why they do not.
package httpsig
