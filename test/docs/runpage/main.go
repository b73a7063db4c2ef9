package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-runtime/berth/test/docs"
)

func main() {
	dir := flag.String("dir", "", "the folder to begin in; a new one for each page by default, which is removed")
	limit := flag.Duration("limit", 5*time.Minute, "how long one block may take")
	all := flag.Bool("v", false, "print what every block said, and not of those that fail only")
	flag.Parse()
	for _, page := range flag.Args() {
		if err := run(page, *dir, *limit, *all); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func run(page, dir string, limit time.Duration, all bool) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	blocks := docs.Parse(string(text))
	if len(blocks) == 0 {
		return fmt.Errorf("%s: has no commands", page)
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "runpage-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	for _, b := range blocks {
		began := time.Now()
		var said string
		said, dir, err = b.Run(dir, nil, limit)
		first, _, _ := strings.Cut(b.Script, "\n")
		fmt.Printf("%s:%d: %.1f s: %s\n", filepath.Base(page), b.Line, time.Since(began).Seconds(), first)
		if all || err != nil {
			fmt.Print("    " + strings.ReplaceAll(strings.TrimRight(said, "\n"), "\n", "\n    ") + "\n")
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", page, b.Line, err)
		}
	}
	return nil
}
