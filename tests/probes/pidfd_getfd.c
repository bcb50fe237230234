/* Takes a descriptor out of another process. */
#include "victim.h"
#ifndef __NR_pidfd_open
#define __NR_pidfd_open 434
#endif
#ifndef __NR_pidfd_getfd
#define __NR_pidfd_getfd 438
#endif

int main(void)
{
	pid_t pid = victim();
	int process = syscall(__NR_pidfd_open, pid, 0);
	if (process < 0)
		unprepared("pidfd_open");
	int answer = verdict(syscall(__NR_pidfd_getfd, process, 1, 0));
	end(pid);
	return answer;
}
