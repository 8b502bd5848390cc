// Package verifytest tests implementations of [verify.Memory].
package verifytest
