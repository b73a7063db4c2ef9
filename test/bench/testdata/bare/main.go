// Bare does what a command that prints its version can't do without, and nothing else.
package main

import "os"

func main() { os.Stdout.WriteString("bare version 1\n") }
