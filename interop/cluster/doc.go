// Command cluster runs three gateways, a NATS cluster of three and PostgreSQL on this machine, in separate processes,
// to show that no fault of one of them loses or alters an answer.
//
//	make cluster                 starts them, prints the gateways' URLs, and stops everything on Ctrl-C
//
// The tests of this package start the same cluster. docs/reliability.md has a row for every fault.
package main
