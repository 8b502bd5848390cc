package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// idle is the number of idle connections kept to the upstream.
const idle = 20_000

// serveReverse is the baseline: httputil.ReverseProxy in its usual form, with a large enough connection pool.
func serveReverse(ctx context.Context, args []string, _ io.Writer) error {
	set := flags("_reverse")
	addr := set.String("addr", "127.0.0.1:0", "where to listen")
	up := set.String("upstream", "", "where to send calls")
	if err := set.Parse(args); err != nil {
		return err
	}
	to, err := url.Parse(*up)
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{
			MaxIdleConns: idle, MaxIdleConnsPerHost: idle, DisableCompression: true, IdleConnTimeout: time.Minute,
		},
	}
	return listen(ctx, *addr, &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute})
}

func listen(ctx context.Context, addr string, server *http.Server) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
