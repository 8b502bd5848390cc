// Package server puts ibid together: the store, the gateway, the API, chat, the page and MCP behind one listener, with
// the background workers. `ibid serve` and `ibid demo` are thin commands on top of it, and tests that need all of ibid
// start it the same way.
//
// # Configuration
//
// [Config] holds every setting, and [Defaults] is the only place with their defaults. A setting comes from one of four
// places, in order of precedence:
//
//  1. a flag ([Config.AddFlags]),
//  2. the environment variable of that flag (read by the command),
//  3. the YAML file named by [Config.File], whose members are named like the flags,
//  4. the default.
//
// Settings with more structure (upstreams, retention, strategies, checkers, chat) are only in the file and are decoded
// strictly: an unknown member or a value of the wrong kind is an error with its line and column. To add an option, add
// a field to Config, a line to AddFlags, and the code that uses it.
//
// # Life of a server
//
// [Open] opens everything. [Server.Run] serves until its context ends, lets calls in progress end, stores their answers
// and closes everything. [Check] checks everything that Open needs and changes nothing.
package server

//go:generate go test -run ^Test(OpenAPI|OpenAPIAnswerSchema|Endpoints)$ . -update
