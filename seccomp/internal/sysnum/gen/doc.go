// Command gen writes the syscall tables of package sysnum from a Linux source tree.
//
//	apt-get install linux-source-6.12 && tar -xf /usr/src/linux-source-6.12.tar.xz
//	go run ./seccomp/internal/sysnum/gen -linux linux-source-6.12 -version 6.12
//
// It reads the syscall tables (*.tbl) that the kernel's own headers are made of, so that the result
// holds what <asm/unistd.h> of each architecture holds, and newer.tbl beside this file for the
// calls that came after the tree's version. It needs a kernel of 6.11 or later: before, arm64,
// riscv and loongarch had no table.
package main
