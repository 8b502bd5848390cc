// Package mcp offers ibid to agents, as tools over the Model Context Protocol (https://modelcontextprotocol.io).
//
// # Terms
//
//   - A client is the program that an agent runs in. It speaks JSON-RPC: one message a line over stdio, or one message
//     a POST over
//     streamable HTTP.
//   - A tool is a function that the client's model may call. Its arguments and its result are JSON objects, described
//     by the JSON
//     schemas in the directory tools; docs/mcp.md lists them.
//   - A result has two parts that say the same: a short text for the model, and structured content for programs.
//   - A tool error is a result that says what was wrong and what to do about it, so that the model can mend its call. A
//     protocol error
//     is for messages that are no calls of a tool that is there.
//
// # What can be relied on
//
// No tool changes what is stored, but what [Options].Verify may keep. No tool opens a file. Only verify uses the
// network, through [verify.Verifier], which reaches public addresses only unless its operator says otherwise. What
// tools are given and what they give back is not logged.
//
// Over HTTP there are no sessions: each POST stands alone, so any node answers it, with the rights of the token that it
// came with.
package mcp
