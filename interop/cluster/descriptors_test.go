package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// More clients connect than a gateway has file descriptors. They wait, clients already connected are served, the
// journal and the database work, and everything is normal once the others leave.
func TestFewDescriptors(t *testing.T) {
	testenv.Tool(t, "sh")
	c := startAlone(t, options{descriptors: 160})
	suffer(t, c, &fault{do: func(ctx context.Context, c *cluster) (err error) {
		var crowd []net.Conn
		for range 200 {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.nodes[0].addr)
			if err != nil {
				break // not even the system's backlog has room
			}
			crowd = append(crowd, conn)
		}
		if err := c.awaitLog(ctx, "all connections are in use"); err != nil {
			return err
		}
		for _, conn := range crowd {
			err = errors.Join(err, conn.Close())
		}
		return errors.Join(err, c.awaitCheck(ctx, http.StatusOK, "journal", "ok"))
	}})
}
