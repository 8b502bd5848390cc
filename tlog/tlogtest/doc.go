// Package tlogtest tests implementations of [tlog.Tiles] with [TestTiles]. Only tests import it.
package tlogtest
