module github.com/ibidhq/ibid

go 1.26.0

require (
	github.com/clipperhouse/uax29/v2 v2.7.0
	github.com/google/go-cmp v0.7.0
	github.com/rogpeppe/go-internal v1.16.0
	github.com/yuin/goldmark v1.8.7
)
