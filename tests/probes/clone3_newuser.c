/* The same by clone3, of which a filter cannot see the flags. */
#include "probe.h"
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#ifndef __NR_clone3
#define __NR_clone3 435
#endif

int main(void)
{
	uint64_t arguments[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
	long pid = syscall(__NR_clone3, arguments, sizeof arguments);
	if (pid == 0)
		_exit(0);
	int answer = verdict(pid);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return answer;
}
