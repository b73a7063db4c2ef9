/*
 * The oracle of the tests: builds a filter with libseccomp from a plain text on standard input, one item a line, and
 * writes the program to standard output. Numbers are C's.
 *
 *	default ACTION			the default action, first of all
 *	arch TOKEN			an architecture; the native one is dropped first
 *	rule ACTION NAME COUNT [ARG OP A B]...
 *	name TOKEN NAME			no filter: prints the number of a call
 */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, int rc)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}

int main(void)
{
	scmp_filter_ctx ctx = NULL;
	char line[1024], name[128];
	unsigned int action, token, count;

	while (fgets(line, sizeof(line), stdin)) {
		int rc, at;

		if (sscanf(line, "name %i %127s", (int *)&token, name) == 2) {
			printf("%d\n", seccomp_syscall_resolve_name_arch(token, name));
		} else if (sscanf(line, "default %i", (int *)&action) == 1) {
			ctx = seccomp_init(action);
			if (!ctx)
				die("init", -EINVAL);
			seccomp_arch_remove(ctx, SCMP_ARCH_NATIVE);
		} else if (sscanf(line, "arch %i", (int *)&token) == 1) {
			if ((rc = seccomp_arch_add(ctx, token)))
				die(line, rc);
		} else if (sscanf(line, "rule %i %127s %u%n", (int *)&action, name, &count, &at) == 3) {
			struct scmp_arg_cmp args[6];
			char *p = line + at;
			int nr = seccomp_syscall_resolve_name(name);

			if (nr == __NR_SCMP_ERROR)
				continue;
			for (unsigned int i = 0; i < count && i < 6; i++) {
				args[i].arg = strtoul(p, &p, 0);
				args[i].op = strtoul(p, &p, 0);
				args[i].datum_a = strtoull(p, &p, 0);
				args[i].datum_b = strtoull(p, &p, 0);
			}
			if ((rc = seccomp_rule_add_array(ctx, action, nr, count, args)))
				die(line, rc);
		}
	}
	if (ctx) {
		int rc = seccomp_export_bpf(ctx, 1);
		if (rc)
			die("export", rc);
	}
	return 0;
}
