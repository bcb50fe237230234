/* Becomes a packet socket, though its domain is inet. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(AF_INET, 10 /* SOCK_PACKET */, 0x0300));
}
