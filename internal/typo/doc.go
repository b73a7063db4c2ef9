// Package typo finds the word that was meant by one that is not known.
package typo
