package gateway

import (
	"math"
	"runtime/debug"
)

const (
	// DecodeMemory is how many bytes of memory a byte of a response takes while it is decoded, and its answer rendered
	// or packed for the journal. Few take as much, and none more than 8.
	DecodeMemory = 6
	// defaultMemory is the default of Limits.Memory if the program has no memory limit.
	defaultMemory = 1 << 30
)

// Memory returns the one budget, in bytes of memory, of what is held for requests and responses: bodies, and what takes
// decoding, unpacking, rendering and packing them. Code outside the gateway that does any of it must hold it there.
func (g *Gateway) Memory() *Budget { return g.memory }

// memoryByDefault returns half of the memory that this program may use.
func memoryByDefault() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit / 2
	}
	return defaultMemory
}

// holdDecoding reserves memory to decode and keep n bytes of the response. The first step is reserved before the call
// is forwarded, so that a caller without any left is told so.
func (e *exchange) holdDecoding(n int64) error {
	if e.decodable >= n {
		e.decodable -= n
		return nil
	}
	if err := e.g.memory.HoldMore(e.who, e.decoded, n*DecodeMemory); err != nil {
		return err
	}
	e.decoded += n * DecodeMemory
	return nil
}
