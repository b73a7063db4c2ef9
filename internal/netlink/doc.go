// Package netlink speaks just enough rtnetlink(7) to move a network device into
// a container and make it there what it was.
//
// A general netlink library is larger than the engine; what is needed are five
// requests. A Conn is a socket in one network namespace, and stays there
// whatever namespace its user is in later.
package netlink
