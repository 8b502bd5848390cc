// Package examples has only tests: it runs each of the programs in the directories here and checks what they print.
// Nothing in them is more than a user of ibid has: the public packages, the HTTP API, stock SDKs.
//
// It is a module of its own, so that who uses ibid does not get the SDKs.
package examples
