// Command gateway measures what the gateway costs beside net/http/httputil.ReverseProxy, and whether it keeps its word
// under load. docs/performance.md has its last results and says how to read them.
//
//	go -C bench/gateway run . compare          CPU and delay, ratios to ReverseProxy (about 20 minutes)
//	go -C bench/gateway run . compare -others  nginx, HAProxy, Portkey and LiteLLM too: scripts/bench-others installs them
//	go -C bench/gateway run . split            what of the CPU is for relaying, decoding, journal, store, search
//	go -C bench/gateway run . memory           memory with 5,000 open streams, and idle
//	go -C bench/gateway run . sync             what strict capture adds to the end mark
//	go -C bench/gateway run . intact           10,000 responses of all shapes: none altered, none cut short
//	go -C bench/gateway run . crash            kill -9 under load, twenty times: no completed answer missing
//	go -C bench/gateway run . outage           PostgreSQL stopped for 30 seconds at 200 calls a second
//	go -C bench/gateway run . soak             half an hour of random faults: nothing lost or altered, memory flat
//	go -C bench/gateway run . growth           what lists and searches take with a million answers (-db: PostgreSQL)
//	go -C bench/gateway run . bulk             a million responses for ibid cite, 100,000 manifests for ibid verify
//
// Everything is one program: it starts itself again as mock upstream, load generator and proxies, each pinned to a core
// (the proxy alone on core 0). All listen on 127.0.0.1. Every run ends by itself and only ends processes it started.
//
// CPU time is the proxy process's own, from schedstat, so other processes do not count. Each round measures all targets
// one after another, in random order; the result is the median of the rounds' ratios, with a 95 % bootstrap interval.
package main
