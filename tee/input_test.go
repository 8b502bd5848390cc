package tee_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid/internal/testenv"
)

// input is one response, of a vector or a recording.
type input struct {
	response, request []byte
	mark              int  // see marked
	several           bool // it contains several responses in sequence, or other data after one
}

// readInputs returns the responses of all vectors, and of the recordings if there are any.
func readInputs(t *testing.T) map[string]input {
	t.Helper()
	inputs := map[string]input{}
	files, err := filepath.Glob("../testdata/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, file := range files {
		archive := testenv.Must(txtar.ParseFile(file))(t)
		name := filepath.ToSlash(strings.TrimSuffix(strings.TrimPrefix(file, filepath.Clean("../testdata")+string(filepath.Separator)), ".txtar"))
		var request []byte
		for _, f := range archive.Files {
			if f.Name == "request.json" {
				request = f.Data
			}
		}
		for _, f := range archive.Files {
			switch f.Name {
			case "body.json", "body.txt", "stream.sse", "stream.ndjson", "stream.array.json":
			case "stream.aws.jsonl":
				f.Data = encodeAWS(t, f.Data)
			default:
				continue
			}
			inputs[name+"/"+f.Name] = input{
				response: f.Data, request: request,
				several: strings.HasSuffix(name, "/two-bodies") || strings.HasSuffix(name, "/trailing-bytes"),
			}
		}
	}
	t.Run("recordings", func(t *testing.T) { addRecordings(t, inputs) })
	return inputs
}

// addRecordings adds the recordings, or skips the test.
func addRecordings(t *testing.T, inputs map[string]input) {
	t.Helper()
	dir := filepath.Join(testenv.Shared(t), "corpus")
	manifest := testenv.Must(os.ReadFile(filepath.Join(dir, "MANIFEST.tsv")))(t)
	for line := range strings.Lines(string(manifest)) {
		name, _, _ := strings.Cut(line, "\t")
		if name == "path" {
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		response := testenv.Must(os.ReadFile(file))(t)
		if strings.HasSuffix(name, ".jsonl") {
			response = encodeAWS(t, response)
		}
		request, err := os.ReadFile(strings.TrimSuffix(file, filepath.Ext(file)) + ".request.json")
		if err != nil {
			request = nil
		}
		turns := bytes.Count(response, []byte(`"message_start"`))
		inputs[name] = input{response: response, request: request, several: turns > 1}
	}
}

// encodeAWS encodes lines as an AWS event stream. Each line is an object with one member: the event's type and its
// payload. It understands the prefixes !bytes, !exception and !checksum of vectors, and !cut drops the message.
func encodeAWS(t *testing.T, lines []byte) []byte {
	t.Helper()
	var out []byte
	for line := range bytes.Lines(lines) {
		at := bytes.IndexByte(line, '{')
		if at < 0 || bytes.Contains(line[:at], []byte("!cut")) {
			continue
		}
		words := string(line[:at])
		var event map[string]json.RawMessage
		testenv.OK(t, json.Unmarshal(line[at:], &event))
		for name, payload := range event {
			kind, header := "event", ":event-type"
			if strings.Contains(words, "!exception") {
				kind, header = "exception", ":exception-type"
			}
			if strings.Contains(words, "!bytes") {
				payload = []byte(`{"bytes":"` + base64.StdEncoding.EncodeToString(payload) + `"}`)
			}
			message := awsMessage(header, name, kind, payload)
			if strings.Contains(words, "!checksum") {
				message[len(message)-1] ^= 0xff
			}
			out = append(out, message...)
		}
	}
	return out
}

func awsMessage(header, name, kind string, payload []byte) []byte {
	var headers []byte
	for _, h := range [][2]string{{header, name}, {":message-type", kind}} {
		headers = append(headers, byte(len(h[0])))
		headers = append(headers, h[0]...)
		headers = append(headers, 7) // a string
		headers = binary.BigEndian.AppendUint16(headers, uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
