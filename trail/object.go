package trail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/scan"
)

// The codes of issues, described in docs/trail.md.
const (
	issueWrongType    = "wrong-type"
	issueNumber       = "bad-number"
	issueScore        = "score-out-of-range"
	issueUnnumbered   = "step-without-number"
	issueDuplicate    = "duplicate-step"
	issueDangling     = "dangling-after"
	issueCycle        = "cyclic-after"
	issueAfterFinish  = "step-after-finish"
	issueNoID         = "source-without-id"
	issueDiffers      = "answer-differs"
	issueRunRepeated  = "run-repeated"
	issueBadJSON      = "bad-json"
	issueUTF8         = "invalid-utf8"
	issueContradicted = "no-sources-contradicted"
	issueSpan         = "span-out-of-range"
	issueLimit        = "limit-reached"
	issueDigest       = "bad-digest"
	issueMarker       = "unresolved-marker"
	issueUnread       = "result-unread"
	issueRead         = "member-read"
	issueNotKept      = "passages-not-kept" // by the gateway
)

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// object reads the members of one JSON object, each once. Members of the wrong type are reported and kept.
type object struct {
	place   string // prefix of the details of its issues; empty for the run
	members map[string]json.RawMessage
	report  *report
	extra   map[string]json.RawMessage
}

// report collects the issues of a run or a step.
type report struct {
	issues []ibid.Issue
	prior  []ibid.Issue // issues of an earlier reading that were not found again yet
}

// maxPrior is how many issues of an earlier reading are recognised.
const maxPrior = 1000

// found reports whether an earlier reading reported the same, anywhere: what was a search result then is among the
// sources now.
func (r *report) found(code, detail string) bool {
	for i, p := range r.prior {
		if p.Code == code && strings.HasSuffix(p.Detail, detail) {
			r.prior = slices.Delete(r.prior, i, i+1)
			return true
		}
	}
	return false
}

// at returns the path of a member, or of an element of one, for issues and errors.
func (o *object) at(name string) string {
	switch {
	case o.place == "":
		return name
	case strings.HasSuffix(o.place, ":"):
		return o.place + " " + name
	default:
		return o.place + "." + name
	}
}

func (o *object) addIssue(code, name, format string, args ...any) {
	what := ": " + fmt.Sprintf(format, args...)
	if !o.report.found(code, name+what) {
		o.report.issues = append(o.report.issues, ibid.Issue{Code: code, Detail: o.at(name) + what})
	}
}

// takeMember removes and returns the first of the named members that is there and not null, with its name.
func (o *object) takeMember(names ...string) (raw json.RawMessage, name string) {
	for _, n := range names {
		value, ok := o.members[n]
		if !ok || name != "" {
			continue
		}
		delete(o.members, n)
		if string(value) != "null" {
			raw, name = value, n
		}
	}
	return raw, name
}

// keepExtra keeps a member that was not understood, so that it is written back.
func (o *object) keepExtra(name string, raw json.RawMessage) {
	if o.extra == nil {
		o.extra = make(map[string]json.RawMessage)
	}
	o.extra[name] = compact(raw)
}

// refuse reports a member of the wrong type and keeps it.
func (o *object) refuse(code, name string, raw json.RawMessage, want string) {
	o.addIssue(code, name, "%s, want %s", describe(raw), want)
	o.keepExtra(name, raw)
}

// invalidMembers is the member of runs, steps and sources that has the members with an unusable value: see Extra.
const invalidMembers = "invalid_members"

// leftover returns the members that were not taken, without those that are derived from others. It includes those that
// an earlier reading could not use, which are not read again: its issues tell what was wrong with them.
func (o *object) leftover(derived ...string) map[string]json.RawMessage {
	var invalid map[string]json.RawMessage
	o.into(&invalid, "an object", invalidMembers)
	for name, raw := range invalid {
		o.keepExtra(name, raw)
	}
	for _, name := range derived {
		delete(o.members, name)
	}
	for name, raw := range o.members {
		o.keepExtra(name, raw)
	}
	return o.extra
}

func (o *object) text(dst *string, names ...string) {
	raw, name := o.takeMember(names...)
	if name == "" {
		return
	}
	if !readString(dst, raw) {
		o.refuse(issueWrongType, name, raw, "a string")
	}
}

// readString reads a string, which is valid JSON, into dst. It returns false for anything else.
func readString(dst *string, raw json.RawMessage) bool {
	if raw[0] != '"' {
		return false
	}
	content := raw[1 : len(raw)-1]
	if bytes.IndexByte(content, '\\') >= 0 {
		content = scan.AppendString(nil, content)
	}
	if !utf8.Valid(content) { // it has an escape of half a character
		return json.Unmarshal(raw, dst) == nil
	}
	*dst = string(content)
	return true
}

// id reads a string, which some programs write as a number.
func (o *object) id(dst *string, names ...string) {
	raw, name := o.takeMember(names...)
	switch {
	case name == "":
	case isNumber(raw):
		*dst = string(raw)
	case !readString(dst, raw):
		o.refuse(issueWrongType, name, raw, "a string")
	}
}

func (o *object) bool(dst *bool, names ...string) (found bool) {
	raw, name := o.takeMember(names...)
	if name == "" {
		return false
	}
	if json.Unmarshal(raw, dst) != nil {
		o.refuse(issueWrongType, name, raw, "true or false")
		return false
	}
	return true
}

// number reads a number, or a string that holds one.
func (o *object) number(names ...string) *float64 {
	f, _, _ := o.numberOf(names)
	return f
}

// numberOf is like number, and also returns the member.
func (o *object) numberOf(names []string) (f *float64, raw json.RawMessage, name string) {
	raw, name = o.takeMember(names...)
	if name == "" {
		return nil, nil, ""
	}
	digits, want, code := string(raw), "a number", issueWrongType
	if raw[0] == '"' {
		digits = "" // if the string cannot be read
		_ = json.Unmarshal(raw, &digits)
		digits = strings.TrimSpace(digits)
	}
	if raw[0] == '"' || isNumber(raw) {
		n, err := strconv.ParseFloat(digits, 64)
		switch {
		case err == nil && isFinite(n):
			return &n, raw, name
		case err == nil || errors.Is(err, strconv.ErrRange):
			want, code = "a finite number", issueNumber
		}
	}
	o.refuse(code, name, raw, want)
	return nil, raw, name
}

func present(members map[string]json.RawMessage, names []string) string {
	for _, name := range names {
		if raw, ok := members[name]; ok && string(raw) != "null" {
			return name
		}
	}
	return ""
}

// maxWhole is the largest whole number: it fits in an int on all platforms, and in a float64 without loss.
const maxWhole = 1<<31 - 1

// whole reads a whole number that is at least low.
func (o *object) whole(low int, names ...string) *int {
	f, raw, name := o.numberOf(names)
	switch {
	case f == nil:
		return nil
	case *f != math.Trunc(*f) || *f < float64(low) || *f > maxWhole:
		o.refuse(issueNumber, name, raw, fmt.Sprintf("a whole number, at least %d", low))
		return nil
	}
	return new(int(*f))
}

// seconds reads a duration.
func (o *object) seconds(dst *time.Duration, names ...string) {
	f, raw, name := o.numberOf(names)
	if f == nil {
		return
	}
	nanos := math.Round(*f * 1e9)
	if nanos < 0 || nanos > math.MaxInt64/2 {
		o.refuse(issueNumber, name, raw, "seconds, at least 0")
		return
	}
	*dst = time.Duration(nanos)
}

// time reads an RFC 3339 time, or the seconds since 1970.
func (o *object) time(dst *time.Time, names ...string) {
	raw, name := o.takeMember(names...)
	if name == "" {
		return
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || t.UTC().Year() < 0 || t.UTC().Year() > 9999 {
			o.refuse(issueWrongType, name, raw, "an RFC 3339 time")
			return
		}
		*dst = t.UTC()
		return
	}
	o.members[name] = raw
	f := o.number(name)
	if f == nil {
		return
	}
	if math.Abs(*f) > 1e11 {
		o.refuse(issueNumber, name, raw, "seconds since 1970")
		return
	}
	whole, part := math.Modf(*f)
	*dst = time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC()
}

// json reads any value unchanged.
func (o *object) json(dst *json.RawMessage, names ...string) {
	if raw, name := o.takeMember(names...); name != "" {
		*dst = compact(raw)
	}
}

// into reads a value whose type unmarshals itself.
func (o *object) into(dst any, want string, names ...string) (ok bool) {
	raw, name := o.takeMember(names...)
	if name == "" {
		return false
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		o.refuse(issueWrongType, name, raw, want)
		return false
	}
	return true
}

// list reads a list. Any other value is an error, since the run would lack what it holds.
func (o *object) list(names ...string) (elements []json.RawMessage, name string, err error) {
	raw, name := o.takeMember(names...)
	if name == "" {
		return nil, "", nil
	}
	if raw[0] != '[' {
		return nil, name, fmt.Errorf("%s: %s, want a list", o.at(name), describe(raw))
	}
	return elementsOf(raw), name, nil
}

// elementsOf returns the elements of a list, which is valid JSON. They share its memory. It returns nil for anything
// else.
func elementsOf(raw json.RawMessage) (list []json.RawMessage) {
	for walk := scan.Elements(scan.Value(raw)); walk.Next(); {
		list = append(list, json.RawMessage(walk.Val))
	}
	return list
}

// readObject returns the members of an object, which is valid JSON. They share its memory. It returns nil for anything
// else.
func readObject(raw json.RawMessage) map[string]json.RawMessage {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	members := map[string]json.RawMessage{}
	for walk := scan.Members(scan.Value(raw)); walk.Next(); {
		members[strings.ToValidUTF8(string(walk.Key), "\ufffd")] = json.RawMessage(walk.Val)
	}
	return members
}

func isNull(raw json.RawMessage) bool { return string(raw) == null }

func isNumber(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// compact returns a copy of raw without white space.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil // it came from a valid document
	}
	return b.Bytes()
}

// maxShown is how many characters of a value an issue shows.
const maxShown = 40

// describe describes a value for people.
func describe(raw json.RawMessage) string {
	switch {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "a list"
	case raw[0] == '"':
		var s string
		_ = json.Unmarshal(raw, &s) // what cannot be read is shown empty
		return "the string " + strconv.Quote(Excerpt(s, maxShown))
	case isNumber(raw):
		return "the number " + Excerpt(string(raw), maxShown)
	default:
		return string(raw)
	}
}
