// Package server puts ibid together: the store, the gateway, the API, chat, the page and MCP behind one listener, with
// what works in the background. `ibid serve` and `ibid demo` are thin commands over it, and tests that need all of ibid
// start it the same way.
//
// # Configuration
//
// [Config] holds every setting, and [Defaults] is the only place with their defaults. A setting can be said in four
// places; the first of these counts:
//
//  1. a flag ([Config.AddFlags]),
//  2. the environment variable of that flag (read by the command),
//  3. the YAML file that [Config.File] names: the members of the file have the names of the flags,
//  4. the default.
//
// What is more than a text (upstreams, retention, strategies, checkers, chat) is described only in the file and is
// decoded strictly: an unknown member or a value of the wrong kind is an error with its line and column. To add an
// option, add a field to Config, a line to AddFlags, and the code that uses it.
//
// # Life of a server
//
// [Open] opens everything, [Server.Run] serves until its context ends, then lets the calls under way end, stores their
// answers and closes what was opened. [Check] looks at all that Open needs and changes nothing.
package server

//go:generate go test -run ^Test(OpenAPI|Endpoints)$ . -update
