package manifest

import (
	"bytes"
	_ "embed" // the schema
)

//go:generate go test -run ^TestSchemaFile$ . -update

//go:embed schema/manifest-v1.json
var schema []byte

// schemaID is the schema's name: an identifier, not a place. Publishers serve the schema, their discovery document says
// where.
const schemaID = "urn:ibid:schema:manifest:1"

// Schema returns the JSON Schema (2020-12) of manifests, the caller's own copy. It is made of the same members and
// limits as Parse. Parse refuses more in what a schema cannot say: members that stand there twice, depth, bytes,
// numbers beyond 2^53-1 where anything may stand, fractions that are zero, days that a month does not have. It refuses
// less in one case: hashes by algorithms other than SHA-256 are for Problems to refuse.
func Schema() []byte { return bytes.Clone(schema) }
