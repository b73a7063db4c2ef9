package gvariant_test

import (
	"fmt"

	"github.com/berth-runtime/berth/cgroup/systemd/gvariant"
)

func ExampleParse() {
	for _, text := range []string{"uint64 123456789", "[1, 2.5]", "{'k': <true>}", "@as []", "['a', 1]"} {
		v, err := gvariant.Parse(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(v.Type, len(v.Members))
	}
	// Output:
	// t 0
	// ad 2
	// a{sv} 1
	// as 0
	// column 7: the elements of the array have no common type
}
