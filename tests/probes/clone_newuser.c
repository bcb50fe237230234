/* The same by clone. */
#include "probe.h"
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

int main(void)
{
	/* The flags come first on x86_64 and aarch64. The upper half of the
	 * register is set: the kernel does not look at it. */
	unsigned long flags = CLONE_NEWUSER | SIGCHLD | 1UL << 40;
	long pid = syscall(__NR_clone, flags, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	int answer = verdict(pid);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return answer;
}
