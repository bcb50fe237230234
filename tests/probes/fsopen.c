/* The newer way to mount: a context of a file system. */
#include "probe.h"
#ifndef __NR_fsopen
#define __NR_fsopen 430
#endif

int main(void)
{
	return verdict(syscall(__NR_fsopen, "tmpfs", 0));
}
