package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// maxPosted limits the incidents sent to one publisher for one input.
const maxPosted = 32

// openRing opens the keys that sign reports to publishers.
func (f *verifyFlags) openRing(cmd *cobra.Command, c *server.Config, w world) (*keyring.Ring, error) {
	if said := cmd.Flags().Changed; !said("data") && !said("config") {
		return nil, usagef(
			"use --data for the directory of the key; ibid key new creates one",
			"--report signs what it sends, and no key is named",
		)
	}
	ring, err := openRing(cmd, c, w)
	if err != nil {
		return nil, err
	}
	_, _, err = ring.Signer(keyring.Manifest)
	if errors.Is(err, keyring.ErrNoKey) {
		return nil, usagef(
			"ibid key new --data "+c.Data+" creates one",
			"--report signs what it sends: %w in %s", keyring.ErrNoKey, c.Data,
		)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	return ring, nil
}

// posting counts what is sent to one publisher for one input.
type posting struct {
	endpoint     string
	posted, left int
	err          error // why no more are sent
}

// post sends failures to the publishers that accept them.
func (v *verifying) post(ctx context.Context, r *verify.Report, added []verify.Incident) error {
	endpoints := map[string]string{}
	takers(r, endpoints)
	var all []*posting
	for _, i := range verify.Incidents(r) {
		endpoint := endpoints[i.ManifestURL]
		if endpoint == "" {
			continue
		}
		at := slices.IndexFunc(all, func(p *posting) bool { return p.endpoint == endpoint })
		if at < 0 {
			at, all = len(all), append(all, &posting{endpoint: endpoint})
		}
		p := all[at]
		if p.posted == maxPosted {
			p.err = fmt.Errorf("there are more than %d", maxPosted)
		}
		if p.err == nil {
			recorded, err := v.recorded(ctx, &i, added)
			if err != nil {
				return err
			}
			p.err = v.poster.Post(ctx, p.endpoint, recorded)
		}
		if p.err != nil { // the publisher accepts no more
			p.left++
		} else {
			p.posted++
		}
	}
	for _, p := range all {
		if p.posted > 0 {
			say(v.err, "%s reported to %s", plural(p.posted, "incident"), p.endpoint)
		}
		if p.left > 0 {
			say(v.err, "%s not reported to %s: %v", plural(p.left, "incident"), p.endpoint, p.err)
		}
	}
	return ctx.Err()
}

// takers finds where the publishers of a report's manifests take incidents, by the manifest's URL.
func takers(r *verify.Report, endpoints map[string]string) {
	for i := range r.Manifests {
		if m := &r.Manifests[i]; m.Incidents != "" {
			endpoints[m.URL] = m.Incidents
		}
	}
	for _, up := range r.Upstream {
		takers(up, endpoints)
	}
}

// recorded returns an incident as it was recorded, now or when it was first seen: with its id, by which its publisher
// knows it again.
func (v *verifying) recorded(
	ctx context.Context, i *verify.Incident, added []verify.Incident,
) (*verify.Incident, error) {
	same := func(one verify.Incident) bool { return one.Key() == i.Key() }
	if at := slices.IndexFunc(added, same); at >= 0 {
		return &added[at], nil
	}
	q := &store.IncidentQuery{
		Manifest: i.ManifestSHA256,
		Source:   i.SourceURL,
		Status:   string(i.Status),
		Limit:    store.MaxLimit,
	}
	for {
		page, err := v.store.Incidents(ctx, v.flags.tenant, q)
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(page.Items, same); at >= 0 {
			return &page.Items[at], nil
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return i, nil // deleted in the meantime
		}
	}
}
