package otel

// What tests outside of the package need to know.
const (
	MaxSpans         = maxSpans
	MaxSpanBytes     = maxSpanBytes
	MaxSpanValues    = maxSpanValues
	MaxSpanDepth     = maxSpanDepth
	MaxSpanDocuments = maxSpanDocuments
	MaxSpanText      = maxSpanText
	MaxSpanStep      = maxSpanStep
)
