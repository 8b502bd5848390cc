package ibid

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

func TestLinRatio(t *testing.T) {
	size, _ := strconv.Atoi(os.Getenv("SIZE"))
	runtime.LockOSThread()
	for name, shape := range shapes {
		a, _ := boundsAnswer(shape(size), "T", "https://s.example/p")
		b, _ := boundsAnswer(shape(2*size), "T", "https://s.example/p")
		for _, style := range []string{"claims", "latex", "live"} {
			short, long := time.Hour, time.Hour
			for range 3 {
				short = min(short, cpuOf(t, func() { renderings[style](a) }))
				long = min(long, cpuOf(t, func() { renderings[style](b) }))
			}
			fmt.Printf("%5.2f %8.1f ms %s %s\n", float64(long)/float64(short), float64(short)/1e6, name, style)
		}
	}
}
