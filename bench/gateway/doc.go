// Command gateway measures what the gateway costs beside net/http/httputil.ReverseProxy, and whether it keeps its word
// under load. docs/performance.md has its last results and says how to read them.
//
//	go run ./bench/gateway compare          CPU and delay, ratios to ReverseProxy (about 20 minutes)
//	go run ./bench/gateway compare -others  nginx, HAProxy, Portkey and LiteLLM too: scripts/bench-others installs them
//	go run ./bench/gateway memory           memory with 5,000 open streams, and idle
//	go run ./bench/gateway sync             what strict capture adds to the end mark
//	go run ./bench/gateway intact           10,000 responses of all shapes: none altered, none cut short
//	go run ./bench/gateway crash            kill -9 under load, twenty times: no completed answer missing
//	go run ./bench/gateway outage           PostgreSQL stopped for 30 seconds at 200 calls a second
//	go run ./bench/gateway soak             half an hour of random faults: nothing lost or altered, memory flat
//	go run ./bench/gateway growth           what lists and searches take with a million answers (-db: PostgreSQL)
//	go run ./bench/gateway bulk             a million responses for ibid cite, 100,000 manifests for ibid verify
//
// Everything is one program: it starts itself again as mock upstream, load generator and proxies, each pinned to a core
// (the proxy alone on core 0). All listen on 127.0.0.1. Every run ends by itself and ends only processes that it
// started.
//
// CPU time is the proxy process's own, from schedstat, so neighbours on the machine do not count. Rounds measure all
// targets one after another, in an order that is shuffled anew each round; what is reported is the median of the
// rounds' ratios, with a bootstrap interval of 95 %.
package main
