// Package escape makes text that others have written safe to show.
package escape
