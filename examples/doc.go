// Package examples contains only tests: it runs the programs in its directories and checks their output. They use only
// what a user of ibid has: the public packages, the HTTP API, stock SDKs.
//
// It is a separate module so that users of ibid do not depend on the SDKs.
package examples
