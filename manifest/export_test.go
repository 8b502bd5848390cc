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
	SaltSize        = saltSize
	DefaultBuffer   = defaultBuffer
	MemberLeftOut   = memberLeftOut
)

// The statuses, for tests.
const (
	StatusMalformed    = statusMalformed
	StatusInconsistent = statusInconsistent
	StatusAlgorithm    = statusAlgorithm
	StatusChain        = statusChain
	StatusGap          = statusGap
)

// ErrHeader is the error that header errors wrap, for tests.
var ErrHeader = errHeader
