package manifest

// The limits, for tests.
const (
	MaxAround       = maxAround
	MaxClaimSources = maxClaimSources
	MaxClaims       = maxClaims
	MaxDepth        = maxDepth
	MaxExact        = maxExact
	MaxHash         = maxHash
	MaxID           = maxID
	MaxName         = maxName
	MaxNumber       = maxNumber
	MaxOwnURL       = maxOwnURL
	MaxRef          = maxRef
	MaxSources      = maxSources
	MaxSteps        = maxSteps
	MaxText         = maxText
	DefaultBuffer   = defaultBuffer
	MemberLeftOut   = memberLeftOut
)
