/* Ciphers in the kernel. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(38 /* AF_ALG */, SOCK_SEQPACKET, 0));
}
