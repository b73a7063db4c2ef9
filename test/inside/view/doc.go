// Package view holds what the helper program sees from inside a container.
//
// The helper (package main one directory up) fills a View by asking the kernel, prints it as JSON,
// and the tests read it back. It keeps raw facts: what a fact should be is the test's business. It
// must not import anything of the engine, or a shared mistake would hide itself.
package view
