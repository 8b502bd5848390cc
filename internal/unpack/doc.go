// Package unpack decompresses HTTP's content codings, and limits the output: a bomb of a few kilobytes could otherwise
// fill the memory.
package unpack
