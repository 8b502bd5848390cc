package trail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The types of OTLP's JSON. Ids are in hex, as protojson does not have them; members that are not here are passed over.

type jsonTraces struct {
	ResourceSpans jsonList `json:"resourceSpans"`
}

type jsonResourceSpans struct {
	Resource   json.RawMessage `json:"resource,omitempty"`
	ScopeSpans jsonList        `json:"scopeSpans"`
}

type jsonResource struct {
	Attributes []jsonKeyValue `json:"attributes"`
}

type jsonScopeSpans struct {
	Spans jsonList `json:"spans"`
}

// jsonList is a list that is read item by item: as a slice, one of "{}" would take twenty times its bytes.
type jsonList json.RawMessage

// UnmarshalJSON keeps the list as it is.
func (l *jsonList) UnmarshalJSON(b []byte) error { return (*json.RawMessage)(l).UnmarshalJSON(b) }

// each calls do for the items of the list. Null is an empty one.
func (l jsonList) each(do func(raw json.RawMessage) error) error {
	if len(l) == 0 || string(l) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(l))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return errors.New("want a list")
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := do(raw); err != nil {
			return err
		}
	}
	return nil
}

type jsonSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	ParentID   string          `json:"parentSpanId,omitempty"`
	Name       string          `json:"name"`
	Kind       json.RawMessage `json:"kind,omitempty"`
	Start      jsonTime        `json:"startTimeUnixNano,omitempty"`
	End        jsonTime        `json:"endTimeUnixNano,omitempty"`
	Attributes []jsonKeyValue  `json:"attributes,omitempty"`
	Events     []jsonEvent     `json:"events,omitempty"`
	Links      []jsonLink      `json:"links,omitempty"`
	Status     *jsonStatus     `json:"status,omitempty"`
}

type jsonEvent struct {
	Name       string         `json:"name"`
	Attributes []jsonKeyValue `json:"attributes"`
}

type jsonLink struct {
	TraceID string `json:"traceId"`
	SpanID  string `json:"spanId"`
}

type jsonStatus struct {
	Message string   `json:"message,omitempty"`
	Code    jsonEnum `json:"code,omitempty"`
}

type jsonKeyValue struct {
	Key   string     `json:"key"`
	Value *jsonValue `json:"value"`
}

type jsonValue struct {
	String *string     `json:"stringValue,omitempty"`
	Bool   *bool       `json:"boolValue,omitempty"`
	Int    *jsonInt    `json:"intValue,omitempty"`
	Double *jsonFloat  `json:"doubleValue,omitempty"`
	Array  *jsonArray  `json:"arrayValue,omitempty"`
	Object *jsonObject `json:"kvlistValue,omitempty"`
	Bytes  *string     `json:"bytesValue,omitempty"`
}

type jsonArray struct {
	Values []jsonValue `json:"values"`
}

type jsonObject struct {
	Values []jsonKeyValue `json:"values"`
}

// jsonInt is a whole number of 64 bits: written as a string, read as that or as a number.
type jsonInt int64

func (n *jsonInt) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if s == "null" {
		return nil
	}
	i, err := strconv.ParseInt(s, 10, 64)
	if err != nil { // 1e9 is a whole number, too
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f != float64(int64(f)) {
			return errors.New("read a number: it is not a whole one of 64 bits")
		}
		i = int64(f)
	}
	*n = jsonInt(i)
	return nil
}

// MarshalJSON writes n as OTLP wants it.
func (n jsonInt) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatInt(int64(n), 10) + `"`), nil
}

// jsonTime is a time in nanoseconds since 1970. One that cannot be is 0, unknown.
type jsonTime uint64

func (t *jsonTime) UnmarshalJSON(b []byte) error {
	ns, err := strconv.ParseUint(strings.Trim(string(b), `"`), 10, 64)
	if err == nil {
		*t = jsonTime(ns)
		return nil
	}
	var n jsonInt
	if err := n.UnmarshalJSON(b); err != nil {
		return err
	}
	*t = jsonTime(max(n, 0))
	return nil
}

// MarshalJSON writes t as OTLP wants it.
func (t jsonTime) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strconv.FormatUint(uint64(t), 10) + `"`), nil
}

// jsonFloat is a number, or the name of one that JSON does not have.
type jsonFloat float64

func (f *jsonFloat) UnmarshalJSON(b []byte) error {
	x, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range is an infinity
		return errors.New("read a number: it is none")
	}
	*f = jsonFloat(x)
	return nil
}

// jsonEnum is a status code by number or by name.
type jsonEnum int

func (e *jsonEnum) UnmarshalJSON(b []byte) error {
	*e = 0
	if s := strings.Trim(string(b), `"`); s == "STATUS_CODE_ERROR" || s == strconv.Itoa(statusError) {
		*e = statusError
	}
	return nil
}

// readJSON reads an ExportTraceServiceRequest in OTLP's JSON.
func (r *spanReader) readJSON(b []byte) error {
	var traces *jsonTraces
	err := json.Unmarshal(b, &traces)
	if err == nil && traces == nil {
		err = errors.New("it is null")
	}
	if err == nil {
		err = traces.ResourceSpans.each(r.readJSONResource)
	}
	if err != nil {
		return fmt.Errorf("read its JSON: %w", inJSON(err))
	}
	return nil
}

// inJSON says of a value of the wrong type what it is, without Go's names.
func inJSON(err error) error {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: a JSON %s, want what OTLP has there", cmp.Or(kind.Field, "all of it"), kind.Value)
	}
	return err
}

// readJSONResource reads the spans of one resource.
func (r *spanReader) readJSONResource(raw json.RawMessage) error {
	var of jsonResourceSpans
	if err := json.Unmarshal(raw, &of); err != nil {
		return err
	}
	resource := attributes{}
	if of.Resource != nil {
		var from jsonResource
		err := checkSpanSize(of.Resource)
		if err == nil {
			err = json.Unmarshal(of.Resource, &from)
		}
		if err == nil {
			err = jsonAttributes(from.Attributes, resource, newBudget())
		}
		if err != nil {
			return fmt.Errorf("the attributes of a resource: %w", err)
		}
	}
	return of.ScopeSpans.each(func(raw json.RawMessage) error {
		var scope jsonScopeSpans
		if err := json.Unmarshal(raw, &scope); err != nil {
			return err
		}
		return scope.Spans.each(func(raw json.RawMessage) error {
			r.span(resource, func() (*rawSpan, error) { return readJSONSpan(raw) })
			return nil
		})
	})
}

func readJSONSpan(raw json.RawMessage) (*rawSpan, error) {
	var from jsonSpan
	if err := checkSpanSize(raw); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &from); err != nil {
		return nil, fmt.Errorf("read its JSON: %w", inJSON(err))
	}
	s := &rawSpan{
		trace: strings.ToLower(
			from.TraceID,
		),
		id:     strings.ToLower(from.SpanID),
		parent: strings.ToLower(from.ParentID),
		name:   from.Name,
		start:  uint64(from.Start),
		end:    uint64(from.End),
		attrs:  attributes{},
	}
	if from.Status != nil {
		s.failed, s.message = from.Status.Code == statusError, from.Status.Message
	}
	left := newBudget()
	if err := jsonAttributes(from.Attributes, s.attrs, left); err != nil {
		return nil, err
	}
	for i := range from.Events {
		if err := left.take(); err != nil {
			return nil, err
		}
		event := rawEvent{from.Events[i].Name, attributes{}}
		if err := jsonAttributes(from.Events[i].Attributes, event.attrs, left); err != nil {
			return nil, err
		}
		s.events = append(s.events, event)
	}
	return s, s.check()
}

func jsonAttributes(list []jsonKeyValue, into map[string]any, left *budget) error {
	for i := range list {
		if err := left.take(); err != nil {
			return err
		}
		if list[i].Value == nil {
			into[list[i].Key] = nil
			continue
		}
		err := left.nested(func() (err error) {
			into[list[i].Key], err = list[i].Value.read(left)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *jsonValue) read(left *budget) (any, error) {
	switch {
	case v.String != nil:
		return *v.String, nil
	case v.Bool != nil:
		return *v.Bool, nil
	case v.Int != nil:
		return int64(*v.Int), nil
	case v.Double != nil:
		return float64(*v.Double), nil
	case v.Bytes != nil:
		return *v.Bytes, nil
	case v.Object != nil:
		object := map[string]any{}
		return object, jsonAttributes(v.Object.Values, object, left)
	case v.Array != nil:
		values := make([]any, 0, min(len(v.Array.Values), MaxSpanValues))
		for i := range v.Array.Values {
			if err := left.take(); err != nil {
				return nil, err
			}
			err := left.nested(func() error {
				item, err := v.Array.Values[i].read(left)
				values = append(values, item)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		return values, nil
	}
	return nil, nil
}
