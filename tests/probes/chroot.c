/* Of no path: a kernel that lets the call through looks for it (ENOENT). */
#include "probe.h"
#include <sys/mount.h>

int main(void)
{
	long result = chroot("");
	if (result < 0 && errno == ENOENT)
		result = 0;
	return verdict(result);
}
