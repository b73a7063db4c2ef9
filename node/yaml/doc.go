// Package yaml reads the part of YAML that configuration needs: mappings of
// scalars and mappings, in blocks or in braces, with comments and quotes.
//
// It is strict, and each value knows its line. What a stranger's eye takes for
// something else is refused with the reason: tabs, keys given twice, anchors,
// tags, lists, block scalars, several documents. All that it accepts means
// the same to every YAML 1.2 reader that takes scalars for text. It is pure.
package yaml
