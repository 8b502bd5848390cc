package trail

// Limits for tests outside the package.
const (
	MaxLinks = maxLinks
	MaxSteps = maxSteps
)
