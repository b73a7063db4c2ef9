package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/berth-runtime/berth/cmd/berth/internal/box"
	"github.com/berth-runtime/berth/cmd/berth/internal/box/image"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/internal/escape"
)

// boxImage are the options on the image that a box is made of.
type boxImage struct {
	name       string // FILE or DIR, with :NAME where that has several
	entrypoint string
	replaced   bool   // the entrypoint was given, as "" too
	cache      string // where images are unpacked, "" for the usual place
}

func (i *boxImage) define(f *cli.Flags) {
	f.String(&i.name, "image", "", "FILE|DIR[:NAME]", "use an image as the root: an OCI layout, what docker save writes, or a tar archive of a root file system")
	f.String(&i.cache, "image-cache", "", "DIR", "keep unpacked images there (default: /var/cache/berth/images, for users .cache/berth/images in their home)")
	f.Func("entrypoint", "", "PROGRAM", "run this in place of the image's entrypoint", func(text string) error {
		i.entrypoint, i.replaced = text, true
		return nil
	})
}

// command is what is run, by docker's rule: the entrypoint with the arguments, or with the image's
// own if there are none.
func (i *boxImage) command(c *image.Config, args []string) []string {
	entry, rest := c.Entrypoint, c.Cmd
	if i.replaced {
		entry, rest = nil, nil
		if i.entrypoint != "" {
			entry = []string{i.entrypoint}
		}
	}
	if len(args) > 0 {
		rest = args
	}
	return append(append([]string(nil), entry...), rest...)
}

var errInterrupted = errors.New("interrupted")

// useImage unpacks the image, unless that was done before, and takes it for the root.
func (o *boxOptions) useImage(front *foreground, args []string) ([]string, error) {
	if o.image.name == "" {
		if o.image.replaced {
			return nil, errors.New("--entrypoint is about an image (--image)")
		}
		return args, nil
	}
	if o.Rootfs != "" {
		return nil, errors.New("--image and --rootfs are two root file systems")
	}
	cache, err := o.image.open()
	if err != nil {
		return nil, fmt.Errorf("the cache of --image: %w", err)
	}
	cache.Owners = os.Geteuid() == 0 && !host.InUserNS()
	var done, total atomic.Int64
	var waiting atomic.Bool
	cache.Progress = func(d, t int64) error {
		done.Store(d)
		total.Store(t)
		if front.interrupted() {
			return errInterrupted
		}
		return nil
	}
	cache.Wait = func(over <-chan struct{}) error {
		waiting.Store(true)
		defer waiting.Store(false)
		err := front.await(over, func() {})
		select {
		case <-over:
			return err
		default:
			return errors.Join(err, errInterrupted)
		}
	}
	progress := terminal.Show(func() string {
		if waiting.Load() {
			return "another box is unpacking this image"
		}
		return unpacking(filepath.Base(o.image.name), done.Load(), total.Load())
	})
	root, config, err := cache.Use(o.image.name)
	progress.End()
	if err != nil {
		return nil, fmt.Errorf("--image %s: %w", o.image.name, err)
	}
	o.Rootfs = root
	o.Image = &box.Image{Env: config.Env, User: config.User, Dir: config.WorkingDir}
	return o.image.command(config, args), nil
}

func (i *boxImage) open() (*image.Cache, error) {
	dir := i.cache
	if dir == "" {
		above, err := cacheDir()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(above, "images")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return image.OpenCache(dir)
}

// unpacking is a line with a bar.
func unpacking(name string, done, total int64) string {
	const width = 24
	filled := 0
	if total > 0 {
		filled = int(min(done, total) * width / total)
	}
	return "unpacking " + escape.Line(name) + " [" + strings.Repeat("=", filled) + strings.Repeat(" ", width-filled) + "] " +
		cgrouptool.Size(uint64(done)) + " of " + cgrouptool.Size(uint64(max(total, done)))
}

// cacheDir is where root, or a user, keeps what can be made again.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 && !host.InUserNS() {
		return "/var/cache/berth", nil
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "berth"), nil
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "berth"), nil
	}
	return "", errors.New("there is no place to unpack it: set HOME or XDG_CACHE_HOME")
}
