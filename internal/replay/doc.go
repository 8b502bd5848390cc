// Package replay is an upstream that needs no key and no network: it answers in the real wire formats of the providers,
// with their timing, from a few answers of its own about things that do not exist.
//
// A prompt is answered by the answer that it asks for (see [Answers]), always by the same one. It may also ask for
// something else to happen:
//
//	call a tool            the model wants to call the first of the tools that the request offers
//	unless you can search  an answer without sources, if the request offers no tools
//	error 429              the provider's error body with that status; any status from 400 on
//	error in the stream    a stream that ends in an error, half through its text
//	break off              the connection is cut half through the answer
//
// Which provider speaks is said by the path, which may begin with its name where two providers share one path:
//
//	POST /v1/responses                                  OpenAI Responses; GET /v1/responses/{id} fetches one again
//	POST /v1/chat/completions, /chat/completions        OpenAI Chat
//	POST /perplexity/chat/completions                   Perplexity
//	POST /mistral/v1/conversations                      Mistral Conversations
//	POST /mistral/v1/chat/completions                   Mistral Chat
//	POST /v1beta/models/{model}:generateContent         Gemini, and :streamGenerateContent with and without alt=sse
//	POST /v1/messages                                   Anthropic Messages
//	POST /v2/chat                                       Cohere
//
// A request to Anthropic that holds documents is answered as if these were the answer's sources, in their order; there
// is no search then. One that holds search results is answered as if the sources stood at the addresses of these.
// Likewise Mistral Chat cites only what a tool of the client's returned: a result with the sources under the keys "0",
// "1" and so on. Without one it answers in plain text.
//
// The answers are in answers/, what the providers make of them in wire/: no provider's JSON name stands in the Go
// files.
package replay
