/* One end of a datagram pair sends to a socket it was not paired with.
 *
 * The other socket is the runner's, bound to the path in argv[1]: the kernel
 * of a machine without it would answer ENOENT. */
#include "probe.h"
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
	int pair[2];
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if (argc < 2)
		unprepared("a path is missing");
	strncpy(to.sun_path, argv[1], sizeof to.sun_path - 1);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return blocked(errno);
	return verdict(sendto(pair[0], "x", 1, 0, (void *)&to, sizeof to));
}
