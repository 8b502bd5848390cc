package support

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

var writeIDF = flag.Bool("idf", false, "write idf.bin (needs $IBID_SHARED/data/words40k.txt)")

// wordsSHA256 is the hash of the list of 40,000 English words (public domain), commonest first, that idf.bin was made
// from.
const wordsSHA256 = "062a664fb437e45618f15a958d4750bf1f936e50cd96a1e485fd577dcceab062"

// idf.bin is what makeIDF makes from the list.
func TestIDF(t *testing.T) {
	list := testenv.Must(os.ReadFile(filepath.Join(testenv.Shared(t), "data", "words40k.txt")))(t)
	if got := sha256.Sum256(list); hex.EncodeToString(got[:]) != wordsSHA256 {
		t.Fatalf("the list has another hash: %x", got)
	}
	bin := makeIDF(list)
	if *writeIDF {
		testenv.OK(t, os.WriteFile("idf.bin", bin, 0o644))
		return
	}
	if string(bin) != idfBin {
		t.Error("idf.bin is out of date: go test ./support -run TestIDF -idf")
	}
}

// makeIDF makes idf.bin from a list of words, commonest first.
func makeIDF(list []byte) []byte {
	words := strings.Split(strings.TrimSpace(string(list)), "\n")
	mass := map[uint32]float64{}
	for i, word := range words {
		r := reader{text: word}
		for t := (token{}); r.next(&t); {
			if t.flags&flagNumber == 0 && t.start == 0 && t.end == len(word) {
				mass[t.key] += 1 / float64(i+1+3)
			}
		}
	}
	keys := make([]uint32, 0, len(mass))
	for key := range mass {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	sum := sha256.Sum256(list)
	bin := append([]byte(idfMagic), sum[:]...)
	bin = binary.LittleEndian.AppendUint32(bin, uint32(len(keys)))
	for _, key := range keys {
		bin = binary.LittleEndian.AppendUint32(bin, key)
	}
	for _, key := range keys {
		share := min(-math.Log(mass[key])/maxIDF, 1)
		bin = append(bin, uint8(math.Round(255*share)))
	}
	return bin
}

// The file is small and complete, and its weights are plausible.
func TestRarity(t *testing.T) {
	if len(idfBin) > 256<<10 {
		t.Errorf("idf.bin has %d bytes, more than 256 KiB", len(idfBin))
	}
	if got := hex.EncodeToString([]byte(idfBin[len(idfMagic) : len(idfMagic)+32])); got != wordsSHA256 {
		t.Errorf("idf.bin was made from the list %s, not %s", got, wordsSHA256)
	}
	var last float64
	for _, word := range []string{"the", "was", "government", "harbour", "xylophonist"} {
		w := english().weight(stemKey([]byte(word)))
		if w < last {
			t.Errorf("%s weighs %g, less than the commoner word before it, %g", word, w, last)
		}
		last = w
	}
	if last != weightUnknown {
		t.Errorf("a word that is not in the list weighs %g", last)
	}
}
