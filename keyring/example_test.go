package keyring_test

import (
	"fmt"
	"log"
	"time"

	"github.com/ibidhq/ibid/keyring"
)

// A key on a lost laptop: what it signed before that day is still valid.
func ExampleKey_Good() {
	ring := keyring.Memory(nil)
	made := time.Date(2026, 4, 28, 12, 0, 0, 0, time.UTC)
	k, err := ring.New(&keyring.NewOptions{At: made})
	if err != nil {
		log.Fatal(err)
	}
	if err := ring.Revoke(k.ID, made.Add(24*time.Hour), "a laptop was lost"); err != nil {
		log.Fatal(err)
	}
	published, err := ring.Directory(true)
	if err != nil {
		log.Fatal(err)
	}
	keys, err := keyring.ParseDirectory(published, nil) // as a reader does
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(keys[0].Good(made.Add(time.Hour)))
	fmt.Println(keys[0].Good(made.Add(25 * time.Hour)))
	// Output:
	//  true
	// key-revoked false
}
