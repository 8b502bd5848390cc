package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestBuild(t *testing.T) {
	platform := " go1.26.0 " + runtime.GOOS + "/" + runtime.GOARCH
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for _, test := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{}, "(devel)"},
		{debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}}, "v0.1.0"},
		{debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{revision}}, "v0.1.0 (0123456789ab)"},
		{
			debug.BuildInfo{Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}},
			"(devel) (0123456789ab, modified)",
		},
	} {
		test.info.GoVersion = "go1.26.0"
		if got := newBuild(&test.info).String(); got != test.want+platform {
			t.Errorf("%q, want %q", got, test.want+platform)
		}
	}
}
