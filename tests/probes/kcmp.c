/* Compares what two processes have open. */
#include "victim.h"

int main(void)
{
	pid_t pid = victim();
	int answer = verdict(syscall(__NR_kcmp, getpid(), pid, 0, 1, 1));
	end(pid);
	return answer;
}
