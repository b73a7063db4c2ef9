// Package kmsg reads the kernel's log from /dev/kmsg, by the format of
// Documentation/ABI/testing/dev-kmsg. It takes CAP_SYSLOG where kernel.dmesg_restrict is 1.
package kmsg
