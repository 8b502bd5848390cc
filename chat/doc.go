// Package chat asks a provider through the gateway of the same process, and streams the answer with its citations in a
// form that the client understands.
//
// # Terms
//
//   - A question is what a provider is asked: a conversation, documents, tools.
//   - A turn is one question and its answer, while it arrives and for a short time after that. It goes on when the
//     client leaves, and can be followed again from its beginning.
//   - A form is how a turn is sent: ibid's own events, the AI SDK's UI message stream, OpenAI's chunks, one JSON
//     document.
package chat
