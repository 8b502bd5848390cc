package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
)

// The output of a batch is UTF-8, whatever its ids were.
func TestBatchIsUTF8(t *testing.T) {
	var b bytes.Buffer
	testenv.OK(t, writeReport(&b, &support.ClaimVerdict{ID: json.RawMessage("\"a\xff\xfeb\"")}))
	if want := []byte("{\"id\":\"a\ufffdb\""); !bytes.HasPrefix(b.Bytes(), want) {
		t.Errorf("got %q, want it to begin with %q", b.Bytes(), want)
	}
}
