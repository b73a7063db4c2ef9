// Package ptr points at values, which in config.json is how an entry differs from none. The
// language does so by itself since Go 1.26, with new(value); the libraries are to build with Go
// 1.24, which Debian 13 has.
package ptr
