package journal

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// crashDir is set in the environment of the process to be killed.
const crashDir = "IBID_TEST_JOURNAL_DIR"

// crashChild appends as fast as it can and prints each record once Sync returned for it, until it is killed.
func crashChild(dir string) {
	j, err := Open(dir, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var out sync.Mutex
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				record := fmt.Sprintf("%d-%d-%s", w, i, strings.Repeat("x", rand.IntN(3000)))
				p, err := j.Append([]byte(record))
				if err == nil {
					err = j.Sync(context.Background(), p)
				}
				out.Lock()
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Println(p, record)
				out.Unlock()
			}
		}()
	}
	select {}
}

// A process is killed while it writes: every record for which Sync returned is there, and nothing counts as damaged.
func TestKill(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	dir := t.TempDir()
	synced := make(map[string]bool)
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		cmd.Stderr = os.Stderr
		out := testenv.Must(cmd.StdoutPipe())(t)
		testenv.OK(t, cmd.Start())
		lines := bufio.NewReader(out)
		for n, last := 0, 100+rand.IntN(300); ; n++ {
			if n == last {
				testenv.OK(t, cmd.Process.Kill())
			}
			line, err := lines.ReadString('\n')
			if err != nil { // an incomplete line does not count
				break
			}
			synced[strings.TrimSuffix(line, "\n")] = true
		}
		_ = cmd.Wait() // killed
		got, stats := readAll(t, dir)
		there := make(map[string]bool, len(got))
		for _, record := range got {
			there[record] = true
		}
		for record := range synced {
			if !there[record] {
				t.Fatalf("round %d: %.40q… is missing", round, record)
			}
		}
		if stats.Damaged != 0 || len(synced) < 100 {
			t.Errorf("round %d: %d records synced, %+v", round, len(synced), stats)
		}
	}
	t.Logf("%d records", len(synced))
}
