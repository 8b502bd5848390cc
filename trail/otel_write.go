package trail

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// emitterName is the instrumentation scope of the spans that ibid writes.
const emitterName = "github.com/ibidhq/ibid/trail"

// json returns the spans in OTLP's JSON.
func (e *emitter) json(service string) ([]byte, error) {
	spans := make([]*jsonSpan, len(e.spans))
	for i := range e.spans {
		spans[i] = e.jsonSpan(&e.spans[i])
	}
	type object map[string]any
	b, err := json.Marshal(object{"resourceSpans": []object{{
		"resource":   jsonResource{[]jsonKeyValue{{"service.name", jsonValueOf(cmp.Or(service, "ibid"))}}},
		"scopeSpans": []object{{"scope": object{"name": emitterName}, "spans": spans}},
	}}})
	if err != nil {
		return nil, fmt.Errorf("write a trace: %w", err)
	}
	return b, nil
}

func (e *emitter) jsonSpan(s *outSpan) *jsonSpan {
	out := &jsonSpan{
		TraceID: e.trace, SpanID: s.id, ParentID: s.parent, Name: s.name, Kind: json.RawMessage{byte('0' + s.kind)},
		Start: jsonTime(s.start), End: jsonTime(s.end), Attributes: make([]jsonKeyValue, len(s.attrs)),
	}
	for i, a := range s.attrs {
		out.Attributes[i] = jsonKeyValue{a.key, jsonValueOf(a.value)}
	}
	for _, id := range s.links {
		out.Links = append(out.Links, jsonLink{e.trace, id})
	}
	if s.failed != "" {
		out.Status = &jsonStatus{s.failed, statusError}
	}
	return out
}

func jsonValueOf(v any) *jsonValue {
	out := &jsonValue{}
	switch v := v.(type) {
	case string:
		out.String = &v
	case bool:
		out.Bool = &v
	case int64:
		n := jsonInt(v)
		out.Int = &n
	case float64:
		f := jsonFloat(v)
		out.Double = &f
	case []any:
		out.Array = &jsonArray{make([]jsonValue, len(v))}
		for i, item := range v {
			out.Array.Values[i] = *jsonValueOf(item)
		}
	}
	return out
}

// proto returns the spans as a TracesData.
func (e *emitter) proto(service string) []byte {
	scope := appendMessage(nil, 1, appendText(nil, 1, emitterName))
	for i := range e.spans {
		scope = appendMessage(scope, 2, e.protoSpan(&e.spans[i]))
	}
	resource := appendMessage(nil, 1, appendAttribute(nil, outAttribute{"service.name", cmp.Or(service, "ibid")}))
	spans := appendMessage(nil, 1, resource)
	spans = appendMessage(spans, 2, scope)
	return appendMessage(nil, 1, spans)
}

func (e *emitter) protoSpan(s *outSpan) []byte {
	b := appendMessage(nil, 1, unhex(e.trace))
	b = appendMessage(b, 2, unhex(s.id))
	if s.parent != "" {
		b = appendMessage(b, 4, unhex(s.parent))
	}
	b = appendText(b, 5, s.name)
	b = appendVarint(b, 6, uint64(s.kind))
	b = appendFixed(b, 7, s.start)
	b = appendFixed(b, 8, s.end)
	for _, a := range s.attrs {
		b = appendMessage(b, 9, appendAttribute(nil, a))
	}
	for _, id := range s.links {
		link := appendMessage(nil, 1, unhex(e.trace))
		b = appendMessage(b, 13, appendMessage(link, 2, unhex(id)))
	}
	if s.failed != "" {
		b = appendMessage(b, 15, appendVarint(appendText(nil, 2, s.failed), 3, statusError))
	}
	return b
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil // ids are hex
	}
	return b
}

func appendMessage(b []byte, number protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), message)
}

func appendText(b []byte, number protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), strings.ToValidUTF8(s, "\ufffd"))
}

func appendVarint(b []byte, number protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), n)
}

func appendFixed(b []byte, number protowire.Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), n)
}

func appendAttribute(b []byte, a outAttribute) []byte {
	return appendMessage(appendText(b, 1, a.key), 2, protoValueOf(a.value))
}

func protoValueOf(v any) []byte {
	switch v := v.(type) {
	case string:
		return appendText(nil, 1, v)
	case bool:
		return appendVarint(nil, 2, protowire.EncodeBool(v))
	case int64:
		return appendVarint(nil, 3, uint64(v))
	case float64:
		return appendFixed(nil, 4, math.Float64bits(v))
	case []any:
		var list []byte
		for _, item := range v {
			list = appendMessage(list, 1, protoValueOf(item))
		}
		return appendMessage(nil, 5, list)
	}
	return nil
}
