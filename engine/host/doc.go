// Package host gathers the facts of the machine that a Plan depends on.
//
// Everything here is found by looking and by trying once, never by version
// numbers. Probing reads /proc and makes harmless calls; it changes nothing.
package host
