/* Makes another process give way. */
#include "victim.h"
#include <sys/resource.h>

int main(void)
{
	pid_t pid = victim();
	int answer = verdict(setpriority(PRIO_PROCESS, pid, 10));
	end(pid);
	return answer;
}
