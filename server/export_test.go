package server

// MemoryIn is tested with files of other systems.
var MemoryIn = memoryIn
