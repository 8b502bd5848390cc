// Package uimessage implements the protocol of the AI SDK's front-ends (npm ai, version 5 and later): it reads the
// requests of useChat, and writes answers as they arrive as a UI message stream (protocol v1), and stored answers as UI
// messages.
//
// # Terms
//
//   - A chunk is one JSON object of the stream, a message is what a client builds from chunks, a part is a piece of a
//     message: text, a source, data.
//   - A text part has the text of one message of the answer, as long as its kind is the same (see [ibid.Part]):
//     front-ends lay out each text part on its own, and a sentence may span several contents of one message.
//   - The status of citations is pending while they may still change, final when the answer has ended, verified when
//     they were checked.
//
// # What clients accept
//
// Clients validate every chunk and abandon a message at the first one they do not know; the oldest, 5.0.0, reject even
// an unknown member. So only chunks and members that it documents are written, and unknown values are left out, never
// null. Clients show a source each time it is sent, so it is sent once.
//
// # Where citations are
//
// The data of the part data-citations, replaced by later ones with the same id, has all citations. The
// providerMetadata.ibid of a text part has those that end in it. Both are rows of an answer document: with its names,
// and with offsets in UTF-16 code units, as in JavaScript, from the beginning of the message's text, which is that of
// its text parts joined by nothing. A text part states where in it it begins. The providerMetadata.ibid of a source is
// a source of the document without its content and chunks, because useChat sends all messages back with every question.
package uimessage
