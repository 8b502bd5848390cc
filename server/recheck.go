package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/ibidhq/ibid/store"
)

// minRecheck is the shortest interval at which sources may be fetched again.
const minRecheck = time.Second

// Recheck says when cited sources are read. The zero value leaves that to the other settings.
type Recheck struct {
	Off   bool
	Once  bool          // after each answer
	Every time.Duration // also again this often; 0 if not
}

// String returns the setting as [Recheck.Set] reads it; empty for the zero value.
func (r *Recheck) String() string {
	switch {
	case r.Off:
		return levelOff
	case r.Once:
		return onceRecheck
	case r.Every > 0:
		return r.Every.String()
	}
	return ""
}

// onceRecheck is the word for reading sources after each answer.
const onceRecheck = "once"

// Type returns the name of the value in help texts.
func (r *Recheck) Type() string { return "WHEN" }

// Set reads a setting: off, once or an interval, of which 0 means off.
func (r *Recheck) Set(text string) error {
	switch text {
	case levelOff, "0":
		*r = Recheck{Off: true}
		return nil
	case onceRecheck:
		*r = Recheck{Once: true}
		return nil
	}
	every, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("must be off, once or an interval such as 24h")
	case every < 0 || every > 0 && every < minRecheck:
		return fmt.Errorf("%v is too short", every)
	}
	*r = Recheck{Off: every == 0, Every: every}
	return nil
}

func (r *Recheck) isDefault() bool { return *r == Recheck{} }

// recheck returns when cited sources are read. By default it is once, where ibid is on the machine of the only one who
// uses it, who has just read the answer: nobody else learns from it what was asked, and nothing is published.
func (c *Config) recheck() Recheck {
	p := &c.Publish
	if !p.Recheck.isDefault() {
		return p.Recheck
	}
	flag, _ := c.exposed()
	alone := flag == "" && c.PublicURL == "" && c.BootstrapToken == "" && c.NATS == "" && !store.IsPostgres(c.DB) &&
		p.Level == levelOff
	return Recheck{Once: alone, Off: !alone}
}
