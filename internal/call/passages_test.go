package call_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/call"
)

// TestReadGiven reads the passages of a conversation: each turn numbers its own, and numbers that run on belong together.
func TestReadGiven(t *testing.T) {
	const (
		first  = "Passages, cite them:\n[1] Rye grows on poor soil.\n[2] Wheat needs warm soil.\n\nRye?"
		second = "Passages, cite them:\n[1] Oats are fed to horses.\n[2] Barley is brewed.\n\nOats?"
		more   = "[3] Maize grows in the south.\n[4] Rice grows in the water."
	)
	message := func(role, text string) string {
		return `{"role":"` + role + `","content":"` + strings.ReplaceAll(text, "\n", `\n`) + `"}`
	}
	for name, test := range map[string]struct {
		messages []string
		want     string
	}{
		"a system prompt":             {[]string{message("system", first), message("user", "Hm?")}, "Rye Wheat"},
		"new numbers in each turn":    {[]string{message("user", first), message("assistant", "Yes [1]."), message("user", second)}, "Oats Barley"},
		"a question about an earlier": {[]string{message("user", first), message("assistant", "Yes [1]."), message("user", "And wheat?")}, "Rye Wheat"},
		"numbers that run on":         {[]string{message("user", first), message("assistant", ""), message("tool", more)}, "Rye Wheat Maize Rice"},
		"an answer's own list":        {[]string{message("user", "Hm?"), message("assistant", first), message("user", "Oh.")}, ""},
		"tasks":                       {[]string{message("user", `To do:\n[1] Sow the rye on the upper field\n[2] Mow the meadow by the stream`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := call.ReadGiven("openai-chat", []byte(`{"messages":[`+strings.Join(test.messages, ",")+`]}`))
			var got []string
			for _, p := range g.Passages {
				got = append(got, strings.Fields(p.Text)[0])
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%q, want %q", strings.Join(got, " "), test.want)
			}
		})
	}
}
