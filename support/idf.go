package support

import (
	_ "embed"
	"encoding/binary"
	"sync"
)

// idf.bin says how rare English words are. It begins with idfMagic, the SHA-256 of the word list it was made from (32
// bytes) and the number of entries (4 bytes, little-endian, as all that follows). Then come the keys of the entries,
// four bytes each, ascending, and their weights, one byte each.
//
// The list has one word a line, the commonest first. An entry is the stem of one or more of its words. Its mass is the
// sum of 1/(rank+3) over them, the rank counted from 1: nearly how often they occur. Its weight is the share of maxIDF
// that -ln(mass) is, as a byte.
//
// TestIDF makes it: `go test ./support -run TestIDF -idf`, with the list in $IBID_SHARED/data/words40k.txt.
//
//go:embed idf.bin
var idfBin string

const (
	idfMagic  = "ibid-idf/1\n"
	idfHeader = len(idfMagic) + 32 + 4
)

// idfTable tells how rare a stem is in English. It is a hash table with open addressing.
type idfTable struct {
	keys    []uint32 // 0: free
	weights []uint8
	shift   uint
}

//nolint:gochecknoglobals // read from idf.bin when first asked for, never written afterwards
var english = sync.OnceValue(func() *idfTable { return readIDF(idfBin) })

// readIDF reads idf.bin. It is part of the program, and a test holds that it is whole.
func readIDF(bin string) *idfTable {
	n := 0
	if len(bin) > idfHeader {
		n = int(binary.LittleEndian.Uint32([]byte(bin[idfHeader-4 : idfHeader])))
	}
	bits := 1
	for 1<<bits < 2*n {
		bits++
	}
	t := &idfTable{make([]uint32, 1<<bits), make([]uint8, 1<<bits), uint(32 - bits)}
	entries := []byte(bin[min(idfHeader, len(bin)):])
	for i := range n {
		key := binary.LittleEndian.Uint32(entries[4*i:])
		slot := t.slot(key)
		t.keys[slot], t.weights[slot] = key, entries[4*n+i]
	}
	return t
}

func (t *idfTable) slot(key uint32) int {
	slot := int(key * 0x9E3779B1 >> t.shift)
	for t.keys[slot] != 0 && t.keys[slot] != key {
		slot = (slot + 1) & (len(t.keys) - 1)
	}
	return slot
}

const (
	maxIDF = 11.0 // no word weighs more: what is rarer is a name or a slip
	// weightContent is what words with content weigh at least, nearly all of them.
	weightContent = 0.45
	weightUnknown = 1 // of a word that is not in the table: a name, mostly
	weightNumber  = 1
)

// weight returns how rare a term is: little for what all texts have, 1 for what few have.
func (t *idfTable) weight(key uint32) float64 {
	if key&1 != 0 {
		return weightNumber
	}
	slot := t.slot(key)
	if t.keys[slot] != key {
		return weightUnknown
	}
	return float64(t.weights[slot]) / 255
}
