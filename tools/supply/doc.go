// Package supply pins the programs that look at what ibid is made of: the SBOM of a release and known vulnerabilities.
// They are apart from the other tools, so that neither decides the versions of what the other is made of.
package supply
