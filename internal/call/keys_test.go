package call

import (
	"strings"
	"testing"
)

// A key is found in every form in which a response may repeat it; a string too short to be a key is not.
func TestKeyForms(t *testing.T) {
	const key = `sk/a+b&c<d>"e"'f'=`
	keys := KeysOf(map[string][]string{"Authorization": {"Bearer " + key}, "X-Api-Key": {"herons"}})
	for about, form := range map[string]string{
		"as sent":                      "Bearer " + key,
		"without its scheme":           key,
		"in a query":                   "sk%2Fa%2Bb%26c%3Cd%3E%22e%22%27f%27%3D",
		"in a query, lower case":       "sk%2fa%2bb%26c%3cd%3e%22e%22%27f%27%3d",
		"in a path":                    "sk%2Fa+b&c%3Cd%3E%22e%22%27f%27=",
		"in a query, but for slashes":  "sk/a%2Bb%26c%3Cd%3E%22e%22%27f%27%3D", // Python's urllib.parse.quote
		"in a path, but for slashes":   "sk/a+b&c%3Cd%3E%22e%22%27f%27=",
		"in HTML":                      "sk/a+b&amp;c&lt;d&gt;&#34;e&#34;&#39;f&#39;=",
		"in JSON":                      `sk/a+b\u0026c\u003cd\u003e\"e\"'f'=`,
		"in JSON with escaped slashes": `sk\/a+b&c<d>"e"'f'=`,
		"in HTML, in JSON":             `sk/a+b\u0026amp;c\u0026lt;d\u0026gt;\u0026#34;e\u0026#34;\u0026#39;f\u0026#39;=`,
	} {
		said := "It is " + form + ", not herons."
		if masked, _ := keys.MaskText(said, false); masked != "It is "+strings.Repeat("*", len(form))+", not herons." {
			t.Errorf("%s: masked as %q", about, masked)
		}
		if hidden := keys.Hide(said); hidden != "It is …, not herons." {
			t.Errorf("%s: hidden as %q", about, hidden)
		}
		if !keys.In([]byte(said)) {
			t.Errorf("%s: not found", about)
		}
	}
	tab := KeysOf(map[string][]string{"Authorization": {"Bearer\t" + key}})
	if masked, _ := tab.MaskText(key, false); masked != strings.Repeat("*", len(key)) {
		t.Errorf("after a tab: masked as %q", masked)
	}
}
