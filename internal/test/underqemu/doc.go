// Package underqemu runs tests of a package again for another architecture, under
// qemu-user, so that its assembly is tested wherever that of this one is. It is for
// tests only: no program uses it, and it knows nothing about what is tested.
package underqemu
