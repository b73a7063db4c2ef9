// Package escape makes untrusted text safe to print.
package escape
