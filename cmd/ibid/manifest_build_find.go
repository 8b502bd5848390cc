package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// manifestSubject is what a manifest is to be of.
type manifestSubject struct {
	answer              *ibid.Answer
	trail               *trail.Trail // nil: no run is known
	run                 string       // its public name
	bodyHash, mediaType string       // of the response; empty: the text of the answer counts
}

// find reads the answer: a file if there is one of that name, else what is stored.
func (b *manifestBuild) find(name string) (*manifestSubject, error) {
	if isURL(name) {
		return nil, &usageError{
			fmt.Errorf("%s is an address, and the answer has to be here", name),
			"ibid verify looks at what others publish",
		}
	}
	if _, err := os.Stat(name); name == stdinName || err == nil || strings.ContainsRune(name, filepath.Separator) {
		job := &attributeJob{world: b.world, answer: name}
		answer, err := job.readAnswer()
		if err != nil {
			return nil, &usageError{fmt.Errorf("read %s: %w", name, err), explain(err).hint}
		}
		return &manifestSubject{answer: answer, run: nameOf(answer.Text)}, nil
	}
	var sub *manifestSubject
	err := withStore(b.cmd, b.config, b.world, false, func(ctx context.Context, s *store.Store) error {
		var err error
		sub, err = b.stored(ctx, s, name)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, &usageError{
			fmt.Errorf("there is neither a file nor a stored answer or run %s", name),
			"--data or --db says where ibid serve keeps them",
		}
	}
	return sub, err
}

// stored reads a stored answer, or a run.
func (b *manifestBuild) stored(ctx context.Context, s *store.Store, id string) (*manifestSubject, error) {
	call, err := s.Call(ctx, b.flags.tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return b.storedRun(ctx, s, id)
	}
	if err != nil {
		return nil, err
	}
	sub := &manifestSubject{answer: call.Answer}
	of := id // a call in no run is published under its answer's id
	if call.Run != "" {
		of = call.Run
		if sub.trail, err = s.Trail(ctx, b.flags.tenant, call.Run); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	if call.Body != nil {
		sub.bodyHash, sub.mediaType = call.Body.Hash, call.Body.MediaType
	}
	sub.run, err = s.Pub(ctx, b.flags.tenant, of)
	return sub, err
}

// storedRun reads a run with its final answer.
func (b *manifestBuild) storedRun(ctx context.Context, s *store.Store, run string) (*manifestSubject, error) {
	t, err := s.Trail(ctx, b.flags.tenant, run)
	if err != nil {
		return nil, err
	}
	sub := &manifestSubject{trail: t}
	if id := t.FinalID(); id != "" {
		call, err := s.Call(ctx, b.flags.tenant, id)
		if err != nil {
			return nil, err
		}
		sub.answer = call.Answer
	}
	if sub.answer == nil {
		if sub.answer, err = t.FinalAnswer(ctx, nil, nil); err != nil {
			return nil, err
		}
	}
	if sub.answer == nil || strings.TrimSpace(sub.answer.Text) == "" {
		return nil, &usageError{
			fmt.Errorf("run %s has no final answer", t.ID), "POST /v1/runs/" + t.ID + "/finish says it",
		}
	}
	sub.run, err = s.Pub(ctx, b.flags.tenant, run)
	return sub, err
}
