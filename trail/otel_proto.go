package trail

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// OTLP's protobuf is read by hand, over protowire: the generated types take some thirty bytes of memory for each byte
// of a hostile body, refuse all spans for a fault in one, and would make everybody who links this package link
// protobuf's runtime. The tests hold this file against the generated types.

// field is one field of a message: bytes for strings, bytes and messages, else n.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	n      uint64
}

// eachField calls do for the fields of a message, in the order in which they stand.
func eachField(b []byte, do func(f field) error) error {
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return fmt.Errorf("read a field of protobuf: %w", protowire.ParseError(size))
		}
		b = b[size:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.n, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.n, size = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.bytes, size = protowire.ConsumeBytes(b)
		default: // what OTLP does not have
			size = protowire.ConsumeFieldValue(number, kind, b)
		}
		if size < 0 {
			return fmt.Errorf("read a field of protobuf: %w", protowire.ParseError(size))
		}
		b = b[size:]
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

// eachMessage calls do for the messages in one field.
func eachMessage(b []byte, number protowire.Number, do func(b []byte) error) error {
	return eachField(b, func(f field) error {
		if f.number == number && f.kind == protowire.BytesType {
			return do(f.bytes)
		}
		return nil
	})
}

// readProto reads an ExportTraceServiceRequest, which is the same as a TracesData.
func (r *spanReader) readProto(b []byte) error {
	return eachMessage(b, 1, func(resourceSpans []byte) error {
		var resource attributes
		err := eachMessage(resourceSpans, 1, func(b []byte) error {
			err := checkSpanSize(b)
			if err == nil {
				resource, err = protoAttributes(b, 1, newBudget())
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("read the attributes of a resource: %w", err)
		}
		return eachMessage(resourceSpans, 2, func(scopeSpans []byte) error {
			return eachMessage(scopeSpans, 2, func(span []byte) error {
				r.span(resource, func() (*rawSpan, error) { return protoSpan(span) })
				return nil
			})
		})
	})
}

func protoSpan(b []byte) (*rawSpan, error) {
	if err := checkSpanSize(b); err != nil {
		return nil, err
	}
	s := &rawSpan{attrs: attributes{}}
	left := newBudget()
	err := eachField(b, func(f field) error {
		switch {
		case f.kind == protowire.Fixed64Type && f.number == 7:
			s.start = f.n
		case f.kind == protowire.Fixed64Type && f.number == 8:
			s.end = f.n
		case f.kind != protowire.BytesType:
		case f.number == 1:
			s.trace = hex.EncodeToString(f.bytes)
		case f.number == 2:
			s.id = hex.EncodeToString(f.bytes)
		case f.number == 4:
			s.parent = hex.EncodeToString(f.bytes)
		case f.number == 5:
			s.name = protoText(f.bytes)
		case f.number == 9:
			return protoKeyValue(f.bytes, s.attrs, left)
		case f.number == 11:
			return s.protoEvent(f.bytes, left)
		case f.number == 15:
			return s.protoStatus(f.bytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, s.check()
}

func (s *rawSpan) protoEvent(b []byte, left *budget) error {
	if err := left.take(); err != nil {
		return err
	}
	event := rawEvent{attrs: attributes{}}
	err := eachField(b, func(f field) error {
		switch {
		case f.kind != protowire.BytesType:
		case f.number == 2:
			event.name = protoText(f.bytes)
		case f.number == 3:
			return protoKeyValue(f.bytes, event.attrs, left)
		}
		return nil
	})
	s.events = append(s.events, event)
	return err
}

func (s *rawSpan) protoStatus(b []byte) error {
	return eachField(b, func(f field) error {
		switch {
		case f.number == 2 && f.kind == protowire.BytesType:
			s.message = protoText(f.bytes)
		case f.number == 3 && f.kind == protowire.VarintType:
			s.failed = f.n == statusError
		}
		return nil
	})
}

// statusError is the code of a span that failed.
const statusError = 2

func protoText(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }

// protoAttributes reads the attributes in one field of a message.
func protoAttributes(b []byte, number protowire.Number, left *budget) (attributes, error) {
	attrs := attributes{}
	err := eachMessage(b, number, func(b []byte) error { return protoKeyValue(b, attrs, left) })
	return attrs, err
}

func protoKeyValue(b []byte, into map[string]any, left *budget) error {
	if err := left.take(); err != nil {
		return err
	}
	var key string
	var value any
	err := eachField(b, func(f field) error {
		switch {
		case f.kind != protowire.BytesType:
		case f.number == 1:
			key = protoText(f.bytes)
		case f.number == 2:
			return left.nested(func() (err error) {
				value, err = protoValue(f.bytes, left)
				return err
			})
		}
		return nil
	})
	into[key] = value
	return err
}

func protoValue(b []byte, left *budget) (value any, err error) {
	err = eachField(b, func(f field) error {
		switch {
		case f.number == 1 && f.kind == protowire.BytesType:
			value = protoText(f.bytes)
		case f.number == 2 && f.kind == protowire.VarintType:
			value = f.n != 0
		case f.number == 3 && f.kind == protowire.VarintType:
			value = int64(f.n)
		case f.number == 4 && f.kind == protowire.Fixed64Type:
			value = math.Float64frombits(f.n)
		case f.number == 5 && f.kind == protowire.BytesType:
			value, err = protoArray(f.bytes, left)
			return err
		case f.number == 6 && f.kind == protowire.BytesType:
			object, err := protoAttributes(f.bytes, 1, left)
			value = map[string]any(object)
			return err
		case f.number == 7 && f.kind == protowire.BytesType:
			value = base64.StdEncoding.EncodeToString(f.bytes)
		}
		return nil
	})
	return value, err
}

func protoArray(b []byte, left *budget) ([]any, error) {
	values := []any{}
	err := eachMessage(b, 1, func(b []byte) error {
		if err := left.take(); err != nil {
			return err
		}
		return left.nested(func() error {
			v, err := protoValue(b, left)
			values = append(values, v)
			return err
		})
	})
	return values, err
}
