package chat

import "time"

// RecheckEvery sets the interval at which a client's token is checked again.
func (c *Chat) RecheckEvery(every time.Duration) { c.recheckEvery = every }
