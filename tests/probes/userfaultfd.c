/* Holds the kernel up in the middle of a copy. */
#include "probe.h"
#include <fcntl.h>

int main(void)
{
	/* UFFD_USER_MODE_ONLY: what a plain user may have. */
	return verdict(syscall(__NR_userfaultfd, O_CLOEXEC | 1));
}
