/* The same with attributes (Linux 6.15). */
#include "probe.h"
#include <fcntl.h>

int main(void)
{
	uint64_t attributes[4] = {0};
	return verdict(syscall(467, AT_FDCWD, "/", 0, attributes, sizeof attributes));
}
