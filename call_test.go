package ibid_test

import (
	"net/url"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestCallOptions(t *testing.T) {
	for _, tc := range testenv.Table[struct {
		Method, URL, Provider string
		Ok                    bool
	}](t, "testdata/tables/call-options.txt") {
		u, err := url.Parse(tc.URL)
		if err != nil {
			t.Fatal(err)
		}
		if opts, ok := ibid.CallOptions(tc.Method, u); ok != tc.Ok || opts.Provider != tc.Provider {
			t.Errorf("CallOptions(%s %s) = provider %q, %t; want %q, %t", tc.Method, tc.URL, opts.Provider, ok, tc.Provider, tc.Ok)
		}
	}
}
