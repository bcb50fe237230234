/* Sets attributes by path (Linux 6.17); without a path there are none to set,
 * so a kernel that lets the call through says ENOENT. */
#include "probe.h"

int main(void)
{
	uint64_t attributes[3] = {0};
	long result = syscall(469, -100, "", attributes, sizeof attributes, 0);
	if (result < 0 && errno == ENOENT)
		result = 0;
	return verdict(result);
}
