// Package page serves the web pages on which people read what a gateway kept: answers with their citations,
// conversations, runs, sources, and the results of checking them. The HTML is rendered on the server and works without
// JavaScript; with it, cards open at once and answers appear as they arrive.
//
// # Terms
//
//   - A chip is a citation's mark in the text: the site or file it rests on, and the number of further ones.
//   - A card shows what a chip stands for: the source, its words, their place in it, and a badge.
//   - A badge is a word and an icon for what was checked about a citation, and never for more than that. See [badge].
//   - A panel shows one source: the passage in its context, its versions, and the citations that rest on it.
//
// # What a page may do
//
// Everything is loaded from this server. Titles, addresses, quotes and the words of models are hostile input: they are
// shown as text, isolated for bidi, and linked only over http and https. The content security policy allows no inline
// script and no request to another origin. HTML that a provider requires to be shown as sent is put in a sandboxed
// frame with a policy of its own.
//
// Once there are tokens, readers need an access token with the scope read, which is kept in a cookie of this site
// alone. Every change is a POST from one of our own pages.
package page
