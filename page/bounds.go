package page

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/snapshot"
)

const (
	// maxVerifying is how many verifications a tenant has the page make at the same time. The API has its own bound,
	// which holds as well.
	maxVerifying = 2
	// maxUploads is how many forms of a tenant that bring something to be verified are read at the same time: each may
	// be as large as maxVerified.
	maxUploads = 8
	// maxComparing is how many comparisons of strategies are made for a tenant at the same time, maxCompare on how many
	// stored runs, the last ones, and compareFor how long that may take: what was not looked at by then is left out,
	// and the page says so. `ibid experiment` takes more.
	maxComparing = 1
	maxCompare   = 50
	compareFor   = 20 * time.Second
	// maxReading is how many kept copies are read at the same time: each may be as large as store.MaxCopy.
	maxReading = 2
	// maxMaking is how many conversations are made files of at the same time, whoever's: each may be as large as
	// maxExport, and is in memory several times.
	maxMaking = 2
)

// bounds is what readers can have done at the same time.
type bounds struct {
	verifying slots
	uploads   slots
	comparing slots
	saving    slots               // of kept copies
	exports   slots               // of conversations
	watching  slots               // streams of answers and runs
	reading   *semaphore.Weighted // of kept copies
	exporting *semaphore.Weighted // of conversations
	texts     *snapshot.Texts     // that were read of them
	digests   digests             // what overviews show
}

func newBounds() *bounds {
	return &bounds{
		reading:   semaphore.NewWeighted(maxReading),
		exporting: semaphore.NewWeighted(maxMaking),
		texts:     &snapshot.Texts{},
	}
}

// slots counts what is done for each tenant at the same time, so that none takes another's place. The zero value is
// ready.
type slots struct {
	mu    sync.Mutex
	taken map[string]int // by tenant; only what is not 0
}

// take takes one of a tenant's slots, of which there are so many; not ok: all are taken. The function gives it back.
func (s *slots) take(tenant string, of int) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[tenant] >= of {
		return nil, false
	}
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	s.taken[tenant]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.taken[tenant]--; s.taken[tenant] == 0 {
			delete(s.taken, tenant)
		}
	}, true
}

// busy is the error for what is done by others at the moment.
func busy(detail string) error {
	return &gateway.Problem{
		Status: http.StatusTooManyRequests, Code: gateway.CodeTooMany, Detail: detail, Hint: "Try again in a moment.",
		Header: http.Header{"Retry-After": {"5"}},
	}
}
