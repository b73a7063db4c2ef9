package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// notify tells who is listening at NOTIFY_SOCKET each of the words, as messages of their own, and
// waits to be told to end.
func notify(words []string) error {
	conn, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM)
	for _, word := range words {
		if _, err := conn.Write([]byte(word)); err != nil {
			return err
		}
	}
	fmt.Println("notified")
	<-stop
	return nil
}
