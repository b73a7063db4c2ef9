// floor: the least that a container takes. It makes the namespaces, the mounts and the cgroups that
// the bench's configs ask for, by the shortest code and with nothing looked at: no config is read,
// no path is resolved with care, no state is kept, and no device program is loaded.
//
//   floor ROOT FILTER WORD…
//
// FILTER is a file of struct sock_filter, or "-". A WORD that has a "=" is a file and what to write
// to it, any other the directory of a cgroup to make. The container runs /bin/true.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEED(call) need((call) >= 0, #call)

static void need(int ok, const char *what) {
	if (!ok) {
		dprintf(2, "floor: %s: %s\n", what, strerror(errno));
		_exit(125);
	}
}

static void set(const char *file, const char *text) {
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	need(fd >= 0, file);
	need(write(fd, text, strlen(text)) >= 0, file);
	close(fd);
}

static const char *masked[] = {"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
	"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", 0};
static const char *readonly[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", 0};
static const struct { const char *name; int major, minor; } devices[] = {
	{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};
static const struct { const char *to, *name; } links[] = {
	{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}};
// Docker's: chown, dac_override, fsetid, fowner, mknod, net_raw, setgid, setuid, setfcap, setpcap,
// net_bind_service, sys_chroot, kill, audit_write.
static const uint64_t kept = 0xa80425fb;

static void mounts(char **dirs, int version2) {
	const unsigned long private = MS_NOSUID | MS_NOEXEC | MS_NODEV;
	NEED(mount("proc", "proc", "proc", private, 0));
	NEED(mount("tmpfs", "dev", "tmpfs", MS_NOSUID | MS_STRICTATIME, "mode=755,size=65536k"));
	NEED(mkdir("dev/pts", 0755));
	NEED(mkdir("dev/shm", 0755));
	NEED(mkdir("dev/mqueue", 0755));
	NEED(mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"));
	NEED(mount("shm", "dev/shm", "tmpfs", private, "mode=1777,size=65536k"));
	NEED(mount("mqueue", "dev/mqueue", "mqueue", private, 0));
	NEED(mount("sysfs", "sys", "sysfs", private | MS_RDONLY, 0));
	if (version2) {
		NEED(mount(dirs[0], "sys/fs/cgroup", 0, MS_BIND, 0));
		NEED(mount(0, "sys/fs/cgroup", 0, MS_REMOUNT | MS_BIND | MS_RDONLY | private, 0));
	} else {
		NEED(mount("tmpfs", "sys/fs/cgroup", "tmpfs", private, "mode=755,size=64k"));
		for (char **d = dirs; *d; d++) {
			char place[64];
			snprintf(place, sizeof place, "sys/fs/cgroup/%d", (int)(d - dirs));
			NEED(mkdir(place, 0755));
			NEED(mount(*d, place, 0, MS_BIND, 0));
			NEED(mount(0, place, 0, MS_REMOUNT | MS_BIND | MS_RDONLY | private, 0));
		}
		NEED(mount(0, "sys/fs/cgroup", 0, MS_REMOUNT | MS_BIND | MS_RDONLY | private, 0));
	}
	umask(0);
	for (unsigned i = 0; i < sizeof devices / sizeof *devices; i++) {
		char place[32];
		snprintf(place, sizeof place, "dev/%s", devices[i].name);
		NEED(mknod(place, S_IFCHR | 0666, makedev(devices[i].major, devices[i].minor)));
	}
	for (unsigned i = 0; i < sizeof links / sizeof *links; i++) {
		char place[32];
		snprintf(place, sizeof place, "dev/%s", links[i].name);
		NEED(symlink(links[i].to, place));
	}
	umask(022);
}

static void hide(void) {
	for (const char **p = masked; *p; p++)
		if (mount("/dev/null", *p, 0, MS_BIND, 0) < 0 && errno == ENOTDIR)
			NEED(mount("tmpfs", *p, "tmpfs", MS_RDONLY, "size=0"));
	for (const char **p = readonly; *p; p++) {
		if (mount(*p, *p, 0, MS_BIND | MS_REC, 0) < 0 && errno == ENOENT)
			continue;
		NEED(mount(0, *p, 0, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC | MS_NODEV, 0));
	}
}

static void rights(void) {
	const struct rlimit files = {1024, 1024};
	NEED(setrlimit(RLIMIT_NOFILE, &files));
	for (int c = 0; prctl(PR_CAPBSET_READ, c) >= 0; c++)
		if (!(kept >> c & 1))
			NEED(prctl(PR_CAPBSET_DROP, c));
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct sets[2] = {{kept, kept, 0}, {kept >> 32, kept >> 32, 0}};
	NEED(syscall(SYS_capset, &header, sets));
	NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

int main(int argc, char **argv) {
	if (argc < 3)
		return 125;
	static struct sock_filter code[4096];
	struct sock_fprog filter = {0, code};
	if (strcmp(argv[2], "-")) {
		int fd = open(argv[2], O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, code, sizeof code);
		need(n > 0, argv[2]);
		filter.len = n / sizeof *code;
		close(fd);
	}
	char *dirs[64] = {0};
	int count = 0;
	for (char **w = argv + 3; *w && count < 63; w++) {
		char *value = strchr(*w, '=');
		if (value) {
			*value++ = 0;
			set(*w, value);
		} else {
			NEED(mkdir(*w, 0755));
			dirs[count++] = *w;
		}
	}
	char freeze[512];
	snprintf(freeze, sizeof freeze, "%s/cgroup.freeze", count ? dirs[0] : "");
	int version2 = count == 1 && access(freeze, F_OK) == 0;
	struct clone_args args = {.flags = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS, .exit_signal = SIGCHLD};
	if (version2) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = open(dirs[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	long pid = syscall(SYS_clone3, &args, sizeof args);
	need(pid >= 0, "clone3");
	if (pid) {
		int status;
		NEED(waitpid(pid, &status, 0));
		while (count)
			NEED(rmdir(dirs[--count]));
		return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
	}
	if (!version2)
		for (char **d = dirs; *d; d++) {
			char tasks[512];
			snprintf(tasks, sizeof tasks, "%s/tasks", *d);
			set(tasks, "0");
		}
	setsid();
	NEED(unshare(CLONE_NEWCGROUP));
	NEED(mount("", "/", 0, MS_REC | MS_PRIVATE, 0));
	NEED(mount(argv[1], argv[1], 0, MS_BIND | MS_REC, 0));
	NEED(chdir(argv[1]));
	mounts(dirs, version2);
	NEED(sethostname("bench", 5));
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int net = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	NEED(ioctl(net, SIOCSIFFLAGS, &lo));
	NEED(syscall(SYS_pivot_root, ".", "."));
	NEED(umount2(".", MNT_DETACH));
	NEED(chdir("/"));
	hide();
	NEED(mount(0, "/", 0, MS_REMOUNT | MS_BIND | MS_RDONLY, 0));
	rights();
	char *const words[] = {"/bin/true", 0}, *const env[] = {"PATH=/bin", "HOME=/", 0};
	if (filter.len)
		NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
	execve(words[0], words, env);
	need(0, words[0]);
}
