/* Sets a limit of another process. */
#include "victim.h"
#include <sys/resource.h>

int main(void)
{
	pid_t pid = victim();
	struct rlimit limit = {16, 16};
	int answer = verdict(prlimit(pid, RLIMIT_NOFILE, &limit, NULL));
	end(pid);
	return answer;
}
