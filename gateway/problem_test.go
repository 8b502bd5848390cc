package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

func TestWriteProblem(t *testing.T) {
	const docs = "https://github.com/ibidhq/ibid/blob/main/docs/http.md#"
	for _, test := range []struct {
		name   string
		err    error
		status int
		header map[string]string
		want   string
	}{
		{
			name: "unknown errors are not revealed", err: fmt.Errorf("open /var/secret: %w", errors.New("password=1")), status: 500,
			want: `{"type":"` + docs + `internal-error","title":"Internal Server Error","status":500,"detail":"something went wrong inside ibid","hint":"its log says what"}`,
		},
		{
			name: "not found", err: fmt.Errorf("read an answer: %w", store.ErrNotFound), status: 404,
			want: `{"type":"` + docs + `not-found","title":"Not Found","status":404,"detail":"there is nothing with this id","hint":"ids of other tenants, and what was deleted or pruned, look the same as ids that never were"}`,
		},
		{
			name: "cursor", err: fmt.Errorf("list: %w", store.ErrCursor), status: 400,
			want: `{"type":"` + docs + `bad-request","title":"Bad Request","status":400,"detail":"cursor: it is not from a page of this list","hint":"take next_cursor of the page before, and leave the other parameters as they were"}`,
		},
		{
			name: "too large", err: &http.MaxBytesError{Limit: 7}, status: 413,
			want: `{"type":"` + docs + `too-large","title":"Request Entity Too Large","status":413,"detail":"the request's body has more than 7 bytes"}`,
		},
		{
			name: "deadline", err: fmt.Errorf("list: %w", context.DeadlineExceeded), status: 503, header: map[string]string{"Retry-After": "2"},
			want: `{"type":"` + docs + `unavailable","title":"Service Unavailable","status":503,"detail":"it took too long","hint":"try again; /readyz shows what is not working"}`,
		},
		{
			name: "no code, angle brackets", err: &gateway.Problem{Status: 418, Title: "<Teapot>"}, status: 418,
			want: `{"type":"about:blank","title":"<Teapot>","status":418}`,
		},
		{
			name: "the zero value", err: &gateway.Problem{}, status: 500,
			want: `{"type":"about:blank","title":"Internal Server Error","status":500}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			w.Header().Set("ETag", `"of something else"`)
			gateway.WriteProblem(w, httptest.NewRequest(http.MethodGet, "/", nil), test.err)
			testenv.Equal(t, "body", test.want+"\n", w.Body.String())
			if w.Code != test.status {
				t.Errorf("status %d, want %d", w.Code, test.status)
			}
			want := map[string]string{"Content-Type": "application/problem+json", "Etag": "", "Cache-Control": "no-store"}
			maps.Copy(want, test.header)
			for name, value := range want {
				if got := w.Header().Get(name); got != value {
					t.Errorf("%s: %q, want %q", name, got, value)
				}
			}
		})
	}
	w := httptest.NewRecorder()
	gateway.WriteProblem(w, httptest.NewRequest(http.MethodHead, "/", nil), store.ErrNotFound)
	if w.Body.Len() != 0 || w.Code != 404 {
		t.Errorf("HEAD: status %d, body %q", w.Code, w.Body)
	}
}

// The type of every problem refers to its explanation.
func TestProblemCodesAreDocumented(t *testing.T) {
	page := testenv.Must(os.ReadFile(filepath.Join(testenv.Root(t), "docs", "http.md")))(t)
	for code := range gateway.Statuses {
		if !strings.Contains(string(page), "\n### "+code+"\n") {
			t.Errorf("docs/http.md has no heading %q", code)
		}
	}
}
