/* Takes a queue away that is not there: a kernel that lets the call through
 * looks for it (ENOENT). */
#include "probe.h"

int main(void)
{
	long result = syscall(__NR_mq_unlink, "aegis-probe-of-none");
	if (result < 0 && errno == ENOENT)
		result = 0;
	return verdict(result);
}
