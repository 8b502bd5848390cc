package server

import (
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// boundMemory tells Go's garbage collector how much memory this program may take, unless GOMEMLIMIT does, and returns
// the size of the gateway's budget for requests and responses: memory, or half of what there is if that is 0. The rest
// is for the database, the caches and garbage.
func (s *Server) boundMemory(memory int64) int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		if limit = memoryIn(os.DirFS("/")); limit == 0 {
			return memory // the gateway has a default
		}
		limit -= limit / 10 // what the garbage collector does not know of
		debug.SetMemoryLimit(limit)
	}
	if memory == 0 {
		memory = limit / 2
	}
	s.log.Debug("memory is bounded", slog.Int64("go", limit), slog.Int64("requests", memory))
	return memory
}

// memoryIn returns how many bytes of memory a program in a system with these files has: what its control group and
// those around it allow, or all of the machine's. It is 0 if that is unknown.
func memoryIn(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	file := func(name string) string {
		b, _ := fs.ReadFile(root, name) // there are other systems
		return strings.TrimSpace(string(b))
	}
	note := func(text string, unit int64) {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n < math.MaxInt64/unit {
			least = min(least, n*unit)
		}
	}
	for line := range strings.Lines(file("proc/meminfo")) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			note(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 1<<10)
		}
	}
	groups := "0::/\n0:memory:/\n" + file("proc/self/cgroup") // a container sees its own as the root
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, limit := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[1] == "memory": // version 1
			base, limit = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case parts[1] != "":
			continue
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			note(file(path.Join(base, dir, limit)), 1)
			if dir == "/" {
				break
			}
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}
