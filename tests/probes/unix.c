/* Reaches docker.sock, the session bus and the like. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(AF_UNIX, SOCK_STREAM, 0));
}
