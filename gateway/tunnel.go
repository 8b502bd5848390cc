package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
)

// tunnelKey holds the exchange of a tunnelled call in its context.
type tunnelKey struct{}

// newTunnel returns what passes calls on that ask for another protocol, such as WebSocket: from then on bytes go both
// ways and nothing of them is read.
func (g *Gateway) newTunnel(u *upstream) http.Handler {
	return &httputil.ReverseProxy{
		Transport:     u.transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			e := exchangeOf(r.In)
			r.Out.URL, r.Out.Host = &e.to, ""
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if values, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = values
				}
			}
		},
		ModifyResponse: func(res *http.Response) error {
			exchangeOf(res.Request).status = res.StatusCode
			for name, values := range res.Header {
				if values = saidByUpstream(name, values); len(values) == 0 {
					delete(res.Header, name)
					continue
				}
				res.Header[name] = values
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) { exchangeOf(r).upstreamFailed(err) },
	}
}

// tunnel passes on a call that asks for another protocol. It ends with the gateway, since its server does not know of
// it any more.
func (e *exchange) tunnel() {
	ctx, cancel := context.WithCancel(context.WithValue(e.in.Context(), tunnelKey{}, e))
	defer cancel()
	defer context.AfterFunc(e.g.stop, cancel)()
	e.up.tunnel.ServeHTTP(e.w, e.in.WithContext(ctx))
}

func exchangeOf(r *http.Request) *exchange {
	e, _ := r.Context().Value(tunnelKey{}).(*exchange)
	return e
}
