/* Changes the mode of a file by its path. */
#include "probe.h"
#include <sys/stat.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		unprepared("a path is missing");
	return verdict(syscall(__NR_fchmodat, -100, argv[1], 0600));
}
