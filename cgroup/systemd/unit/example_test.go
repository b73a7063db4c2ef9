package unit_test

import (
	"fmt"

	"github.com/berth-runtime/berth/cgroup/systemd/unit"
)

func ExampleResolve() {
	place, err := unit.Resolve("user-1000.slice:docker:abc", "abc", false)
	if err != nil {
		fmt.Println(err)
		return
	}
	path, _ := place.Path()
	fmt.Println(place.Unit)
	fmt.Println(path)
	// Output:
	// docker-abc.scope
	// /user.slice/user-1000.slice/docker-abc.scope
}

func ExampleAnnotations() {
	properties, err := unit.Annotations(map[string]string{
		"org.systemd.property.TimeoutStopSec": "1.5",
		"org.systemd.property.CollectMode":    "'inactive-or-failed'",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range properties {
		fmt.Println(p.Name, p.Value.Type)
	}
	_, err = unit.Annotations(map[string]string{"org.systemd.property.CollectMode": "inactive"})
	fmt.Println(err)
	// Output:
	// CollectMode s
	// TimeoutStopUSec t
	// annotation org.systemd.property.CollectMode: column 1: unknown word "inactive" (a string is written in quotes)
}
