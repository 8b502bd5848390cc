package ibid_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid"
)

// The place of the end mark in every framing. The mark is between » and «.
func TestDecoderEnd(t *testing.T) {
	const (
		chunk   = `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}`
		gemini  = `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"modelVersion":"m"}`
		stopped = `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}],"modelVersion":"m"}`
		counted = `{"usageMetadata":{"totalTokenCount":7},"modelVersion":"m"}`
		body    = `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]`
		message = `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[]}}`
	)
	for _, tc := range []struct {
		name, input string
		unsure      bool
	}{
		{"an event stream's last data", "data: " + chunk + "\n\n»data: [DONE]\n\n«", false},
		{"with lines that end in CR LF, and what follows", "data: " + chunk + "\r\n\r\n»data: [DONE]\r\n\r\n«: bye\r\n", false},
		{"earlier lines of its event", "data: " + chunk + "\n\n»id: 7\n: last\ndata: [DONE]\n\n«", false},
		{"without a blank line: at the end of the input", "data: " + chunk + "\n\n»data: [DONE]\n«", false},
		{"after a byte order mark and white space", "\xef\xbb\xbf \n\ndata: " + chunk + "\n\n»data: [DONE]\n\n«", false},
		{"a named event", "event: message_start\ndata: " + message + "\n\n»event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n«", false},
		{"the first of two", "data: " + chunk + "\n\n»data: [DONE]\n\n«data: [DONE]\n\n", false},
		{"an error ends a stream", "data: " + chunk + "\n\n»data: {\"error\":{\"message\":\"busy\"}}\n\n«data: [DONE]\n\n", false},
		{"even one that is not an event", "data: " + chunk + "\n\n»{\"error\":{\"message\":\"busy\"}}\n«", false},
		{"before the format is known, the stream may go on", "»data: {\"error\":{\"message\":\"busy\"}}\n\n«", true},
		{"and did", "data: {\"error\":{\"message\":\"busy\"}}\n\ndata: " + chunk + "\n\n»data: [DONE]\n\n«", false},
		{"the bracket of a body", body + "»}« \n", false},
		{"a body's error", `{"error":{"message":"no key"}»}«`, false},
		{"a line", `{"is_finished":false,"event_type":"text-generation","text":"a"}` + "\n»" + `{"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE"}` + "\n«", false},
		{"a chunk that others may follow", "data: " + gemini + "\n\n»data: " + stopped + "\n\n«", true},
		{"and did", "data: " + gemini + "\n\ndata: " + stopped + "\n\ndata: " + counted + "\n\n", false},
		{"another chunk of its kind", "data: " + stopped + "\n\n»data: " + stopped + "\n\n«", true},
		{"followed by no document", "data: " + gemini + "\n\n»data: " + stopped + "\n\n«: ping\n\n", true},
		{"an element of an array", "[" + gemini + ",\n»" + stopped + "«\n]\n", true},
		{"a complete body", strings.TrimSuffix(stopped, "}") + "»}«\n", false},
		{"a truncated stream", "data: " + chunk + "\n\ndata: [DON", false},
		{"a truncated body", body, false},
		{"text", "Herons nest in the old mill.\n", false},
		{"an unknown body", `{"a":1}`, false},
		{"nothing", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, _, marked := strings.Cut(tc.input, "»")
			input := []byte(strings.NewReplacer("»", "", "«", "").Replace(tc.input))
			want := "-1 false"
			if marked {
				want = fmt.Sprint(len(before), !tc.unsure)
			}
			d := &ibid.Decoder{}
			_, _ = d.Write(input)
			_ = d.Close()
			if at, sure := d.End(); fmt.Sprint(at, sure) != want {
				t.Errorf("End() = %d, %t, want %s", at, sure, want)
			}
			checkEnds(t, input, &ibid.DecodeOptions{})
		})
	}
}

// The end mark is found in the same place however the input is split, as soon as its last byte is written. Once it is
// sure, nothing that follows changes the answer.
func TestDecoderEndOfAll(t *testing.T) {
	t.Run("vectors", func(t *testing.T) {
		for _, file := range vectorFiles(t) {
			v := readVector(t, file)
			for i, input := range append(v.streams, v.body) {
				t.Run(fmt.Sprintf("%s/%d", file, i), func(t *testing.T) {
					t.Parallel()
					checkEnds(t, input, &v.options.decode)
				})
			}
		}
	})
	t.Run("recordings", func(t *testing.T) {
		for _, r := range readRecordings(t) {
			t.Run(r.path, func(t *testing.T) {
				t.Parallel()
				checkEnds(t, r.body, &ibid.DecodeOptions{Request: r.request})
			})
		}
	})
}

// FuzzDecoderEnd searches for inputs whose end mark depends on how they are split.
func FuzzDecoderEnd(f *testing.F) {
	for _, s := range []string{
		"data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\nid: 1\r\ndata: [DONE]\r\n\r\n",
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n{\"error\":{\"message\":\"m\"}}\n: c\ndata: [DONE]\n\n",
		"[{\"candidates\":[{\"finishReason\":\"STOP\"}]},\n{\"usageMetadata\":{},\"modelVersion\":\"m\"}]",
		"{\"is_finished\":false,\"event_type\":\"text-generation\"}\n{\"is_finished\":true,\"event_type\":\"stream-end\"}\n",
		" {\"object\":\"chat.completion\",\"choices\":[{\"message\":{\"content\":\"a\"}}]}\n{\"object\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		checkCuts(t, input, &ibid.DecodeOptions{})
	})
}

type endOf struct {
	at   int64
	sure bool
}

// checkEnds checks the results of End for an input against those byte by byte, and against what follows.
func checkEnds(t *testing.T, input []byte, opts *ibid.DecodeOptions) {
	t.Helper()
	checkFinal(t, input, opts, checkCuts(t, input, opts))
}

// checkCuts splits an input in every way and returns the result of End after each byte.
func checkCuts(t *testing.T, input []byte, opts *ibid.DecodeOptions) []endOf {
	t.Helper()
	ends := make([]endOf, len(input)+1) // by number of bytes written
	ends[0].at = -1
	one := ibid.Decoder{Options: *opts}
	for i := range input {
		_, _ = one.Write(input[i : i+1])
		e := &ends[i+1]
		if e.at, e.sure = one.End(); e.at > int64(i) || e.at < 0 && e.sure {
			t.Fatalf("after %d bytes, End returned %+v", i+1, *e)
		}
	}
	_ = one.Close()
	at, sure := one.End()
	for name, cut := range inputCuts() {
		d := ibid.Decoder{Options: *opts}
		for done := 0; done < len(input); {
			n := cut(len(input) - done)
			_, _ = d.Write(input[done : done+n])
			done += n
			var e endOf
			if e.at, e.sure = d.End(); e != ends[done] {
				t.Fatalf("%s: after %d bytes, End returned %+v, byte by byte %+v", name, done, e, ends[done])
			}
		}
		_ = d.Close()
		if a, s := d.End(); a != at || s != sure {
			t.Fatalf("%s: finally, End returned %d, %t, byte by byte %d, %t", name, a, s, at, sure)
		}
	}
	return ends
}

// checkFinal expects the answer at the first sure end to be that of the whole input, unless it contains several
// responses.
func checkFinal(t *testing.T, input []byte, opts *ibid.DecodeOptions, ends []endOf) {
	t.Helper()
	turns := bytes.Count(input, []byte(`"message_start"`))
	for n, e := range ends {
		if !e.sure {
			continue
		}
		if last := ends[len(input)]; turns > 1 || last.at != e.at {
			return
		}
		early, _ := ibid.Decode(input[:n], opts)
		whole, _ := ibid.Decode(input, opts)
		whole.Issues = slices.DeleteFunc(whole.Issues, func(is ibid.Issue) bool { return is.Code == "trailing-bytes" })
		if diff := cmp.Diff(whole, early, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the end at %d is sure after %d of %d bytes, but the answer changed (-whole +early):\n%s", e.at, n, len(input), diff)
		}
		return
	}
}

// A whole body that does not say why the answer ended, as shortened examples and some gateways write it, is complete,
// with an issue of its own: only a stream or a body that breaks off is truncated.
func TestNoFinishReason(t *testing.T) {
	const candidate = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Yaks graze."}]}%s}]}`
	for input, want := range map[string]string{
		fmt.Sprintf(candidate, ""):                          "true no-finish-reason",
		fmt.Sprintf(candidate, `,"finishReason":"OTHER"`):   "true ",
		"data: " + fmt.Sprintf(candidate, "") + "\n\n":      "false no-end-mark",
		"[" + fmt.Sprintf(candidate, "") + ",":              "false no-end-mark",
		strings.TrimSuffix(fmt.Sprintf(candidate, ""), "}"): "false truncated",
		`{"candidates":[]}`:                                 "false no-end-mark",
	} {
		a, _ := ibid.Decode([]byte(input), nil)
		code := ""
		if len(a.Issues) > 0 {
			code = a.Issues[0].Code
		}
		if got := fmt.Sprint(a.Complete, " ", code); got != want {
			t.Errorf("%s: %s, want %s", input, got, want)
		}
	}
}
