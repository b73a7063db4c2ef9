// Package dbus is a client of D-Bus, as much of one as talking to systemd takes:
// unix sockets, the EXTERNAL handshake, method calls with their answers, and
// signals. It serves no objects and passes no descriptors.
//
// Values are encoded by a signature and not by reflection: see Encode for which Go
// value stands for which type. What comes from the other side is checked before it
// is believed, and refused whole where it is wrong (the fuzz tests).
//
// It is here because the start of every command pays for what is linked, and the
// usual library brings package net with it: see docs/decisions/dbus.md. Facts are
// from the D-Bus Specification, version 0.43.
package dbus
