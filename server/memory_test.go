package server_test

import (
	"testing"
	"testing/fstest"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
)

// The memory is that of the machine, or what the nearest control group allows, of either version.
func TestMemoryIn(t *testing.T) {
	const machine = "MemTotal:       16000000 kB\nMemFree: 1 kB\n"
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing is known", nil, 0},
		{"the machine's", map[string]string{"proc/meminfo": machine}, 16000000 << 10},
		{"a container's", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		{"a unit's", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/system.slice/ibid.service\n",
			"sys/fs/cgroup/system.slice/ibid.service/memory.max": "max\n", "sys/fs/cgroup/system.slice/memory.max": "2147483648\n",
		}, 2 << 30},
		{"version 1", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "5:cpu:/a\n4:memory:/docker/abc\n",
			"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "536870912\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":            "9223372036854771712\n",
		}, 512 << 20},
		{"damage", map[string]string{"proc/meminfo": "MemTotal: x kB", "proc/self/cgroup": "::\n0\n0::../../x", "sys/fs/cgroup/memory.max": "-5"}, 0},
	} {
		files := fstest.MapFS{}
		for name, text := range test.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		testenv.Equal(t, test.name, test.want, server.MemoryIn(files))
	}
}
