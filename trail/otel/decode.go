package otel

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/wire"
)

// A request is split into its spans before it reaches OpenTelemetry's types, and each span is bounded before it is
// parsed: the types take some thirty bytes of memory for each byte of a hostile body, and reject a whole request for an
// error in one of its spans.

// span is a span of OTLP, without what no trail needs.
type span struct {
	trace, id, parent string // lower-case hex; parent may be empty
	name              string
	start, end        uint64 // nanoseconds since 1970; 0 if unknown
	attrs             attributes
	events            []event
	failed            bool
	message           string // of the status
}

type event struct {
	name  string
	attrs attributes
}

// budget bounds how many values one message may have, and how deeply they may be nested.
type budget struct{ values, depth int }

var (
	errBytes  = fmt.Errorf("it has more than %d bytes", maxSpanBytes)
	errValues = fmt.Errorf("it has more than %d values", maxSpanValues)
	errDepth  = fmt.Errorf("its values are nested more than %d deep", maxSpanDepth)
	errIDs    = errors.New("its trace id or its span id is missing or invalid")
)

func newBudget() *budget { return &budget{values: maxSpanValues, depth: maxSpanDepth} }

// newRawBudget bounds a message before it is parsed: each value takes at most four JSON objects, or protobuf messages.
func newRawBudget() *budget { return &budget{values: 4 * maxSpanValues, depth: 4*maxSpanDepth + 16} }

func (b *budget) count() error {
	if b.values--; b.values < 0 {
		return errValues
	}
	return nil
}

// nested calls do one level deeper.
func (b *budget) nested(do func() error) error {
	if b.depth--; b.depth < 0 {
		return errDepth
	}
	err := do()
	b.depth++
	return err
}

// list is a JSON list that is read item by item: as a slice, a list of "{}" would take twenty times its bytes.
type list json.RawMessage

// UnmarshalJSON keeps the list unparsed.
func (l *list) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(l).UnmarshalJSON(b) }

// each calls do for the items of the list, which is valid JSON. Null means an empty one.
func (l list) each(do func(item json.RawMessage) error) error {
	if v := scan.Value(l); v.IsNull() {
		return nil
	} else if !v.IsArray() {
		return errors.New("want a list")
	}
	for w := scan.Elements(scan.Value(l)); w.Next(); {
		if err := do(json.RawMessage(w.Val)); err != nil {
			return err
		}
	}
	return nil
}

// readJSON reads an ExportTraceServiceRequest in OTLP's JSON. Unknown members are skipped.
func (r *reader) readJSON(b []byte) error {
	var request *struct {
		ResourceSpans list `json:"resourceSpans"`
	}
	err := json.Unmarshal(b, &request)
	if err == nil && request == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		return jsonError(err)
	}
	return request.ResourceSpans.each(func(raw json.RawMessage) error {
		var of struct {
			Resource   json.RawMessage `json:"resource"`
			ScopeSpans list            `json:"scopeSpans"`
		}
		if err := json.Unmarshal(raw, &of); err != nil {
			return jsonError(err)
		}
		resource := attributes{}
		if of.Resource != nil {
			if resource, err = readResource(of.Resource, fromJSON); err != nil {
				return err
			}
		}
		return of.ScopeSpans.each(func(raw json.RawMessage) error {
			var scope struct {
				Spans list `json:"spans"`
			}
			if err := json.Unmarshal(raw, &scope); err != nil {
				return jsonError(err)
			}
			return scope.Spans.each(func(raw json.RawMessage) error {
				r.addSpan(resource, raw, spanParser{hasIDs, fromJSON})
				return nil
			})
		})
	})
}

// jsonError describes a value of the wrong type without Go's names.
func jsonError(err error) error {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s: a JSON %s is not valid OTLP", cmp.Or(kind.Field, "the request"), kind.Value)
	}
	return fmt.Errorf("read its JSON: %w", err)
}

// fromJSON reads one message in OTLP's JSON. That is protobuf's, except that the ids of spans are hex, and it is read
// more leniently: repeated names, lone surrogates and invalid UTF-8 occur in texts that exporters have cut.
func fromJSON(b []byte, into proto.Message) error {
	raw := newRawBudget()
	if depth, objects := nesting(string(b)); depth > raw.depth {
		return errDepth
	} else if objects > raw.values {
		return errValues
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var members map[string]any
	if err := d.Decode(&members); err != nil {
		return jsonError(err)
	}
	delete(members, "links") // their ids would have to be valid, and no trail needs them
	for _, name := range []string{"traceId", "spanId", "parentSpanId"} {
		if digits, ok := members[name].(string); ok {
			id, err := hex.DecodeString(digits)
			if err != nil {
				return errIDs
			}
			members[name] = base64.StdEncoding.EncodeToString(id)
		}
	}
	b, err := json.Marshal(members)
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, into)
	}
	return sameError(err)
}

// hasIDs reports whether a span in JSON may have valid ids. It costs little, unlike reading a span.
func hasIDs(b []byte) bool {
	trace, span := false, false
	for w := scan.Members(scan.Value(b)); w.Next(); {
		switch string(w.Key) {
		case "traceId":
			trace = isID(strings.ToLower(w.Val.Str()), 32)
		case "spanId":
			span = isID(strings.ToLower(w.Val.Str()), 16)
		case "trace_id": // protobuf's own names, which protojson reads too
			trace = true
		case "span_id":
			span = true
		}
	}
	return trace && span
}

// hasRawIDs is hasIDs for protobuf.
func hasRawIDs(b []byte) bool {
	valid := map[protowire.Number]bool{}
	for field, size := range map[protowire.Number]int{1: 16, 2: 8} {
		_ = eachMessage(b, field, func(id []byte) error { // the last counts; damage is found later
			valid[field] = isID(hex.EncodeToString(id), 2*size)
			return nil
		})
	}
	return valid[1] && valid[2]
}

// sameError makes the text of package proto's errors deterministic, which use one of two spaces at random.
func sameError(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.ReplaceAll(err.Error(), "\u00a0", " "))
}

// readProto reads an ExportTraceServiceRequest in protobuf, which is the same as a TracesData.
func (r *reader) readProto(b []byte) error {
	return eachMessage(b, 1, func(resourceSpans []byte) error {
		resource := attributes{}
		err := eachMessage(resourceSpans, 1, func(b []byte) (err error) {
			resource, err = readResource(b, fromProto)
			return err
		})
		if err != nil {
			return err
		}
		return eachMessage(resourceSpans, 2, func(scopeSpans []byte) error {
			return eachMessage(scopeSpans, 2, func(b []byte) error {
				r.addSpan(resource, b, spanParser{hasRawIDs, fromProto})
				return nil
			})
		})
	})
}

// eachMessage calls do for each message in a field.
func eachMessage(b []byte, number protowire.Number, do func(b []byte) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeField(b)
		if size < 0 {
			return fmt.Errorf("read a field of protobuf: %w", protowire.ParseError(size))
		}
		if n == number && kind == protowire.BytesType {
			if err := do(fieldBytes(b)); err != nil {
				return err
			}
		}
		b = b[size:]
	}
	return nil
}

// fieldBytes returns the content of the valid, length-delimited field that b begins with.
func fieldBytes(b []byte) []byte {
	_, _, tag := protowire.ConsumeTag(b)
	content, _ := protowire.ConsumeBytes(b[tag:])
	return content
}

// fromProto reads one message in protobuf.
func fromProto(b []byte, into proto.Message) error {
	b, err := withValidUTF8(b, into.ProtoReflect().Descriptor(), newRawBudget())
	if err != nil {
		return err
	}
	return sameError(proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, into))
}

// withValidUTF8 returns a message with U+FFFD in place of invalid UTF-8 in its texts, for which protobuf would reject
// it. It fails if the message exceeds the budget.
func withValidUTF8(b []byte, of protoreflect.MessageDescriptor, left *budget) ([]byte, error) {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeField(b)
		if size < 0 {
			return nil, fmt.Errorf("read a field of protobuf: %w", protowire.ParseError(size))
		}
		raw := b[:size]
		b = b[size:]
		field := of.Fields().ByNumber(number)
		if field == nil {
			continue
		}
		if inner := field.Message(); inner != nil && kind == protowire.BytesType {
			if err := left.count(); err != nil {
				return nil, err
			}
			err := left.nested(func() error {
				message, err := withValidUTF8(fieldBytes(raw), inner, left)
				raw = protowire.AppendBytes(protowire.AppendTag(nil, number, kind), message)
				return err
			})
			if err != nil {
				return nil, err
			}
		} else if field.Kind() == protoreflect.StringKind && kind == protowire.BytesType {
			text := bytes.ToValidUTF8(fieldBytes(raw), []byte("\ufffd"))
			raw = protowire.AppendBytes(protowire.AppendTag(nil, number, kind), text)
		}
		out = append(out, raw...)
	}
	return out, nil
}

// parser reads a message, JSON or protobuf, of at most maxSpanBytes.
type parser func(b []byte, into proto.Message) error

// spanParser is a parser of spans. hasIDs comes before it.
type spanParser struct {
	hasIDs func(b []byte) bool
	parse  parser
}

func readResource(b []byte, parse parser) (attributes, error) {
	var from resourcepb.Resource
	attrs := attributes{}
	err := errBytes
	if len(b) <= maxSpanBytes {
		err = parse(b, &from)
	}
	if err == nil {
		err = newBudget().attributes(from.GetAttributes(), attrs)
	}
	if err != nil {
		return nil, fmt.Errorf("read the attributes of a resource: %w", err)
	}
	return attrs, nil
}

func readSpan(b []byte, p spanParser) (*span, error) {
	if len(b) > maxSpanBytes {
		return nil, errBytes
	}
	if !p.hasIDs(b) {
		return nil, errIDs
	}
	var from tracepb.Span
	if err := p.parse(b, &from); err != nil {
		return nil, err
	}
	s := &span{
		trace:   hex.EncodeToString(from.GetTraceId()),
		id:      hex.EncodeToString(from.GetSpanId()),
		parent:  hex.EncodeToString(from.GetParentSpanId()),
		name:    from.GetName(),
		start:   from.GetStartTimeUnixNano(),
		end:     from.GetEndTimeUnixNano(),
		attrs:   attributes{},
		failed:  from.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
		message: from.GetStatus().GetMessage(),
	}
	left := newBudget()
	if err := left.attributes(from.GetAttributes(), s.attrs); err != nil {
		return nil, err
	}
	for _, e := range from.GetEvents() {
		if err := left.count(); err != nil {
			return nil, err
		}
		attrs := attributes{}
		if err := left.attributes(e.GetAttributes(), attrs); err != nil {
			return nil, err
		}
		s.events = append(s.events, event{e.GetName(), attrs})
	}
	if !isID(s.trace, 32) || !isID(s.id, 16) || s.parent != "" && len(s.parent) != 16 {
		return nil, errIDs
	}
	if !isID(s.parent, 16) {
		s.parent = "" // zeros mean that there is none
	}
	return s, nil
}

// isID reports whether s is an OpenTelemetry id: hex, and not all zeros.
func isID(s string, size int) bool {
	return len(s) == size && strings.Trim(s, "0123456789abcdef") == "" && strings.Trim(s, "0") != ""
}

// attributes adds attributes, or the members of an object, to a map.
func (b *budget) attributes(from []*commonpb.KeyValue, into map[string]any) error {
	for _, a := range from {
		value, err := b.value(a.GetValue())
		if err != nil {
			return err
		}
		into[a.GetKey()] = value
	}
	return nil
}

// value returns a value in the form of [attributes].
func (b *budget) value(from *commonpb.AnyValue) (value any, err error) {
	if err := b.count(); err != nil {
		return nil, err
	}
	err = b.nested(func() error {
		switch v := from.GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			value = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			value = v.BoolValue
		case *commonpb.AnyValue_IntValue:
			value = v.IntValue
		case *commonpb.AnyValue_DoubleValue:
			value = v.DoubleValue
		case *commonpb.AnyValue_BytesValue:
			value = base64.StdEncoding.EncodeToString(v.BytesValue)
		case *commonpb.AnyValue_KvlistValue:
			object := map[string]any{}
			value = object
			return b.attributes(v.KvlistValue.GetValues(), object)
		case *commonpb.AnyValue_ArrayValue:
			items := make([]any, 0, min(len(v.ArrayValue.GetValues()), maxSpanValues))
			for _, item := range v.ArrayValue.GetValues() {
				read, err := b.value(item)
				if err != nil {
					return err
				}
				items = append(items, read)
			}
			value = items
		}
		return nil
	})
	return value, err
}

// attributes are the attributes of a span, an event or a resource. A value is a string, bool, int64, float64, []any,
// map[string]any or nil. Bytes are kept in base64, as in OTLP's JSON.
type attributes map[string]any

// text returns the first of the attributes that is a text or a number and not empty.
func (a attributes) text(keys ...string) string {
	for _, key := range keys {
		if s := scalar(a[key]); s != "" {
			return s
		}
	}
	return ""
}

// scalar returns a text or a number as text, and "" for everything else.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case json.Number:
		return v.String()
	}
	return ""
}

// number returns v as a finite number.
func number(v any) (float64, bool) {
	var f float64
	switch v := v.(type) {
	case int64:
		f = float64(v)
	case float64:
		f = v
	case json.Number:
		n, err := v.Float64()
		if err != nil {
			return 0, false
		}
		f = n
	case string: // instrumentations in languages without types
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil {
			return 0, false
		}
		f = n
	default:
		return 0, false
	}
	return f, isFinite(f)
}

// whole returns v as a non-negative whole number.
func whole(v any) (int, bool) {
	f, ok := number(v)
	if !ok || f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return 0, false
	}
	return int(f), true
}

// structured returns the value of the first attribute that exists, parsed if it is JSON in a string, since the
// conventions allow either form.
func (a attributes) structured(keys ...string) any {
	for _, key := range keys {
		if v, ok := a[key]; ok && v != "" {
			return structuredValue(v)
		}
	}
	return nil
}

func structuredValue(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	if parsed, ok := parseJSON(s); ok {
		return parsed
	}
	return s
}

// parseJSON reads a JSON object, array or string. Other JSON is text that happens to look like it.
func parseJSON(s string) (any, bool) {
	t := strings.TrimLeft(s, " \t\r\n")
	if t == "" || !strings.ContainsRune(`{["`, rune(t[0])) || tooDeep(t) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(t))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.InputOffset() != int64(len(strings.TrimRight(t, " \t\r\n"))) {
		return nil, false
	}
	return v, true
}

// tooDeep reports whether JSON is nested deeper than a span's values may be.
func tooDeep(s string) bool {
	depth, _ := nesting(s)
	return depth > maxSpanDepth
}

// nesting returns how deep JSON is nested, and how many objects it has. For other text the result is meaningless.
func nesting(s string) (deepest, objects int) {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
			if c == '{' {
				objects++
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest, objects
}

// list returns the items of a list that is flattened into attributes: prefix.0.name, prefix.1.name, … in order, or nil.
func (a attributes) list(prefix string) []attributes {
	items := map[int]attributes{}
	for key, value := range a {
		rest, ok := strings.CutPrefix(key, prefix+".")
		if !ok {
			continue
		}
		index, name, _ := strings.Cut(rest, ".")
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 {
			continue
		}
		if items[n] == nil {
			items[n] = attributes{}
		}
		items[n][name] = value
	}
	var list []attributes
	for _, n := range slices.Sorted(maps.Keys(items)) {
		list = append(list, items[n])
	}
	return list
}

// members returns v as an object.
func members(v any) attributes {
	switch v := v.(type) {
	case map[string]any:
		return v
	case attributes:
		return v
	}
	return nil
}

// encodeValue returns v as JSON: compact, without HTML escapes, members sorted by name.
func encodeValue(v any) json.RawMessage {
	raw, _ := wire.Encode(finite(v)) // everything that was read can be encoded
	return raw
}

// finite replaces the numbers that JSON cannot represent by their names.
func finite(v any) any {
	switch v := v.(type) {
	case float64:
		if !isFinite(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = finite(x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			out[name] = finite(x)
		}
		return out
	}
	return v
}
