package bench_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/ibidhq/ibid"
)

// stream is a response in pieces.
type stream struct {
	format  string
	framing framing
	docs    []document
	tail    string                                    // the rest, which is not JSON
	read    func(doc []byte) (text string, err error) // the decoding by hand
}

// document is one JSON document of a stream, with the name of its event if the transport has one.
type document struct {
	event string
	data  []byte
}

// framing is how documents are transported.
type framing int

const (
	serverSent framing = iota
	lines
	array
	awsEvents
)

func (s *stream) add(event, format string, args ...any) {
	s.docs = append(s.docs, document{event, fmt.Appendf(nil, format, args...)})
}

// data returns the JSON of the documents.
func (s *stream) data() [][]byte {
	all := make([][]byte, len(s.docs))
	for i, d := range s.docs {
		all[i] = d.data
	}
	return all
}

// size returns the number of bytes of JSON in the stream.
func (s *stream) size() int {
	n := 0
	for _, d := range s.docs {
		n += len(d.data)
	}
	return n
}

// bytes returns the stream as received from the network.
func (s *stream) bytes() []byte {
	var b bytes.Buffer
	for i, d := range s.docs {
		switch s.framing {
		case serverSent:
			if d.event != "" {
				fmt.Fprintf(&b, "event: %s\n", d.event)
			}
			fmt.Fprintf(&b, "data: %s\n\n", d.data)
		case lines:
			fmt.Fprintf(&b, "%s\n", d.data)
		case array:
			b.WriteString("[,"[min(i, 1):][:1])
			fmt.Fprintf(&b, "%s\n", d.data)
		case awsEvents:
			b.Write(awsEvent(d.event, d.data))
		}
	}
	if s.framing == array {
		b.WriteByte(']')
	}
	b.WriteString(s.tail)
	return b.Bytes()
}

// awsEvent frames one event of the AWS event stream.
func awsEvent(name string, payload []byte) []byte {
	var head bytes.Buffer
	for _, h := range [][2]string{{":event-type", name}, {":content-type", "application/json"}, {":message-type", "event"}} {
		head.WriteByte(byte(len(h[0])))
		head.WriteString(h[0])
		head.WriteByte(7)
		head.Write(binary.BigEndian.AppendUint16(nil, uint16(len(h[1]))))
		head.WriteString(h[1])
	}
	m := binary.BigEndian.AppendUint32(nil, uint32(16+head.Len()+len(payload)))
	m = binary.BigEndian.AppendUint32(m, uint32(head.Len()))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(append(m, head.Bytes()...), payload...)
	return binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
}

// network is the size of a Write: the most that a read from the network returns.
const network = 32 << 10

// decode reads a response as received, with a listener, and returns the answer.
func decode(tb testing.TB, input []byte) *ibid.Answer {
	tb.Helper()
	told := 0
	d := ibid.Decoder{OnEvent: func(ibid.Event) { told++ }}
	for at := 0; at < len(input); at += network {
		_, _ = d.Write(input[at:min(at+network, len(input))])
	}
	_ = d.Close()
	a, err := d.Answer()
	if err != nil && !errors.Is(err, ibid.ErrTruncated) { // like some recordings
		tb.Fatal(err)
	}
	return a
}

func streams() []*stream { return streamsOf(story(pieces)) }

func streamsOf(text []piece) []*stream {
	return []*stream{
		openAIResponses(text), anthropicMessages(text), geminiGenerate(text), geminiArray(text), geminiInteractions(text),
		openAIChat(text), perplexityChat(text), openRouterChat(text), xaiChat(text), mistralChat(text), azureChat(text),
		mistralConversations(text), cohere2(text), cohere1(text), bedrockConverse(text), bedrockRAG(text), vertexSearch(text),
	}
}

// TestStreams checks that the benchmark streams are what they are meant to be.
func TestStreams(t *testing.T) {
	want := joined(story(pieces))
	for _, s := range streams() {
		t.Run(s.format, func(t *testing.T) {
			a := decode(t, s.bytes())
			if a.Format != s.format || !a.Complete || len(a.Text) < len(want) {
				t.Errorf("format %s, complete %t, %d bytes of text; want %s, true, %d", a.Format, a.Complete, len(a.Text), s.format, len(want))
			}
			if len(a.Citations) < sources || len(a.Sources) == 0 {
				t.Errorf("%d citations of %d sources", len(a.Citations), len(a.Sources))
			}
			placed := 0
			for _, c := range a.Citations {
				if c.Anchor == ibid.AnchorExact || c.Anchor == ibid.AnchorUnverified {
					placed++
				}
			}
			if nowhere := s.format == "xai-chat" || s.format == "openrouter-chat"; placed < len(a.Citations) && !nowhere {
				t.Errorf("%d of %d citations stand where the provider said; issues: %v", placed, len(a.Citations), a.Issues[:min(3, len(a.Issues))])
			}
			text := ""
			for _, d := range s.docs {
				piece, err := s.read(d.data)
				if err != nil {
					t.Fatal(err)
				}
				text += piece
			}
			if text != a.Text {
				t.Errorf("read by hand the text has %d bytes, not %d", len(text), len(a.Text))
			}
		})
	}
}
