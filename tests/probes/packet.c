/* Reads and writes whole frames of the network. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0x0300));
}
