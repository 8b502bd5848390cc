// Package page is where people meet what a gateway kept: answers with their citations, conversations, runs, sources,
// and what came of checking them. Its HTML is made on the server and works without JavaScript; with it, cards open at
// once and answers appear while they arrive.
//
// # Terms
//
//   - A chip is a citation's mark in the text: the site or file it rests on, and how many more.
//   - A card shows what a chip stands for: the source, its words, where they stand, and a badge.
//   - A badge is a word and an icon for what was checked about a citation, and never for more than that. See [badge].
//   - A panel shows one source: the passage in its context, its versions, and what rests on it.
//
// # What a page may do
//
// Nothing is loaded from anywhere but this server. Titles, addresses, quotes and the words of models are hostile input:
// they are text, in isolation (bidi), and links only to http and https. The content security policy allows no inline
// script and no foreign request. What a provider demands to be shown as sent stands in a sandboxed frame with a policy
// of its own.
//
// Whoever reads a page must have an access token with the scope read, once there are tokens: it is in a cookie of this
// site alone. What changes something is a POST from one of our own pages.
package page
