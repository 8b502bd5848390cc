package otel

// Limits for tests outside the package.
const (
	MaxSpans         = maxSpans
	MaxSpanBytes     = maxSpanBytes
	MaxSpanValues    = maxSpanValues
	MaxSpanDepth     = maxSpanDepth
	MaxSpanDocuments = maxSpanDocuments
	MaxSpanText      = maxSpanText
	MaxSpanStep      = maxSpanStep
)
