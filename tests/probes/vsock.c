/* Leads to the host of a virtual machine. */
#include "probe.h"
#include <sys/socket.h>

int main(void)
{
	return verdict(socket(40 /* AF_VSOCK */, SOCK_STREAM, 0));
}
