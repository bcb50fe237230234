/* Makes System V shared memory, for other processes of the user to find. */
#include "probe.h"
#include <sys/ipc.h>
#include <sys/shm.h>

int main(void)
{
	int segment = shmget(IPC_PRIVATE, 4096, 0600);
	int answer = verdict(segment);
	if (segment >= 0)
		shmctl(segment, IPC_RMID, NULL);
	return answer;
}
