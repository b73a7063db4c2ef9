// Package layer brings the layers of images to a directory: tar archives in which an entry .wh.NAME
// says that NAME is deleted, and .wh..wh..opq that all is deleted that its directory had before
// (the image-spec's layer.md). What "berth box --save" keeps is such a layer as well.
//
// Archives are a stranger's word. Whatever one says, nothing is made, changed or deleted outside of
// the directory: each name is resolved by the kernel (openat2(2)), below the directory's
// descriptor. Device nodes are never made.
package layer
