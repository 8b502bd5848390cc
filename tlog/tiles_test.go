package tlog_test

import (
	"testing"

	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/tlog/tlogtest"
)

func TestMemoryTiles(t *testing.T) {
	tlogtest.TestTiles(t, func(*testing.T) tlogtest.Opener {
		stores := map[string]*tlog.MemoryTiles{}
		return func(name string) tlog.Tiles {
			if stores[name] == nil {
				stores[name] = new(tlog.MemoryTiles)
			}
			return stores[name]
		}
	})
}
