package pdf_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/pdf"
	"github.com/ibidhq/ibid/internal/testenv"
)

// The tests of package snapshot cover malformed and hostile files, and each of the filters.

// A page printed by a browser: subset fonts, ligatures, tags, a list, a table, right-to-left text.
func TestRead(t *testing.T) {
	file := testenv.Must(os.ReadFile("../../snapshot/testdata/chromium.pdf"))(t)
	got := testenv.Must(pdf.Read(t.Context(), file, 10, time.Minute))(t)
	if !strings.HasPrefix(got.Created, "D:20") {
		t.Errorf("created %q", got.Created)
	}
	got.Created = ""
	want := &pdf.Document{
		Title: "Grey herons", Language: "en", Pages: 1, Read: 1,
		Paragraphs: []pdf.Paragraph{
			{Text: "Grey herons", Kind: pdf.Heading, Level: 1, Page: 1},
			{Text: "Herons are long-legged birds of rivers and ponds. In 1999 there were 1,204 nests, five years later " +
				"1,350: an efficient office counts “café” herons, too.", Page: 1},
			{Text: "Fish and frogs. Small insects.", Page: 1},
			{Text: "Year Nests 1999 1,204", Page: 1},
			{Text: "سُجل 1204 عش في عام 1999 (Ardea cinerea).", Page: 1},
			{Text: "אורכה 93 ס\"מ.", Page: 1},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := pdf.Read(t.Context(), file[:200], 10, time.Minute); !errors.Is(err, pdf.ErrDamaged) {
		t.Errorf("truncated: %v, want ErrDamaged", err)
	}
}
