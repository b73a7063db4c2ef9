// Package yaml reads the part of YAML that configuration needs: mappings of
// scalars and mappings, in blocks or in braces, with comments and quotes.
//
// The reading is done by go.yaml.in/yaml/v3. This package looks at its nodes and is
// strict with them, and each value knows its line: keys given twice, anchors, aliases,
// tags, merge keys, lists, directives, several documents and scalars of more than one
// line are refused with the reason. All that it accepts means the same to every YAML 1.2
// reader that takes scalars for text. It is pure.
package yaml
