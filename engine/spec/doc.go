// Package spec parses and checks config.json.
//
// It turns the bytes of an OCI bundle's config into a [specs.Spec], or into
// complaints: all of them at once, each with the JSON pointer of the entry to
// blame and a hint where one helps. [Parse] finds what is not the right type,
// [Check] what is the right type and still can't be: missing entries, unknown
// names, contradictions. Neither looks at the host: the same config gets the
// same answer on every machine. What depends on the host is the plan's matter.
//
// Unknown fields are ignored, as the OCI runtime spec demands; keys are matched
// by exact case; null means absent. The package opens config.json and touches
// nothing else.
package spec

//go:generate go run ./internal/gen
