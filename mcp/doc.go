// Package mcp offers ibid to agents, as tools over the Model Context Protocol (https://modelcontextprotocol.io).
//
// # Terms
//
//   - A client is the program that an agent runs in. It uses JSON-RPC: one message per line over stdio, or one message
//     per POST over streamable HTTP.
//   - A tool is a function that the client's model may call. Its arguments and its result are JSON objects, described
//     by the JSON schemas in the directory tools; docs/mcp.md lists them.
//   - A result has two equivalent parts: a short text for the model, and structured content for programs.
//   - A tool error is a result with a reason and a hint, so that the model can correct its call. A protocol error is
//     for messages that do not call an existing tool.
//
// # Guarantees
//
// No tool changes stored data, except what [Options].Verify may record. No tool opens files. Only verify uses the
// network, through [verify.Verifier], which is limited to public addresses unless its operator allows others. Arguments
// and results are not logged.
//
// Over HTTP there are no sessions: each POST is independent, so any node can answer it, with the rights of its token.
package mcp
