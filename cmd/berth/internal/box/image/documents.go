package image

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/berth-runtime/berth/internal/json"
)

// A Config is what an image says of the command that runs in it.
type Config struct {
	Env             []string
	User            string // USER[:GROUP]
	Entrypoint, Cmd []string
	WorkingDir      string

	diffs []string // the digests of the layers, unpacked
}

// A descriptor says where a document or a layer is.
type descriptor struct {
	digest    string
	names     []string // of an image, by its annotations
	os, arch  string
	mediaType string
}

func (d *descriptor) isIndex() bool {
	return strings.HasSuffix(d.mediaType, ".image.index.v1+json") || strings.HasSuffix(d.mediaType, ".manifest.list.v2+json")
}

// isManifest is false of what is stored beside images: attestations, signatures.
func (d *descriptor) isManifest() bool {
	switch {
	case d.os == "unknown":
		return false
	case d.mediaType == "", strings.HasSuffix(d.mediaType, ".image.manifest.v1+json"), strings.HasSuffix(d.mediaType, ".distribution.manifest.v2+json"):
		return true
	}
	return d.isIndex()
}

// fits reports whether an image is for this machine, or doesn't say.
func (d *descriptor) fits() bool {
	return (d.os == "" || d.os == "linux") && (d.arch == "" || d.arch == runtime.GOARCH)
}

func readDescriptor(d *json.Decoder) (found descriptor) {
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "mediaType":
			found.mediaType = d.String()
		case "digest":
			found.digest = d.String()
		case "annotations":
			if d.Null() {
				continue
			}
			for d.Object(); d.Next(); {
				switch d.Key() {
				case "org.opencontainers.image.ref.name", "io.containerd.image.name":
					found.names = append(found.names, d.String())
				}
			}
		case "platform":
			if d.Null() {
				continue
			}
			for d.Object(); d.Next(); {
				switch d.Key() {
				case "os":
					found.os = d.String()
				case "architecture":
					found.arch = d.String()
				}
			}
		}
	}
	return found
}

func readIndex(text []byte) (list []descriptor, err error) {
	d := json.NewDecoder(text)
	for d.Object(); d.Next(); {
		if d.Key() == "manifests" {
			for d.Array(); d.Next(); {
				list = append(list, readDescriptor(d))
			}
		}
	}
	return list, d.Close()
}

func readManifest(text []byte) (config descriptor, layers []descriptor, err error) {
	d := json.NewDecoder(text)
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "config":
			config = readDescriptor(d)
		case "layers":
			for d.Array(); d.Next(); {
				layers = append(layers, readDescriptor(d))
			}
		}
	}
	if err := d.Close(); err != nil {
		return config, nil, err
	}
	if config.digest == "" {
		return config, nil, errors.New("it has no config")
	}
	return config, layers, nil
}

func readConfig(text []byte) (*Config, error) {
	c := &Config{}
	system, arch := "", ""
	d := json.NewDecoder(text)
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "os":
			system = d.String()
		case "architecture":
			arch = d.String()
		case "config":
			if !d.Null() {
				c.read(d)
			}
		case "rootfs":
			for d.Object(); d.Next(); {
				if d.Key() == "diff_ids" {
					c.diffs = d.Strings()
				}
			}
		}
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	if system != "" && system != "linux" {
		return nil, fmt.Errorf("the image is for %s", system)
	}
	if arch != "" && arch != runtime.GOARCH {
		return nil, fmt.Errorf("the image is for %s, this machine is %s", arch, runtime.GOARCH)
	}
	for _, id := range c.diffs {
		if _, err := hexOf(id); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Config) read(d *json.Decoder) {
	for d.Object(); d.Next(); {
		switch key := d.Key(); key {
		case "Env", "Entrypoint", "Cmd":
			if d.Null() {
				continue
			}
			list := d.Strings()
			switch key {
			case "Env":
				c.Env = list
			case "Entrypoint":
				c.Entrypoint = list
			default:
				c.Cmd = list
			}
		case "User":
			c.User = d.String()
		case "WorkingDir":
			c.WorkingDir = d.String()
		}
	}
}

// A saved is an image of an archive of docker's.
type saved struct {
	config string
	tags   []string
	layers []string
}

func readSaved(text []byte) (list []saved, err error) {
	d := json.NewDecoder(text)
	for d.Array(); d.Next(); {
		var s saved
		for d.Object(); d.Next(); {
			switch d.Key() {
			case "Config":
				s.config = d.String()
			case "RepoTags":
				if !d.Null() {
					s.tags = d.Strings()
				}
			case "Layers":
				if !d.Null() {
					s.layers = d.Strings()
				}
			}
		}
		list = append(list, s)
	}
	return list, d.Close()
}

// hexOf is the name by which a blob lies in a layout.
func hexOf(digest string) (string, error) {
	hex, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || !isHash(hex) {
		return "", fmt.Errorf("%q is no digest of the form sha256:HEX, the only one that is read", digest)
	}
	return hex, nil
}

func isHash(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}
