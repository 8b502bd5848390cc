package otel

import (
	"errors"
	"fmt"
	"mime"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// The limits of one trace request. Spans that exceed one are rejected and counted; what is left out of a span is an
// issue of its step.
const (
	maxSpans = 20_000 // spans of one request
	// bytes of one span, or of the attributes of a resource; a larger resource makes the request invalid
	maxSpanBytes     = 4 << 20
	maxSpanValues    = 20_000 // attributes, items of arrays, members of objects and events of one span, together
	maxSpanDepth     = 32     // nesting of the value of an attribute
	maxSpanDocuments = 500    // documents of one span; further ones are left out
	// bytes of a question, an answer or the content of a document; the rest is left out
	maxSpanText = 1 << 18
	// maxSpanStep is how many bytes the step of a span may have as JSON. In a larger one, the output and then the input
	// are replaced by their digests, and then the contents of documents by their excerpts.
	maxSpanStep = 1<<20 - 1<<13
)

// The media types of OTLP over HTTP.
const (
	JSON     = "application/json"
	Protobuf = "application/x-protobuf"
)

// ErrMediaType is the error for a body whose media type is not one of OTLP over HTTP.
var ErrMediaType = errors.New("the media type is neither " + Protobuf + " nor " + JSON)

// Options configures how traces become runs. Nil means the zero value.
type Options struct {
	// RunAttributes are the attributes that name a span's run; the first one that the span or, failing that, its
	// resource has counts. Nil means "ibid.run". Spans without one belong to the run that other spans of their trace in
	// the same request name; otherwise the run's id is their trace id. Set the attribute on every span or on the
	// resource, so that nothing depends on how an exporter splits its batches. With "session.id" or
	// "gen_ai.conversation.id" a whole session becomes one run.
	RunAttributes []string
}

// SpanSet is the content of a trace request.
type SpanSet struct {
	// Runs has the runs, sorted by id. Each span is a step without a number, whose ID is the span's. Spans arrive in
	// any order, in several requests, and again after a failure: record these steps one by one, by run and id, and call
	// [Arrange] on all of them when the run is read.
	Runs []*trail.Trail
	// Ignored counts the valid spans that are not part of an agent's run: they are not kept.
	Ignored int
	// Unread counts the ignored spans that look like parts of an agent's run in a convention that is not known. Example
	// describes the first of them.
	Unread  int
	Example string
	// Partial counts the spans that were read only in part: they exceed a limit, or a tool's result has parts that
	// cannot be read as a source. PartialExample says what of the first of them was not read.
	Partial        int
	PartialExample string
	// Rejected counts the spans that cannot be read or exceed a limit. Reason is why the first of them was rejected.
	Rejected int
	Reason   string
}

// ReadSpans reads the spans of agents' runs from the body of an OTLP/HTTP trace request. They are recognised by the
// attributes of OpenInference, OpenTelemetry's GenAI conventions, OpenLLMetry and Langfuse, which docs/traces.md lists.
// Invalid spans are counted and left out. ReadSpans returns an error if the body is not a trace request, which wraps
// [ErrMediaType] if that is the reason.
func ReadSpans(contentType string, b []byte, o *Options) (*SpanSet, error) {
	r := newReader(o)
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && mediaType == JSON:
		err = r.readJSON(b)
	case err == nil && mediaType == Protobuf:
		err = r.readProto(b)
	default:
		err = ErrMediaType
	}
	if err != nil {
		return nil, fmt.Errorf("read a trace request: %w", err)
	}
	return r.finish(), nil
}

// Read reads the runs in the body of an OTLP/HTTP trace request, as far as the request contains them, sorted by id. It
// combines [ReadSpans] and [Arrange]. If spans were rejected, each trail has an issue.
func Read(contentType string, b []byte, o *Options) ([]*trail.Trail, error) {
	set, err := ReadSpans(contentType, b, o)
	if err != nil {
		return nil, err
	}
	for _, t := range set.Runs {
		Arrange(t)
		if set.Rejected > 0 {
			t.Issues = append(t.Issues, ibid.Issue{
				Code:   issueSpans,
				Detail: fmt.Sprintf("%d spans of the request were left out: %s", set.Rejected, set.Reason),
			})
		}
	}
	return set.Runs, nil
}

// The codes of issues of traced runs.
const (
	issueSpans     = "spans-rejected"
	issueSpanCut   = "span-cut"    // a part of the span was over a limit
	issueUse       = "use-assumed" // it is unknown whether retrieved documents were used
	issueRunFailed = "run-failed"  // the span that is the run failed
	issueUnread    = "result-unread"
)
