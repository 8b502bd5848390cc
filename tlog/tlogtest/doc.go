// Package tlogtest says whether a store of logs is right: every [tlog.Tiles] passes [TestTiles]. Only tests import it.
package tlogtest
