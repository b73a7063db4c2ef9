/* Makes one call of i386 from a 64-bit program, "int80 NUMBER ARGUMENT", and prints the result, -errno included. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int result;

	if (argc != 3)
		return 2;
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"((int)strtol(argv[1], NULL, 0)), "b"((int)strtol(argv[2], NULL, 0)), "c"(0), "d"(0), "S"(0), "D"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	printf("%d\n", result);
	return 0;
}
