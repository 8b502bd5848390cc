package halt

import "time"

// WorkTime is the CPU time that one request may take to decode and render answers, and one response to be decoded. Most
// take milliseconds; what exceeds it is made to be slow.
const WorkTime = 10 * time.Second

// TimePassed returns a function that returns the time that has passed.
func TimePassed() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}
