package httpsig

// Base is the text that Sign signs, for tests.
func Base(m *Message, p *Params) ([]byte, error) { return baseFor(m, p) }

// The limits, for tests.
const (
	MaxField      = maxField
	MaxComponents = maxComponents
)
