// Command inside is the helper program that integration tests put into a container, to look and try
// from there.
//
// It prints JSON of package view. It is static and needs nothing of the container but itself; what
// it reads of /proc it leaves empty where there is none. It takes no part in setting anything up: a
// container is judged by what this program finds, never by what the engine says it did.
package main
