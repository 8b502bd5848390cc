// Package uimessage speaks the language of the AI SDK's front-ends (npm ai, version 5 and later): it reads what useChat
// sends, writes answers while they arrive as a UI message stream (protocol v1), and stored answers as UI messages.
//
// # Terms
//
//   - A chunk is one JSON object of the stream, a message what a client builds of chunks, a part a piece of a message:
//     text,
//     a source, data.
//   - A text part has the text of one message of the answer, as far as it is of one kind (see [ibid.Part]): front-ends
//     lay out
//     each text part as a text of its own, and a sentence may go through several contents of one message.
//   - The status of citations is pending while they may still change, final when the answer has ended, verified when
//     they
//     were checked.
//
// # What clients accept
//
// Clients check every chunk and give up a message with the first one that they do not know; the oldest, 5.0.0, refuse
// even a member that they do not know. So only chunks and members that it documents are written, and what is not known
// of them is left out: never null. Clients show a source as often as it is sent, so it is sent once.
//
// # Where citations are
//
// The data of the one part data-citations, which later ones with its id replace, are all citations. The
// providerMetadata.ibid of a text part has those that end in it. Both are rows of an answer document: its names, the
// offsets in UTF-16 code units, JavaScript's own, from the beginning of the message's text, which is that of its text
// parts joined by nothing. A text part says where in it it begins. The providerMetadata.ibid of a source is a source of
// the document, without its content and its chunks: useChat sends all messages back with every question.
package uimessage
