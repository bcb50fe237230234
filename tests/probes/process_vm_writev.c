/* Writes the memory of another process. */
#include "victim.h"
#include <sys/uio.h>

int main(void)
{
	pid_t pid = victim();
	char text[] = "changed";
	struct iovec here = {text, sizeof text};
	struct iovec there = {(void *)secret, sizeof text};
	int answer = verdict(process_vm_writev(pid, &here, 1, &there, 1, 0));
	end(pid);
	return answer;
}
