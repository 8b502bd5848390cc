package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
)

// What serve does and serve --check foresees, in one way and with the same words.

// logName returns the name of the log of an origin.
func logName(origin string) string {
	_, name, _ := strings.Cut(origin, "://")
	return name + "/log"
}

// openKeyring opens the keys of a data directory, and makes none.
func openKeyring(c *config, w world) (*keyring.Ring, error) {
	return keyring.Open(filepath.Join(c.data, keysDir), &keyring.Options{Getenv: func(name string) string {
		value, _ := w.env(name)
		return value
	}})
}

// checkPublisher says what keeps a publisher from publishing.
func checkPublisher(p *manifest.Publisher) error {
	if err := p.Check(); err != nil {
		return &usageError{
			fmt.Errorf("preparing attribution: %w", err), "--agent-id and --public-url name the same host",
		}
	}
	return nil
}

// unusable says that no key can sign for a use.
func unusable(use keyring.Use, err error) error {
	if errors.Is(err, keyring.ErrNoKey) {
		return &usageError{
			fmt.Errorf(
				"none of the keys for use %s can sign: %w", use, err,
			),
			"ibid key list shows them; ibid key new --use " + string(use) + " makes one",
		}
	}
	return fmt.Errorf("reading the keys: %w", err)
}

// foreignHint is what to do about a log of another name or with other keys.
func foreignHint(data string) string {
	return "a database has one --public-url for good, and all who use it have the same keys in " + filepath.Join(
		data, keysDir,
	)
}
