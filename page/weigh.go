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
	// maxWeighed is how many citations of an answer are compared with their quotes. The others say only what came of
	// reading their sources.
	maxWeighed = 5000
	// maxRemembered is how many answers a page remembers that of.
	maxRemembered = 1024
)

// weighed is what a page finds out itself of an answer as it stands: whether the quotes of each citation support what
// it is cited for, and which sentences have no source.
type weighed struct {
	claims []verify.ClaimReport // by citation; the zero value: it has no quote, or no place
	bare   []ibid.Span          // sentences without a source, in an answer that has some
}

// weighings remembers the answers that were weighed last. The zero value is ready.
type weighings struct {
	mu  sync.Mutex
	all map[string]*weighed
}

// of returns what is found out of an answer, which takes microseconds for each citation, and as long again for the
// sentences.
func (w *weighings) of(ctx context.Context, call *store.Call, found excerpts) *weighed {
	a := call.Answer
	if len(a.Citations) == 0 {
		return &weighed{}
	}
	// An answer changes only by citations that come later, and by what is found in their sources.
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
		return made // not all of it was found out
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil || len(w.all) >= maxRemembered {
		w.all = map[string]*weighed{}
	}
	w.all[key] = made
	return made
}

// bareSentences returns the sentences without a source in words.
func bareSentences(a *ibid.Answer, w *weighed) []string {
	var all []string
	for _, s := range w.bare {
		all = append(all, plainWords(a.Text[s.Start:s.End]))
	}
	return all
}

// reportOf returns what was found out of a citation; nil: nothing was.
func reportOf(claims []verify.ClaimReport, citation int) *verify.ClaimReport {
	if citation >= len(claims) || claims[citation].Finding == "" {
		return nil
	}
	return &claims[citation]
}

// excerpts are what was found in their sources for citations that quote nothing, by the citation's id and the address
// of the source.
type excerpts map[string]map[string]string

// sum tells them from others.
func (e excerpts) sum() uint64 {
	var sum uint64
	for citation, of := range e {
		for address, words := range of {
			h := fnv.New64a()
			_, _ = h.Write([]byte(citation + "\x00" + address + "\x00" + words)) // never fails
			sum += h.Sum64()                                                     // in any order
		}
	}
	return sum
}

// weigh compares the citations of an answer with their quotes, or with what was found in their sources, by the words:
// no model and no other server is asked. What one claim quotes may be the source of another.
func weigh(ctx context.Context, a *ibid.Answer, found excerpts) *weighed {
	made := &weighed{claims: make([]verify.ClaimReport, len(a.Citations))}
	claims, err := verify.CheckCitations(ctx, a, &verify.CitationOptions{
		Plain: plainWords, Most: maxWeighed, Quote: func(c *ibid.Citation, ref *ibid.Ref) string {
			s := a.Source(ref.Source)
			if s == nil || strings.TrimSpace(ref.Quote) != "" || len(found[c.ID]) == 0 {
				return ref.Quote
			}
			return found[c.ID][cleanAddress(s.URL)]
		},
	})
	if err == nil {
		made.claims = claims
	}
	if found, err := support.Attribute(ctx, a, nil, nil); err == nil {
		for i := range found.Sentences {
			s := &found.Sentences[i]
			// The citation of the last sentence may not have come.
			isCutOff := !a.Complete && s.Span.End >= len(strings.TrimRight(a.Text, " \n"))
			if s.Uncited() && s.Claim.Len() > 0 && !isCutOff {
				made.bare = append(made.bare, s.Span)
			}
		}
	}
	return made
}
