package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expectations of the tests")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ibid": main, "upstream": upstreamMain, "fetch": fetchMain, "lines": linesMain, "model": modelMain, "site": siteMain, "agent": agentMain})
}

// The stories of testdata/script. In addition to the commands of testscript they have
//
//	status CODE COMMAND…   runs a command that exits with just that code
//	pack CODING FILE TO    compresses
//	tar TO FILE…           makes an archive
//	cut BYTES FILE TO      keeps the beginning of a file
//	documents N            checks that the last standard output was N answer documents, one per line
//	write FILE BYTES       writes bytes in Go syntax: \x00
//	await FILE [VARIABLE]  waits until a file has content, and sets a variable to its first line;
//	                       VARIABLE_HOST is the same without http://
//	cert CERT KEY          makes a certificate for 127.0.0.1
//	sigterm                sends SIGTERM to the running ibid
//
// and programs: upstream serves the answers of internal/replay, fetch makes one HTTP request (see servers_test.go).
func TestScript(t *testing.T) { testscript.Run(t, scripts("testdata/script")) }

func scripts(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":    cmdStatus,
			"pack":      cmdPack,
			"tar":       cmdTar,
			"cut":       cmdCut,
			"flip":      cmdFlip,
			"documents": cmdDocuments,
			"write":     cmdWrite,
			"await":     cmdAwait,
			"reserve":   cmdReserve,
			"extract":   cmdExtract,
			"cert":      cmdCert,
			"sigterm":   cmdSigterm,
		},
	}
}

func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func cmdPack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: pack CODING FILE TO")
	}
	packed, err := pack(args[0], []byte(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), packed, 0o666))
}

func cmdTar(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: tar TO FILE…")
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range args[1:] {
		data := ts.ReadFile(name)
		ts.Check(w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600}))
		_, err := w.Write([]byte(data))
		ts.Check(err)
	}
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
}

func cmdCut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: cut BYTES FILE TO")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	text := ts.ReadFile(args[1])
	if n < 0 { // from the end
		n += len(text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(text[:n]), 0o666))
}

// cmdFlip changes the byte at an offset from the end of a file.
func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE -OFFSET")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	b := []byte(ts.ReadFile(args[0]))
	b[len(b)+n] ^= 0xff
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o666))
}

func cmdDocuments(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: documents N")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		got++
		ts.Check(checkDocument(line))
	}
	if got != want {
		ts.Fatalf("%d documents, want %d", got, want)
	}
}

func cmdWrite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: write FILE BYTES")
	}
	data, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(data), 0o666))
}

// checkDocument checks that a line is an answer document with its input.
func checkDocument(line string) error {
	var document struct {
		Version   int    `json:"version"`
		Input     string `json:"input"`
		Sources   []any  `json:"sources"`
		Citations []any  `json:"citations"`
	}
	if !strings.HasSuffix(line, "}\n") {
		return errors.New("a document is not one whole line")
	}
	if err := json.Unmarshal([]byte(line), &document); err != nil {
		return err
	}
	if document.Version != 1 || document.Input == "" || document.Sources == nil || document.Citations == nil {
		return errors.New("not an answer document: " + line)
	}
	return nil
}

// pack compresses with a Content-Encoding; raw is deflate without the zlib header.
func pack(coding string, data []byte) ([]byte, error) {
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw":
		w, err = flate.NewWriter(&b, flate.BestCompression)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	default:
		err = errors.New("unknown coding " + coding)
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
