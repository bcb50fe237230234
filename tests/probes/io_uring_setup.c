/* An io_uring opens files and sockets where no filter looks. */
#include "probe.h"
#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425
#endif

int main(void)
{
	unsigned char params[120] = {0};
	return verdict(syscall(__NR_io_uring_setup, 1, params));
}
