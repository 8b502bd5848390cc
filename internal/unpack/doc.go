// Package unpack reads what is compressed in the ways that HTTP knows, and bounds what comes out: a bomb of a few
// kilobytes would fill the memory.
package unpack
