package ibid_test

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// vectorOptions specifies how a vector's inputs are prepared and decoded. The section options has one per line:
//
//	format NAME          DecodeOptions.Format
//	provider NAME        DecodeOptions.Provider
//	status N             DecodeOptions.Status
//	limits.NAME N        a field of DecodeOptions.Limits in lower case
//	mapping.NAME VALUE   a field of the only DecodeOptions.Mappings in lower case
//	crlf                 the lines of the inputs end with CR LF
//	chomp                the inputs do not end with a newline
//	escapes              \xNN in the inputs stands for that byte
type vectorOptions struct {
	decode               ibid.DecodeOptions
	crlf, chomp, escapes bool
}

func readVectorOptions(t *testing.T, v *vector) vectorOptions {
	t.Helper()
	o := vectorOptions{decode: ibid.DecodeOptions{Request: v.section("request.json")}}
	var err error
	if documents := v.section("documents.json"); documents != nil {
		if o.decode.Documents, err = ibid.ReadDocuments(documents); err != nil {
			t.Fatalf("section documents.json: %v", err)
		}
	}
	for line := range strings.Lines(string(v.section("options"))) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		name, value := words[0], strings.Join(words[1:], " ")
		switch name {
		case "format":
			o.decode.Format = value
		case "provider":
			o.decode.Provider = value
		case "status":
			if o.decode.Status, err = strconv.Atoi(value); err != nil {
				t.Fatalf("section options: %v", err)
			}
		case "crlf":
			o.crlf = true
		case "chomp":
			o.chomp = true
		case "escapes":
			o.escapes = true
		default:
			if field, ok := strings.CutPrefix(name, "mapping."); ok {
				if o.decode.Mappings == nil {
					o.decode.Mappings = make([]ibid.Mapping, 1)
				}
				fieldOf(t, &o.decode.Mappings[0], field).SetString(value)
				break
			}
			setLimit(t, &o.decode.Limits, name, value)
		}
	}
	return o
}

func setLimit(t *testing.T, limits *ibid.Limits, name, value string) {
	t.Helper()
	name, ok := strings.CutPrefix(name, "limits.")
	n, err := strconv.Atoi(value)
	if !ok || err != nil {
		t.Fatalf("section options: %s %s is unknown", name, value)
	}
	fieldOf(t, limits, name).SetInt(int64(n))
}

// fieldOf returns the field of a struct whose name in lower case is given.
func fieldOf(t *testing.T, of any, name string) reflect.Value {
	t.Helper()
	field := reflect.ValueOf(of).Elem().FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
	if !field.IsValid() {
		t.Fatalf("section options: %s is unknown", name)
	}
	return field
}

// input returns the input in a section.
func (o *vectorOptions) input(t *testing.T, section string, data []byte) []byte {
	t.Helper()
	if o.chomp {
		data = bytes.TrimSuffix(data, []byte("\n"))
	}
	if section == "stream.aws.jsonl" {
		return encodeAWS(t, data)
	}
	if o.crlf {
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	if o.escapes {
		data = unescapeBytes(t, data)
	}
	return data
}

func unescapeBytes(t *testing.T, data []byte) []byte {
	t.Helper()
	var out []byte
	for {
		before, after, found := bytes.Cut(data, []byte(`\x`))
		out = append(out, before...)
		if !found {
			return out
		}
		if len(after) < 2 {
			t.Fatal(`\x without two digits`)
		}
		n, err := strconv.ParseUint(string(after[:2]), 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, byte(n))
		data = after[2:]
	}
}
