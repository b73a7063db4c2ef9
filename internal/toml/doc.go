// Package toml reads the part of TOML that a table of options is made of: lines of KEY = VALUE, the
// values strings, booleans and whole numbers, and comments. The rest of TOML, sub-tables above all,
// has no option to stand for and is refused.
//
// It is here because the start of every command pays for what is linked. It touches nothing.
package toml
