package manifest

import "math"

// The limits of a manifest. Lengths of strings count code points.
const (
	MaxBytes        = 1 << 20   // of the whole document
	MaxDepth        = 32        // of objects and arrays in each other; the document itself is the first
	MaxNumber       = 1<<53 - 1 // the largest amount of any number
	MaxClaims       = 1024
	MaxSources      = 1024 // of the manifest, and of a step
	MaxSteps        = 1024 // of the chain, of a claim, and of what a step follows from
	MaxClaimSources = 64
	MaxText         = 8192 // of a claim
	MaxExact        = 4096 // of an excerpt
	MaxAround       = 64   // of what stands before and after an excerpt; writers keep to 32
	MaxURL          = 4096 // of sources
	MaxOwnURL       = 2048 // of manifests
	MaxRef          = 512
	MaxID           = 128
	MaxName         = 256 // of runs, agents, tools, media types, titles and reasons
	MaxHash         = 256
)

// maxInt is MaxNumber as far as an int has room for it: on 32 bits numbers end sooner.
const maxInt = MaxNumber & math.MaxInt
