package tlog

import (
	"errors"
	"fmt"
)

// ErrInconsistent says that a log is not what it signed before. It is one of the errors below, which say why.
var ErrInconsistent = errors.New("the log is inconsistent")

// The ways in which a log can be inconsistent.
var (
	// ErrShorter: there are fewer leaves than a checkpoint says, or the later of two checkpoints has the smaller tree.
	// A database that was put back to an earlier state looks like that.
	ErrShorter = fmt.Errorf("%w: the tree is shorter than a checkpoint that was signed", ErrInconsistent)

	// ErrRewritten: the leaves that a checkpoint spoke of are no longer the first of the tree.
	ErrRewritten = fmt.Errorf("%w: the tree is not the one that a checkpoint was signed for", ErrInconsistent)

	// ErrForeign: the checkpoint kept last was not signed with this log's key, or for another origin.
	ErrForeign = fmt.Errorf("%w: the checkpoint is not this log's", ErrInconsistent)
)

// What is wrong with proofs and checkpoints that come from outside.
var (
	ErrNotFound = errors.New("not in the log")
	// it does not have the form, or is over a limit
	ErrMalformed = errors.New("malformed")
	// nor is what it says known to be anybody's word
	ErrUnsigned = errors.New("not signed with the log's key")
	// another leaf, another tree, or forged
	ErrNotIncluded = errors.New("the proof does not lead to the checkpoint's root")
)
