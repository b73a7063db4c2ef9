//go:build !amd64 && !arm64

package program

const elfMachine = 0

func interpreterCode() []byte { return nil }

func handlerCode() []byte { return nil }
