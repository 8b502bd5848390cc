package page

import (
	"net/http"

	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/snapshot"
)

const (
	// maxVerifying is how many verifications the page makes at the same time. The API has its own bound, which holds as well.
	maxVerifying = 2
	// maxComparing is how many comparisons of strategies are made at the same time.
	maxComparing = 1
	// maxReading is how many kept copies are read at the same time: each may be as large as store.MaxCopy.
	maxReading = 2
)

// bounds is what readers can have done at the same time.
type bounds struct {
	verifying *semaphore.Weighted
	comparing *semaphore.Weighted
	reading   *semaphore.Weighted // of kept copies
	texts     *snapshot.Texts     // that were read of them
	digests   digests             // what overviews show
}

func newBounds() *bounds {
	return &bounds{
		verifying: semaphore.NewWeighted(maxVerifying), comparing: semaphore.NewWeighted(maxComparing),
		reading: semaphore.NewWeighted(maxReading), texts: &snapshot.Texts{},
	}
}

// busy is the error for what is done by others at the moment.
func busy(detail string) error {
	return &gateway.Problem{
		Status: http.StatusTooManyRequests, Code: gateway.CodeTooMany, Detail: detail, Hint: "Try again in a moment.",
		Header: http.Header{"Retry-After": {"5"}},
	}
}
