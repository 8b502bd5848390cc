package keyring

// The limits, for tests.
const (
	MaxDirectory = maxDirectory
	MaxReason    = maxReason
)
