package trail

// What tests outside of the package need to know.
const (
	MaxLinks = maxLinks
	MaxSteps = maxSteps
)
