package gateway

import (
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
)

// readRequest takes from the request what is kept with its answer.
func (e *exchange) readRequest() {
	defer e.survive()
	o := &e.g.options
	if len(e.body) == 0 || len(e.in.Header["Content-Encoding"]) > 0 ||
		o.Prompts == PromptsNone && o.Backfill == nil && o.Tracer == nil {
		return
	}
	if request, err := call.ReadRequest(e.route.Format, e.body); err == nil { // else it is the upstream's to complain
		if e.model == "" {
			e.model = request.Model
		}
		e.stream = e.route.Stream || request.Stream
		e.prompt = promptOf(request, o.Prompts)
	}
}

func promptOf(r *call.Request, keep Prompts) []store.Message {
	switch keep {
	case PromptsAll:
		prompt := make([]store.Message, len(r.Messages))
		for i, m := range r.Messages {
			prompt[i] = store.Message{Role: m.Role, Text: m.Text}
		}
		return prompt
	case PromptsNone:
	default:
		if m, ok := r.LastUser(); ok {
			return []store.Message{{Role: m.Role, Text: m.Text}}
		}
	}
	return nil
}
