// Package chat asks a provider through the gateway of the same process and tells the answer with its citations while it
// arrives, in a form that the asker understands.
//
// # Terms
//
//   - A question is what is asked of a provider: a conversation, documents, tools.
//   - A turn is one question and its answer, while it arrives and for a short time after that. It goes on when whoever
//     asked
//     leaves, and can be followed again from its beginning.
//   - A form is how a turn is told: ibid's own events, the AI SDK's UI message stream, OpenAI's chunks, one JSON
//     document.
package chat
