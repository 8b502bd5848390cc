// Package replay is an upstream that needs neither a key nor a network: it responds in the real wire formats of the
// providers, with their timing, using a few made-up answers about things that do not exist.
//
// A prompt always gets the same answer, the one it asks for (see [Answers]). It may also request something else:
//
//	call a tool            the model calls the first of the tools that the request offers
//	unless you can search  an answer without sources, if the request offers no tools
//	error 429              the provider's error body with that status; any status from 400 on
//	error in the stream    a stream that ends in an error, halfway through its text
//	break off              the connection is closed halfway through the answer
//
// The path selects the provider. It may begin with the provider's name if two providers share a path:
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
// A request to Anthropic that contains documents is answered as if these were the answer's sources, in order, without a
// search. One that contains search results is answered as if the sources were at their addresses. Mistral Chat only
// cites what a tool of the client's returned: a result with the sources under the keys "0", "1" and so on. Without one
// it answers in plain text.
//
// The answers are in answers/, the providers' formats in wire/: the Go files contain no JSON names of providers.
package replay
