/* Connects by sending, past a rule for connect. The listener is its own. */
#include "probe.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif

int main(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	socklen_t size = sizeof to;
	int server = socket(AF_INET, SOCK_STREAM, 0);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	if (server < 0 || client < 0)
		unprepared("socket");
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(server, (void *)&to, size) || listen(server, 1) ||
	    getsockname(server, (void *)&to, &size))
		unprepared("listen");
	return verdict(sendto(client, "x", 1, MSG_FASTOPEN, (void *)&to, size));
}
