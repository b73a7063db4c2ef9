// Runpage runs the commands of pages, as written and with nothing put in anything's place: what
// package docs tests with stand-ins, this does on a machine that may be changed (test/guests/fresh
// calls it on a fresh Debian). A line for each block tells what it took.
//
//	runpage [-dir FOLDER] [-limit 5m] [-v] PAGE...
package main
