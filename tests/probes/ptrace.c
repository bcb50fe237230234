/* Takes another process over. */
#include "victim.h"
#include <sys/ptrace.h>

int main(void)
{
	pid_t pid = victim();
	int answer = verdict(ptrace(PTRACE_SEIZE, pid, 0, 0));
	end(pid);
	return answer;
}
