package otel

import (
	"errors"
	"fmt"
	"mime"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// The limits of what is read from one trace request. Spans that are over one are rejected and counted; what is left out
// of a span is an issue of its step.
const (
	maxSpans = 20_000 // spans of one request
	// bytes of one span, or of the attributes of a resource, without which its request is none
	maxSpanBytes     = 4 << 20
	maxSpanValues    = 20_000 // attributes, items of arrays, members of objects and events of one span, together
	maxSpanDepth     = 32     // how deep the value of an attribute may be nested
	maxSpanDocuments = 500    // documents of one span; those that follow are left out
	// bytes of a question, an answer or the content of a document; the rest of it is left out
	maxSpanText = 1 << 18
	// maxSpanStep is how many bytes the step of a span may have as JSON. Of a larger one the output and then the input
	// become their digests, and then the contents of documents their excerpts.
	maxSpanStep = 1<<20 - 1<<13
)

// The media types of OTLP over HTTP.
const (
	JSON     = "application/json"
	Protobuf = "application/x-protobuf"
)

// ErrMediaType is the error for a body that is neither of the media types of OTLP over HTTP.
var ErrMediaType = errors.New("the media type is neither " + Protobuf + " nor " + JSON)

// Options say how traces become runs. Nil stands for the zero value.
type Options struct {
	// RunAttributes are the attributes that name a span's run, the first one that is there counting: of the span, else
	// of its resource. Nil stands for "ibid.run". Spans without one follow those of their trace in the same request
	// that have one; else the run's id is their trace id. So that nothing depends on how an exporter cuts its batches,
	// set the attribute on every span or on the resource. With "session.id" or "gen_ai.conversation.id" a whole session
	// becomes one run.
	RunAttributes []string
}

// SpanSet is what a trace request held.
type SpanSet struct {
	// Runs has the runs, by id, as spans show them: each span is a step without a number, whose ID is the span's. Spans
	// come in any order, in several requests, and again after a failure: record these steps one by one, by run and id,
	// and call [Arrange] on all that are there when the run is read.
	Runs []*trail.Trail
	// Ignored counts the spans that are sound and have nothing to do with an agent's run: nothing is kept of them.
	Ignored int
	// Rejected counts the spans that cannot be read or are over a limit. Reason says why the first of them is.
	Rejected int
	Reason   string
}

// ReadSpans reads the spans of agents' runs from the body of an OTLP/HTTP trace request. They are recognised by the
// attributes of OpenInference, OpenTelemetry's GenAI conventions, OpenLLMetry and Langfuse, which docs/traces.md lists.
// A span that is wrong is counted and left out; the error is for a body that is no trace request, and wraps
// [ErrMediaType] where the media type says so.
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

// Read reads the runs in the body of an OTLP/HTTP trace request, each as far as the request shows it, by id. It
// is [ReadSpans] and [Arrange]. That spans were rejected is an issue of each trail.
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
	issueUse       = "use-assumed" // nothing shows whether what was retrieved was used
	issueRunFailed = "run-failed"  // the span that is the run failed
)
