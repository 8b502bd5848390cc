// Package supply pins the programs that examine ibid's dependencies: for the SBOM of a release and for known
// vulnerabilities. They are separate from the other tools, so that neither set determines the dependency versions of
// the other.
package supply
