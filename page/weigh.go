package page

import (
	"context"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

const (
	// maxWeighed is how many citations of an answer are compared with their quotes. Further ones only have the result
	// of reading their sources.
	maxWeighed = 5000
	// maxRemembered is for how many answers the results are cached.
	maxRemembered = 1024
)

// weighed is what a page itself finds out about an answer: whether the quotes of each citation support its claim, and
// which sentences have no source.
type weighed struct {
	claims []verify.ClaimReport // by citation; the zero value if it has no quote or no place
	bare   []ibid.Span          // sentences without a source, in an answer that has some
}

// weighings caches the results of the latest answers. The zero value is ready to use.
type weighings struct {
	mu  sync.Mutex
	all map[string]*weighed
}

// of returns the result for an answer. It takes microseconds for each citation, and as long again for the sentences.
func (w *weighings) of(ctx context.Context, call *store.Call, found excerpts) *weighed {
	a := call.Answer
	if len(a.Citations) == 0 {
		return &weighed{}
	}
	// An answer changes only by late citations, and by the words found in their sources.
	key := strings.Join([]string{
		call.Tenant, call.AnswerID, strconv.Itoa(len(a.Citations)), strconv.Itoa(len(a.Text)),
		strconv.FormatUint(found.sum(), 36), strconv.FormatBool(a.Complete),
	}, "\x00")
	w.mu.Lock()
	known := w.all[key]
	w.mu.Unlock()
	if known != nil {
		return known
	}
	made := weigh(ctx, a, found)
	if ctx.Err() != nil {
		return made // incomplete
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil || len(w.all) >= maxRemembered {
		w.all = map[string]*weighed{}
	}
	w.all[key] = made
	return made
}

// bareSentences returns the text of the sentences without a source.
func bareSentences(a *ibid.Answer, w *weighed) []string {
	var all []string
	for _, s := range w.bare {
		all = append(all, plainWords(a.Text[s.Start:s.End]))
	}
	return all
}

// reportOf returns the result for a citation; nil if there is none.
func reportOf(claims []verify.ClaimReport, citation int) *verify.ClaimReport {
	if citation >= len(claims) || claims[citation].Finding == "" {
		return nil
	}
	return &claims[citation]
}

// excerpts are the words found in sources for citations that quote nothing, and for quotes that were cut short, by the
// citation's id and the address of the source.
type excerpts map[string]map[string]sourceWords

// sourceWords are words of a source. Passage is what stands around a quote that was cut short.
type sourceWords struct{ text, passage string }

// sum returns a checksum of them.
func (e excerpts) sum() uint64 {
	var sum uint64
	for citation, of := range e {
		for address, words := range of {
			h := fnv.New64a()
			key := strings.Join([]string{citation, address, words.text, words.passage}, "\x00")
			_, _ = h.Write([]byte(key)) // never fails
			sum += h.Sum64()            // in any order
		}
	}
	return sum
}

// weigh compares the citations of an answer with their quotes, or with the words found in their sources, by words
// alone: no model and no other server is called. Quotes of one claim may show that another claim names the wrong
// source.
func weigh(ctx context.Context, a *ibid.Answer, found excerpts) *weighed {
	made := &weighed{claims: make([]verify.ClaimReport, len(a.Citations))}
	claims, err := verify.CheckCitations(ctx, a, &verify.CitationOptions{
		Plain: plainWords, Most: maxWeighed, Quote: func(c *ibid.Citation, ref *ibid.Ref) (quote, passage string) {
			s := a.Source(ref.Source)
			if s == nil || len(found[c.ID]) == 0 {
				return verify.Given(a, ref), ""
			}
			words := found[c.ID][cleanAddress(s.URL)]
			if strings.TrimSpace(ref.Quote) != "" && words.passage == "" {
				return ref.Quote, ""
			}
			return words.text, words.passage
		},
	})
	if err == nil {
		made.claims = claims
	}
	if found, err := support.Attribute(ctx, a, nil, nil); err == nil {
		for i := range found.Sentences {
			s := &found.Sentences[i]
			// The citation of the last sentence may not have arrived.
			isCutOff := !a.Complete && s.Span.End >= len(strings.TrimRight(a.Text, " \n"))
			if s.Uncited() && s.Claim.Len() > 0 && !isCutOff {
				made.bare = append(made.bare, s.Span)
			}
		}
	}
	return made
}
