package chat

import "time"

// AskAgain makes a chat ask after so long whether a reader's token is still valid.
func (c *Chat) AskAgain(every time.Duration) { c.stillEvery = every }
