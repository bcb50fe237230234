/* Reads the memory of another process. */
#include "victim.h"
#include <sys/uio.h>

int main(void)
{
	pid_t pid = victim();
	char read[sizeof secret];
	struct iovec here = {read, sizeof read};
	struct iovec there = {(void *)secret, sizeof secret};
	int answer = verdict(process_vm_readv(pid, &here, 1, &there, 1, 0));
	end(pid);
	return answer;
}
