/* Enters the network namespace it is in: as root that is allowed. */
#include "probe.h"
#include <fcntl.h>
#include <sched.h>

int main(void)
{
	int space = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (space < 0)
		unprepared("/proc/self/ns/net");
	return verdict(setns(space, CLONE_NEWNET));
}
