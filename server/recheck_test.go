package server

import (
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

// What --recheck takes, and how it is written back.
func TestRecheckSet(t *testing.T) {
	for text, want := range map[string]Recheck{
		"off": {Off: true}, "0": {Off: true}, "0s": {Off: true}, "once": {Once: true}, "24h": {Every: 24 * time.Hour},
	} {
		var got, again Recheck
		testenv.OK(t, got.Set(text))
		testenv.Equal(t, text, want, got)
		testenv.OK(t, again.Set(got.String()))
		testenv.Equal(t, "again "+text, want, again)
	}
	for _, text := range []string{"", "never", "5", "-1h", "10ms"} {
		if err := new(Recheck).Set(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Without a setting sources are read once where nobody else uses ibid, and nowhere else.
func TestRecheckDefault(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		want   Recheck
	}{
		"as it is":   {func(*Config) {}, Recheck{Once: true}},
		"exposed":    {func(c *Config) { c.Listen = "0.0.0.0:8080" }, Recheck{Off: true}},
		"public":     {func(c *Config) { c.PublicURL = "https://agent.example" }, Recheck{Off: true}},
		"a token":    {func(c *Config) { c.BootstrapToken = "a-token-that-is-long" }, Recheck{Off: true}},
		"publishing": {func(c *Config) { c.Publish.Level = "1" }, Recheck{Off: true}},
		"postgres":   {func(c *Config) { c.DB = "postgres://127.0.0.1/ibid" }, Recheck{Off: true}},
		"several":    {func(c *Config) { c.NATS = "nats://127.0.0.1:4222" }, Recheck{Off: true}},
		"said":       {func(c *Config) { c.PublicURL, c.Publish.Recheck.Once = "https://agent.example", true }, Recheck{Once: true}},
	} {
		c := Defaults()
		test.change(c)
		testenv.Equal(t, name, test.want, c.recheck())
	}
}
