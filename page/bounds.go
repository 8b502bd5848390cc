package page

import (
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
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
	// retryAfter is when whoever was refused for these bounds may try again.
	retryAfter = 5 * time.Second
)

// bounds is what readers can have done at the same time: quotas are of each tenant, semaphores of all together.
type bounds struct {
	verifying httpx.Quota
	uploads   httpx.Quota
	comparing httpx.Quota
	saving    httpx.Quota         // of kept copies
	exports   httpx.Quota         // of conversations
	watching  httpx.Quota         // streams of answers and runs
	reading   *semaphore.Weighted // of kept copies
	exporting *semaphore.Weighted // of conversations
	texts     *snapshot.Texts     // that were read of them
	digests   digests             // what overviews show
}

func newBounds() *bounds {
	return &bounds{
		verifying: httpx.Quota{Most: maxVerifying},
		uploads:   httpx.Quota{Most: maxUploads},
		comparing: httpx.Quota{Most: maxComparing},
		saving:    httpx.Quota{Most: maxSaving},
		exports:   httpx.Quota{Most: maxExporting},
		watching:  httpx.Quota{Most: maxLive},
		reading:   semaphore.NewWeighted(maxReading),
		exporting: semaphore.NewWeighted(maxMaking),
		texts:     &snapshot.Texts{},
	}
}

// busy is the error for what is done by others at the moment.
func busy(detail string) error { return gateway.TooMany(retryAfter, detail, "Try again in a moment.") }
